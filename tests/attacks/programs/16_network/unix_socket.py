"""Talk to a unix socket of the machine, as a container's control socket would be. It must not be heard."""

import socket

for place in ("@UNIX@", "/var/run/docker.sock", "/run/systemd/private"):
    try:
        with socket.socket(socket.AF_UNIX) as mouth:
            mouth.connect(place)
            mouth.send(b"hello")
    except OSError:
        pass
