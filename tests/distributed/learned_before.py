"""What processes of workers begin with: all code that learning over shards compiles has been called once.

Workers are forked from a process that has imported this, so one that takes the place of a killed worker learns at once.
"""

import tempfile
from pathlib import Path

from tests.distributed.data import Here, parquet_of, people, shards
from tunefree.distributed import training
from tunefree.model_files.plan import Plan

with tempfile.TemporaryDirectory() as folder:
    training.SAMPLE = 300  # so that shards learn too
    cut_up = shards(parquet_of(Path(folder), people(600), 3))
    training.learn(Here(), training.Parts(cut_up, [[] for _ in cut_up]), Plan(target="rich"), lambda line: None)
