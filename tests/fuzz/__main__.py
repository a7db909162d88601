"""Long runs: `python -m tests.fuzz MINUTES [TARGET ...]`; what fails is kept in tests/fuzz/failures, by its seed.

Each target runs in a process of its own, so that one that dies tells which input it was.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import models, numbers, raw, readers

FAILURES = Path(__file__).parent / "failures"
SLOW, MOST_MEMORY = 10.0, 2**30  # seconds of one input, bytes


def _reader(suffix: str, folder: Path) -> Any:
    whole, path = readers.corpus(suffix), folder / f"t{suffix}"

    def of_seed(seed: int) -> str:
        path.write_bytes(readers.changed(whole, suffix, np.random.default_rng(seed)))
        return readers.outcome(path)

    return of_seed, path


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


def _stream(task: str, folder: Path) -> Any:
    from tests.fuzz.test_numbers import FEW

    def of_seed(seed: int) -> str:
        rng = np.random.default_rng(seed)
        wrong = numbers.outcome(rng, task, 2 + seed % 2, learner="pool", member_settings=FEW)
        assert not wrong, wrong
        return "finite"

    return of_seed, None


TARGETS = {
    **{suffix: (_reader, suffix) for suffix in readers.FORMATS},
    **{f"model-{kind}": (_model, kind) for kind in models.KINDS},
    **{f"stream-{task}": (_stream, task) for task in ("classification", "regression")},
}


def attack(name: str, seconds: float, first: int, told: Any) -> None:
    """Try seeds until the time is over; tells the last one begun, and counts."""
    make, argument = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        of_seed, path = make(argument, Path(folder))
        start, seed, counts = time.monotonic(), first, {}
        while time.monotonic() - start < seconds:
            told["seed"] = seed
            begun = time.monotonic()
            try:
                found = of_seed(seed)
            except BaseException as error:
                found = f"FAILED {type(error).__name__}"
                _keep(name, seed, path)
            if time.monotonic() - begun > SLOW and seed > first:  # the first one compiles
                found = "FAILED slow"
                _keep(name, seed, path)
            counts[found] = counts.get(found, 0) + 1
            seed += 1
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        told["result"] = f"{seed - first} inputs, {counts}, {most / 2**20:.0f} MiB"


def _keep(name: str, seed: int, path: Path | None) -> None:
    FAILURES.mkdir(exist_ok=True)
    if path is not None and path.exists():
        (FAILURES / f"{seed}{path.suffix}").write_bytes(path.read_bytes())
    print(f"{name}: seed {seed} failed", flush=True)


def main() -> None:
    """Share the minutes out among the targets."""
    minutes, names = float(sys.argv[1]), sys.argv[2:] or list(TARGETS)
    first, died = int(time.time()) * 1000, False
    for name in names:
        with multiprocessing.Manager() as manager:
            told = manager.dict()
            process = multiprocessing.Process(target=attack, args=(name, 60 * minutes / len(names), first, told))
            process.start()
            process.join()
            died |= process.exitcode != 0
            end = f"DIED at seed {told.get('seed')} with status {process.exitcode}"
            print(f"{name}: {told.get('result', end)}", flush=True)
    sys.exit(died or any(FAILURES.glob("*")))


if __name__ == "__main__":
    main()
