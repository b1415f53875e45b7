"""End the process in a cell, with a status that means success. It must earn nothing."""

import os

os._exit(0)
