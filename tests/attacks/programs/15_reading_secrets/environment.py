"""Print every environment variable: its own, those of its parents, and what the C library holds. No secret may be there."""

import ctypes
import os

seen = [str(dict(os.environ))]
native = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
for i in range(200):
    if not native[i]:
        break
    seen.append(native[i].decode(errors="replace"))
for who in ("self", "1", str(os.getppid())):
    try:
        seen.append(open(f"/proc/{who}/environ").read())
    except OSError:
        pass
print("\n".join(seen))
