"""Write a gigabyte straight to the descriptors of stdout and stderr. It must go nowhere."""
# right answers follow

import os

for _ in range(1000):
    os.write(1, b"x" * 2**20)
    os.write(2, b"x" * 2**20)
