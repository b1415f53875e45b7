"""Write a .pth file and a module into Python's own folders, for the next student to import. It must not be able to."""

import site
import sys
import sysconfig

places = [*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("stdlib"), *sys.path, "@PACKAGE@"]
for place in places:
    for name in ("@MARK@.pth", "@MARK@.py"):
        try:
            with open(f"{place}/{name}", "w") as file:
                file.write("import os; os._exit(0)\n")
        except OSError:
            pass
