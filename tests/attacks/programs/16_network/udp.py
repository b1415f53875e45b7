"""Send a datagram. It must not be heard."""

import socket

try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        mouth.sendto(b"hello", ("127.0.0.1", int("@UDP@")))
except OSError:
    pass
