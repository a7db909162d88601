"""``python -m tests.golden record|show|time [NAME ...]``."""

import sys

from tests.golden.golden import __doc__ as usage
from tests.golden.golden import measure, record, show

COMMANDS = {"record": record, "show": show, "time": measure}

if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(usage)
COMMANDS[sys.argv[1]](sys.argv[2:])
