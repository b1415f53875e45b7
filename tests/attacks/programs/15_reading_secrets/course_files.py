"""Read suites, references, mistakes and solutions. None may be there."""

import glob

found = []
for pattern in ("suites/*.py", "reference/*.py", "mistakes/*.py", "catalogue.toml", "../solutions/*/*.ipynb"):
    for place in glob.glob("@PACKAGE@/" + pattern):
        try:
            found.append(open(place).read()[:100])
        except OSError:
            pass
if found:
    raise RuntimeError("@MARK@ read " + "this: " + found[0])
