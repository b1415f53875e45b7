"""Print what lies in the home folder of whoever grades. It must not reach it."""

import os

seen = []
for home in ("@HOME@", os.path.expanduser("~"), os.environ.get("HOME", "/root"), "/root"):
    for here, _, names in os.walk(home):
        for name in names[:50]:
            try:
                seen.append(open(os.path.join(here, name), errors="replace").read(10_000))
            except OSError:
                pass
print("".join(seen))
