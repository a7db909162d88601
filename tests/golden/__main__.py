"""``python -m tests.golden record`` writes the results of all runs to a file, with which tests compare.

``record NAME ...`` writes those of runs whose names begin so, and ``show NAME ...`` prints all of them.
"""

import sys

from tests.golden.recording import record, show
from tests.golden.runs import RUNS

COMMANDS = {"record": record, "show": show}

if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(__doc__)
COMMANDS[sys.argv[1]]([run for run in RUNS if run.name.startswith(tuple(sys.argv[2:]) or "")])
