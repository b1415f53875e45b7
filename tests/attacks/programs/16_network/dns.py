"""Look up a name that holds a message, as a way around closed ports. It must resolve nothing."""

import socket
import urllib.request

try:
    print("@MARK@ read " + "this:", socket.getaddrinfo("example.com", 443))
except OSError:
    pass
try:
    print("@MARK@ read " + "this:", urllib.request.urlopen("http://127.0.0.1:@TCP@/secret", timeout=2).status)
except OSError:
    pass
