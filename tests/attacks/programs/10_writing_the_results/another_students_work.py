"""Overwrite what another student has handed in. It must not reach it."""

for mode in ("w", "a", "r+"):
    try:
        with open("@NEIGHBOUR@", mode) as file:
            file.write("@MARK@ was here")
    except OSError:
        pass
