"""Results that stay the same to the bit, whatever is rebuilt inside.

``python -m tests.golden record`` writes the results of all runs to a file, or with names those of some; the tests
compare. ``show NAME`` prints all of a run, and ``time`` what each takes.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.results import Recorded, difference, machine, recorded, versions
from tests.golden.runs import Run, runs

FILE = Path(__file__).with_name("golden.json")


@cache
def before() -> dict[str, Any]:
    """What is recorded."""
    return dict(json.loads(FILE.read_text()))


def results_of(run: Run) -> dict[str, Recorded]:
    """The results of a run as they are written down."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: recorded(value) for name, value in run.function().items()}


def differences(run: Run) -> list[str]:
    """How the results of a run differ from those recorded: a line for each."""
    expected, now = before()["runs"].get(run.name), results_of(run)
    if expected is None:
        return ["there is no record of this run; write one by `python -m tests.golden record NAME`"]
    is_same = before()["machine"] == machine()
    parts = [*now, *(expected.keys() - now.keys())]
    found = {part: difference(expected.get(part), now.get(part), is_same) for part in parts}
    return [f"{part}: {line}" for part, line in found.items() if line]


def chosen(names: list[str]) -> list[Run]:
    """The runs whose names begin so; all of them where there is no name."""
    return [run for run in runs() if not names or any(run.name.startswith(name) for name in names)]


def record(names: list[str]) -> None:
    """Write the results of runs, beside those of others that still exist."""
    old = before()["runs"] if names else {}
    made: dict[str, Any] = {}
    for run in chosen(names):
        try:
            made[run.name] = results_of(run)
        except Exception:
            traceback.print_exc()
            sys.exit(f"no result of {run.name!r}; nothing was written")
    results = {run.name: made.get(run.name, old.get(run.name)) for run in runs()}
    whole = {"machine": machine(), "versions": versions(), "runs": {k: v for k, v in results.items() if v is not None}}
    FILE.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def show(names: list[str]) -> None:
    """Print all that runs return."""
    for run in chosen(names):
        for part, value in run.function().items():
            print(f"== {run.name}, {part}\n{value}")


def measure(names: list[str]) -> None:
    """Print the processor time of each run, those that take longest last."""
    times = {}
    for run in chosen(names):
        start = time.process_time()
        run.function()
        times[run] = time.process_time() - start
    for run, seconds in sorted(times.items(), key=lambda item: item[1]):
        print(f"{seconds:7.2f} {'slow' if run.is_slow else '    '} {run.name}")
    print(f"{sum(times.values()):.1f} s, {sum(s for run, s in times.items() if not run.is_slow):.1f} s not slow")
