"""Trainings that are killed at any moment and resumed, until they end: the bytes of one that was not.

Each attempt is a process forked from one that has read and compiled everything, so that most of its time is training.
"""

import multiprocessing
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tunefree.model_files.plan import Plan
from tunefree.stream import source, tables, text
from tunefree.stream.source import open_source
from tunefree.training.training import train

ROWS = 6000
EVERY = 500  # rows between checkpoints
BLOCK = 1 << 12  # bytes of a chunk
FORMATS = (".svm", ".csv")


def written(suffix: str, folder: Path) -> Path:
    """A file of rows."""
    rng, path = np.random.default_rng(0), folder / f"rows{suffix}"
    numbers, codes = rng.normal(size=(ROWS, 2)), rng.integers(0, 500, ROWS)
    rows = zip(numbers[:, 0], numbers[:, 1], codes, rng.random(ROWS) < 0.5, strict=True)
    if suffix == ".svm":
        path.write_text("".join(f"{y:d} 1:{a:.3f} 2:{b:.3f} {c + 3}:1\n" for a, b, c, y in rows))
    else:
        lines = (f"{a:.3f},{b:.3f},v{c},{'yes' if y else 'no'}\n" for a, b, c, y in rows)
        path.write_text("a,b,c,y\n" + "".join(lines))
    return path


def target(suffix: str, folder: Path) -> Any:
    """A function from seeds to how often a training was killed before it ended; else it raises."""
    data, output = written(suffix, folder), folder / "model"
    checkpoint = folder / "model.checkpoint"

    source.read_lines = partial(text.read_lines, block_size=BLOCK)
    tables.read_tables = partial(tables.read_tables, block_size=BLOCK)

    def attempt() -> None:
        plan = Plan(target=None if suffix == ".svm" else "y", learner="scinol2", task="classification", passes=2)
        train(open_source(str(data)), plan, None, checkpoint, EVERY, resume=True).save(output)
        checkpoint.unlink(missing_ok=True)

    def run() -> Any:
        process = multiprocessing.get_context("fork").Process(target=attempt)
        process.start()
        return process

    attempt()  # compiles
    begun = time.monotonic()
    run().join()
    whole, most = output.read_bytes(), time.monotonic() - begun

    def of_seed(seed: int) -> str:
        rng, kills = np.random.default_rng(seed), 0
        output.unlink(missing_ok=True)
        checkpoint.unlink(missing_ok=True)
        while True:
            process = run()
            process.join(rng.uniform(0, (1.0 + kills / 4) * most))  # longer after many kills, so that it ends
            if process.exitcode is None:
                os.kill(process.pid, signal.SIGKILL)
                process.join()
            kills += process.exitcode == -signal.SIGKILL
            assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
            assert not output.exists() or output.read_bytes() == whole, "another model"
            if process.exitcode == 0:
                assert not checkpoint.exists()
                return f"the same after {kills} kills"

    return of_seed
