"""Long runs: `python -m tests.fuzz MINUTES [TARGET ...]`; what fails is kept in tests/fuzz/failures, by its seed.

Each target runs in a process of its own, so that one that dies tells which input it was. A process tries as many inputs
as its time allows, or as `--inputs` says. What it has compiled before, and what its files cost a disk, does not count:
the first inputs do not count, and files are in memory where the machine has a place for them.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.fuzz import kills, models, numbers, raw, readers
from tunefree.core.errors import ModelError

FAILURES = Path(__file__).parent / "failures"
SLOW = 10.0  # seconds of one input
WARM = 20  # inputs before those that count, while which code is compiled
IN_MEMORY = Path("/dev/shm")


class Place:
    """A file that is written again and again; it is never opened for that, which costs a disk milliseconds."""

    def __init__(self, path: Path) -> None:
        self.path, self.file = path, os.open(path, os.O_RDWR | os.O_CREAT)

    def write(self, data: bytes) -> None:
        """Replace what the file holds."""
        os.pwrite(self.file, data, 0)
        os.ftruncate(self.file, len(data))


def _reader(suffix: str, folder: Path) -> Any:
    whole, place = readers.corpus(suffix), Place(folder / f"t{suffix}")
    small = readers.small(suffix) or whole
    known = []
    for data in (small, whole):
        place.write(data)
        known.append(readers.encoder_of(place.path))
    if suffix in readers.TOKENS:  # of a few rows, which threads only slow down
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)

    def of_seed(seed: int) -> str:
        """Four of eight seeds read as training does, four as prediction does; one of four of the larger file."""
        is_whole = seed % 4 == 0
        place.write(readers.changed(whole if is_whole else small, suffix, np.random.default_rng(seed)))
        return readers.outcome(place.path, known[is_whole] if seed % 8 > 3 else None)

    return of_seed, place.path


def _model(kind: str, folder: Path) -> Any:
    arrays, header, data = models.saved(kind, str(folder))
    path = folder / f"lie-{kind}.model"

    def of_seed(seed: int) -> str:
        try:
            raw.save(path, *models.lie(arrays, header, np.random.default_rng(seed)))
        except Exception:  # safetensors cannot write it
            return "unwritable"
        return models.outcome(path, data)

    return of_seed, path


def _pool_stream(task: str, folder: Path) -> Any:
    from tests.fuzz.test_numbers import FEW

    def of_seed(seed: int) -> str:
        rng = np.random.default_rng(seed)
        wrong = numbers.outcome(rng, task, 2 + seed % 2, learner="pool", member_settings=FEW)
        assert not wrong, wrong
        return "finite"

    return of_seed, None


def _any_stream(task: str, folder: Path) -> Any:
    def of_seed(seed: int) -> str:
        rng = np.random.default_rng(seed)
        chosen = numbers.choice(rng, task)
        try:
            wrong = numbers.outcome(rng, task, 2 + seed % 2, **chosen)
        except ModelError:
            return "refused"  # what cannot be combined
        assert not wrong, (chosen, wrong)
        return "finite"

    return of_seed, None


def _kill(suffix: str, folder: Path) -> Any:
    return kills.target(suffix, folder), None


TASKS = ("classification", "regression")
TARGETS = {
    **{suffix: (_reader, suffix) for suffix in readers.FORMATS},
    **{f"model-{kind}": (_model, kind) for kind in models.KINDS},
    **{f"stream-{task}": (_pool_stream, task) for task in TASKS},
    **{f"any-{task}": (_any_stream, task) for task in TASKS},
    **{f"kill{suffix}": (_kill, suffix) for suffix in kills.FORMATS},
}


def attack(name: str, seconds: float, inputs: int | None, first: int, told: Any) -> None:
    """Try seeds until the time is over; tells the last one begun, and counts."""
    make, argument = TARGETS[name]
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        of_seed, path = make(argument, Path(folder))
        for seed in range(first - (1 if name.startswith("kill") else WARM), first):
            _tried(of_seed, seed)
        gc.collect()
        gc.freeze()  # what has been imported and compiled is looked at no more
        start, seed, counts = time.monotonic(), first, {}
        while time.monotonic() - start < seconds and (inputs is None or seed - first < inputs):
            told["seed"] = seed
            begun = time.monotonic()
            found = _tried(of_seed, seed)
            if time.monotonic() - begun > SLOW and not name.startswith(("any-", "kill")):  # that compile or wait
                found = "FAILED slow"
            if found.startswith("FAILED"):
                _keep(name, seed, path, found)
            counts[found] = counts.get(found, 0) + 1
            seed += 1
            if (seed - first) % 1000 == 0:
                told["result"] = _result(seed - first, counts, start)
        told["result"] = _result(seed - first, counts, start)


def _tried(of_seed: Any, seed: int) -> str:
    try:
        return str(of_seed(seed))
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"FAILED {type(error).__name__} ({where.filename.split('/')[-1]}:{where.lineno}) {str(error)[:200]}"


def _result(n: int, counts: dict[str, int], start: float) -> str:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.monotonic() - start
    return f"{n} inputs, {counts}, {most:.0f} MiB, {seconds:.0f} s, {n / max(seconds, 1e-9):.0f} a second"


def _keep(name: str, seed: int, path: Path | None, found: str) -> None:
    FAILURES.mkdir(exist_ok=True)
    if path is not None and path.exists():
        (FAILURES / f"{seed}{path.suffix}").write_bytes(path.read_bytes())
    print(f"{name}: seed {seed} {found}", flush=True)


def main() -> None:
    """Share the minutes out among the targets."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("minutes", type=float, help="for all targets together")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--inputs", type=int, help="no more of each target")
    parser.add_argument("--first", type=int, default=int(time.time()) * 1000, help="the first seed")
    given = parser.parse_args()
    print(f"seeds from {given.first}", flush=True)
    names, died, before = given.targets or list(TARGETS), False, set(FAILURES.glob("*"))
    for name in names:
        with multiprocessing.Manager() as manager:
            told, seconds = manager.dict(), 60 * given.minutes / len(names)
            process = multiprocessing.Process(target=attack, args=(name, seconds, given.inputs, given.first, told))
            process.start()
            process.join()
            died |= process.exitcode != 0
            end = f"DIED at seed {told.get('seed')} with status {process.exitcode} after {told.get('result')}"
            print(f"{name}: {end if process.exitcode else told.get('result')}", flush=True)
    sys.exit(died or bool(set(FAILURES.glob("*")) - before))


if __name__ == "__main__":
    main()
