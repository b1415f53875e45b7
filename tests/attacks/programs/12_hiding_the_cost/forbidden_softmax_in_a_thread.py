"""Call the ready softmax of the exercise «write softmax» in another thread. It must earn nothing."""
# exercise: 05_softmax

import threading

import torch


def stable_softmax(x, dim=-1):
    found = []
    worker = threading.Thread(target=lambda: found.append(torch.softmax(x, dim)))
    worker.start()
    worker.join()
    return found[0].nan_to_num()
