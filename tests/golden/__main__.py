"""``python -m tests.golden record`` writes the results of all runs to a file, with which tests compare.

``record NAME ...`` writes those of runs whose names begin so.
"""

import sys

from tests.golden.recording import record
from tests.golden.runs import RUNS

if sys.argv[1:2] != ["record"]:
    sys.exit(__doc__)
record([run for run in RUNS if run.name.startswith(tuple(sys.argv[2:]) or "")])
