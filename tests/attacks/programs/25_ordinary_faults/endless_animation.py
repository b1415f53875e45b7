"""Show picture after picture. It must come to an end, and earn nothing."""

import matplotlib.pyplot as plt

while True:
    plt.plot([1, 2])
    plt.show()
