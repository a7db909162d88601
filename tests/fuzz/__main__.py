"""Long runs: `python -m tests.fuzz MINUTES [TARGET ...]`; what fails is kept in tests/fuzz/failures, by its seed.

Each target runs in a process of its own, so that one that dies tells which input it was, and one after the other, since
what was compiled for ever new combinations stays. Files are in memory where the machine has a place for them.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.fuzz import kills, models, numbers, readers
from tunefree.core.errors import ModelError

FAILURES = Path(__file__).parent / "failures"
FAILED = 3  # the status of a process in which an input failed
SLOW = 10.0  # seconds of one input
WARM = 20  # inputs before those that count, while which code is compiled
FEW, MANY = 400, 10**9  # inputs of a process: of any combinations, of others
IN_MEMORY = Path("/dev/shm")


def _reader(suffix: str, folder: Path) -> Any:
    whole, place = readers.corpus(suffix), folder / f"t{suffix}"
    place.write_bytes(whole)
    known = readers.encoder_of(place)

    def of_seed(seed: int) -> str:
        """Four of eight seeds read as training does, four as prediction does."""
        place.write_bytes(readers.changed(whole, suffix, np.random.default_rng(seed)))
        return readers.outcome(place, known if seed % 8 > 3 else None)

    return of_seed, place


def _model(kind: str, folder: Path) -> Any:
    arrays, header, data = models.saved(kind, str(folder))
    path = folder / f"lie-{kind}.model"
    models.write(path, arrays, header)
    assert models.outcome(path, data) == "predicts"

    def of_seed(seed: int) -> str:
        try:
            models.write(path, *models.lie(arrays, header, np.random.default_rng(seed)))
        except Exception:  # it has no bytes, or no JSON
            return "unwritable"
        return models.outcome(path, data)

    return of_seed, path


def _stream(name: str, folder: Path) -> Any:
    def of_seed(seed: int) -> str:
        rng = np.random.default_rng(seed)
        kind, task = name.split("-")
        chosen = {"learner": "pool"} if kind == "stream" else numbers.choice(rng, task)
        try:
            wrong = numbers.outcome(rng, task, 2 + seed % 2, **chosen)
        except ModelError:
            if kind == "stream":
                raise
            return "refused"  # what cannot be combined
        assert not wrong, (chosen, wrong)
        return "finite"

    return of_seed, None


def _kill(suffix: str, folder: Path) -> Any:
    return kills.target(suffix, folder), None


STREAMS = tuple(f"{kind}-{task}" for kind in ("stream", "any") for task in ("classification", "regression"))
TARGETS = {
    **{suffix: (_reader, suffix) for suffix in readers.FORMATS},
    **{f"model-{kind}": (_model, kind) for kind in models.KINDS},
    **{name: (_stream, name) for name in STREAMS},
    **{f"kill{suffix}": (_kill, suffix) for suffix in kills.FORMATS},
}


def attack(name: str, until: float, seeds: range, reached: Any) -> None:
    """Try seeds until the time is over; ``reached`` holds the latest of them. The status tells whether one failed."""
    make, argument = TARGETS[name]
    if name in readers.TOKENS:  # of a few rows, which threads only slow down
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        of_seed, path = make(argument, Path(folder))
        for seed in range(seeds.start - (1 if name.startswith("kill") else WARM), seeds.start):
            _tried(of_seed, seed)
        first = begun = time.monotonic()
        for seed in seeds:
            if begun > until:
                break
            reached.value, outcome, before = seed, _tried(of_seed, seed), begun
            begun = time.monotonic()
            if begun - before > SLOW and not name.startswith(("any-", "kill")):  # that compile or wait
                outcome = "FAILED slow"
            if outcome.startswith("FAILED"):
                _keep(name, seed, path, outcome)
            found[outcome] += 1
    print(f"{name}: {found.total()} inputs in {begun - first:.0f} s, {dict(found)}", flush=True)
    sys.exit(FAILED if any(outcome.startswith("FAILED") for outcome in found) else 0)


def _tried(of_seed: Any, seed: int) -> str:
    try:
        return str(of_seed(seed))
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"FAILED {type(error).__name__} ({where.filename.split('/')[-1]}:{where.lineno}) {str(error)[:200]}"


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
    options = parser.parse_args()
    print(f"seeds from {options.first}", flush=True)
    names, seconds = options.targets or list(TARGETS), 60 * options.minutes
    failed = [_run(name, seconds / len(names), options.inputs or MANY, options.first) for name in names]
    sys.exit(any(failed))


def _run(name: str, seconds: float, inputs: int, first: int) -> bool:
    """Attack one target, by one process after the other; whether an input failed or one of them died."""
    until, size, failed = time.monotonic() + seconds, FEW if name.startswith("any-") else MANY, False
    for start in range(first, first + inputs, size):
        reached = multiprocessing.Value("q", start)
        asked = name, until, range(start, min(start + size, first + inputs)), reached
        process = multiprocessing.Process(target=attack, args=asked)
        process.start()
        process.join()
        if process.exitcode not in (0, FAILED):
            print(f"{name}: DIED at seed {reached.value} with status {process.exitcode}", flush=True)
            return True
        failed |= process.exitcode == FAILED
        if time.monotonic() > until:
            break
    return failed


if __name__ == "__main__":
    main()
