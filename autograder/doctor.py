"""Test this machine: the sandbox by trying to break out of it, the device, the versions.

Every layer is tried alone: an escape runs as student code in a process from which the layers that would also stop it
are left out, and what happened is judged from outside. Then the layer itself is left out, and the same escape must
succeed; otherwise the first attempt proved nothing, and the doctor says so.
"""

import contextlib
import hashlib
import inspect
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import escapes
from .catalogue import Limits, catalogue
from .process import StudentProcess, Zygote
from .student.sandbox import LEFT_OUT
