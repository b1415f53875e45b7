"""Fill the disk, here and in every temporary folder. Only its own scratch folder may be filled."""

import os

for folder in (".", "/tmp", "/var/tmp", "/dev/shm", "@OUT@", "@HOME@"):
    try:
        for i in range(100):
            with open(os.path.join(folder, f"@MARK@-{i}"), "wb") as file:
                file.write(bytes(10 * 2**20))
    except OSError:
        pass
