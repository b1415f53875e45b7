"""Leave shared memory, semaphores and message queues for others to find. Nothing may be left."""

import ctypes

libc = ctypes.CDLL(None)
key = int("@KEY@")
libc.shmget(key, 4096, 0o1666)
libc.semget(key, 1, 0o1666)
libc.msgget(key, 0o1666)
try:
    from multiprocessing import shared_memory

    kept = shared_memory.SharedMemory("@MARK@", create=True, size=4096)
except OSError:
    pass
