"""Start programs: a shell that writes a file and stays, and Python itself. Neither may run."""

import subprocess
import sys

for command in (
    ["sh", "-c", "echo x > /tmp/@MARK@; sleep 120 &"],
    [sys.executable, "-c", "import time; time.sleep(120)"],
):
    try:
        subprocess.Popen(command, start_new_session=True)
    except OSError:
        pass
