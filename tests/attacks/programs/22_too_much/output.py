"""Print far more than anybody will read. It must be cut."""
# right answers follow

for _ in range(100_000):
    print("x" * 10_000)
