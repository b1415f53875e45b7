"""Connect to a listener by TCP. It must not be heard."""

import socket

try:
    with socket.create_connection(("127.0.0.1", int("@TCP@")), timeout=2) as mouth:
        mouth.send(b"hello")
except OSError:
    pass
