"""Make a million files. The scratch folder must end it."""

import itertools

try:
    for i in itertools.count():
        open(f"@MARK@-{i}", "w").close()
except OSError:
    pass
