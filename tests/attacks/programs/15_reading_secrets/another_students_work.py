"""Print what another student has handed in. It must not reach it."""

import glob

seen = []
for place in ["@NEIGHBOUR@", *glob.glob("@SUBMITTED@/*/*/*"), *glob.glob("../../*/*/*.ipynb")]:
    try:
        seen.append(open(place).read())
    except OSError:
        pass
print("".join(seen))
