"""What processes of workers begin with: all code that learning over shards compiles has been called once.

Workers are forked from a process that has imported this, so one that takes the place of a killed worker learns at once.
"""

import tempfile
from pathlib import Path

from tests.distributed.data import learned, parquet_of, people
from tunefree.distributed import training

with tempfile.TemporaryDirectory() as folder:
    training.SAMPLE = 300  # so that shards learn too
    learned(parquet_of(Path(folder), people(600), 3))
