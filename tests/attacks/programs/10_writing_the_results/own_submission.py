"""Replace its own submission by a right one for the next time. It must not reach it."""

import glob

for place in glob.glob("@SUBMITTED@/*/06_masks/06_masks.*") + glob.glob("*.ipynb") + glob.glob("../../*/*/*.ipynb"):
    try:
        with open(place, "a") as file:
            file.write("\n# @MARK@")
    except OSError:
        pass
