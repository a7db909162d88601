"""Results as they are written down, and how two of them differ.

An array is one line: its shape, a hash of its bytes, and some of its values to ten digits. A text is its first lines,
with a hash where there are more. Another machine may round otherwise, by its mathematical library and its vector
instructions; there values are compared up to a tolerance, and hashes are not.
"""

import hashlib
import json
import platform
import re
import warnings
from functools import cache
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from tests.golden.runs import RUNS, Run

FILE = Path(__file__).with_name("golden.json")
LINES, VALUES = 24, 8  # of a text and of an array that are written down
ELSEWHERE, ELSEWHERE_IN_TEXTS = 1e-5, 1e-2  # relative differences of numbers that another machine may make
ROUNDING = 1e-9
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")

Recorded = str | list[str]


def machine() -> dict[str, str]:
    """What decides how floating-point numbers are rounded here."""
    config: dict[str, Any] = np.show_config(mode="dicts")  # type: ignore[call-overload, assignment]
    blas = {f"{pool['internal_api']} {pool.get('architecture')}" for pool in threadpoolctl.threadpool_info()}
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "library": " ".join(platform.libc_ver()),
        "vectors": " ".join(config["SIMD Extensions"].get("found", [])),
        "blas": ", ".join(sorted(name for name in blas if name.startswith("openblas"))),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that compute; they are told where results differ."""
    return {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pyarrow", "llvmlite")}


def recorded(value: Any) -> Recorded:
    """A result as it is written down: of a text a list of lines, of numbers one line."""
    if isinstance(value, str):
        lines = value.splitlines()
        rest = [f"(of {len(lines)} lines, {_hash(value.encode())})"] if len(lines) > LINES else []
        return lines[:LINES] + rest
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return [", ".join(map(str, array.ravel().tolist()))]
    array = np.ascontiguousarray(array, np.float64)
    some = array.ravel()[np.linspace(0, array.size - 1, min(VALUES, array.size)).astype(int)]
    shape = "x".join(map(str, array.shape))
    return f"{shape} {_hash(array.tobytes())} {' '.join(f'{x:.10g}' for x in some)}"


def difference(before: Recorded | None, now: Recorded | None, is_same_machine: bool) -> str:
    """How a result differs from the recorded one; empty if it does not."""
    if before == now:
        return ""
    if isinstance(before, str) and isinstance(now, str):
        return _of_arrays(before, now, is_same_machine)
    if isinstance(before, list) and isinstance(now, list):
        return _of_texts(before, now, is_same_machine)
    return f"recorded was {before!r}, and now it is {now!r}"


def _of_arrays(before: str, now: str, is_same_machine: bool) -> str:
    (shape, _, *values), (shape_now, _, *values_now) = before.split(), now.split()
    if shape != shape_now:
        return f"the shape was {shape}, and is {shape_now}"
    relative = _relative(values, values_now)
    if relative <= ELSEWHERE and not is_same_machine:
        return ""
    size = "in rounding only" if relative < ROUNDING else f"by {relative:.1g} of the largest value written down"
    return f"differs {size}:\n  recorded {before}\n  now      {now}"


def _of_texts(before: list[str], now: list[str], is_same_machine: bool) -> str:
    for i, (line, line_now) in enumerate(zip_longest(before, now, fillvalue="(no line)")):
        if line != line_now and (is_same_machine or (i < LINES and not _is_alike(line, line_now))):
            return f"line {i + 1} differs:\n  recorded {line}\n  now      {line_now}"
    return ""


def _is_alike(line: str, now: str) -> bool:
    """Whether lines have the same words, and numbers that differ little."""
    if NUMBER.sub("#", line).split() != NUMBER.sub("#", now).split():
        return False
    pairs = zip(NUMBER.findall(line), NUMBER.findall(now), strict=True)
    return all(_relative([a], [b]) < ELSEWHERE_IN_TEXTS for a, b in pairs)


def _relative(values: list[str], others: list[str]) -> float:
    """The largest difference, as a share of the largest value; infinite if others are infinite or missing."""
    a, b = np.array(values, np.float64), np.array(others, np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return np.inf
    return float(np.abs(a - b)[finite].max(initial=0.0) / max(np.abs(a)[finite].max(initial=0.0), 1e-300))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


@cache
def before() -> dict[str, Any]:
    """What is recorded."""
    return dict(json.loads(FILE.read_text()))


def results_of(run: Run) -> dict[str, Recorded]:
    """The results of a run as they are written down."""
    with warnings.catch_warnings(action="ignore"):
        return {part: recorded(value) for part, value in run.function().items()}


def differences(run: Run) -> list[str]:
    """How the results of a run differ from those recorded: a text for each."""
    expected, now = before()["runs"].get(run.name), results_of(run)
    if expected is None:
        return [f"there is no record of it: `python -m tests.golden record '{run.name}'`"]
    is_same = before()["machine"] == machine()
    parts = {part: difference(expected.get(part), now.get(part), is_same) for part in {**expected, **now}}
    return [f"{part}: {text}" for part, text in parts.items() if text]


def record(runs: list[Run]) -> None:
    """Write the results of runs, beside those of others that are recorded."""
    results = before()["runs"] if len(runs) < len(RUNS) else {}
    results |= {run.name: results_of(run) for run in runs}
    in_order = {run.name: results[run.name] for run in RUNS if run.name in results}
    whole = {"machine": machine(), "versions": versions(), "runs": in_order}
    FILE.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
