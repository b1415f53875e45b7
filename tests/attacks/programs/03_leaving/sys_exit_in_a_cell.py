"""Leave Python politely in a cell. It must earn nothing."""

import sys

sys.exit(0)
