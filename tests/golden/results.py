"""Results as they are written down, and how two of them differ.

An array is one line: its shape, a hash of its bytes, and some of its values to ten digits. A text is its first lines,
and a hash of all of it. Numbers on another machine may differ in the last bits, because its mathematical library and
vector instructions round otherwise; then values are compared up to a tolerance, and hashes are not.
"""

from __future__ import annotations

import hashlib
import platform
import re
from importlib.metadata import version
from typing import Any

import numpy as np
import threadpoolctl

LINES, VALUES = 30, 8  # of a text and of an array that are written down
ELSEWHERE = 1e-5  # relative difference of numbers that another machine may make
ROUNDING = 1e-9
VECTORS = ("AVX2", "FMA3", "AVX512F", "NEON", "ASIMD", "SVE")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "llvmlite")

Recorded = str | list[str]


def machine() -> dict[str, str]:
    """What decides how floating-point numbers are rounded here."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[call-overload, index]
    kernels = {f"{pool['internal_api']} {pool.get('architecture')}" for pool in threadpoolctl.threadpool_info()}
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "library": " ".join(platform.libc_ver()),
        "vectors": " ".join(name for name in VECTORS if name in found),
        "kernels": ", ".join(sorted(name for name in kernels if "openblas" in name)),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that compute; they are told where results differ."""
    return {name: version(name) for name in PACKAGES}


def recorded(value: Any) -> Recorded:
    """A result as it is written down: of a text a list of lines, of anything else one line."""
    if isinstance(value, str):
        lines = value.splitlines()
        return [*lines[:LINES], f"({len(lines)} lines, {_hash(value.encode())})"]
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return recorded("\n".join(map(str, array.ravel().tolist())))
    array = np.ascontiguousarray(array, np.float64)
    some = array.ravel()[np.linspace(0, array.size - 1, min(VALUES, array.size)).astype(int)]
    shape = "x".join(map(str, array.shape)) or "number"
    return f"{shape} {_hash(array.tobytes())} {' '.join(f'{x:.10g}' for x in some)}"


def difference(before: Recorded | None, now: Recorded | None, is_same_machine: bool) -> str:
    """How a result differs from the recorded one; empty if it does not."""
    if before == now:
        return ""
    if before is None or now is None or type(before) is not type(now):
        return f"recorded was {before!r}, and now it is {now!r}"
    if isinstance(before, str):
        return _of_arrays(before, str(now), is_same_machine)
    return _of_texts(before, list(now), is_same_machine)


def _of_arrays(before: str, now: str, is_same_machine: bool) -> str:
    (shape, _, *values), (shape_now, _, *values_now) = before.split(" "), now.split(" ")
    if shape != shape_now:
        return f"the shape was {shape}, and is {shape_now}"
    relative = _relative(values, values_now)
    if relative <= ELSEWHERE and not is_same_machine:
        return ""
    if relative < ROUNDING:
        return f"differs in rounding: some bits of {now!r}, but of the values written down none by more than 1e-9"
    return f"differs by {relative:.1g} of the largest value: recorded {before!r}, now {now!r}"


def _of_texts(before: list[str], now: list[str], is_same_machine: bool) -> str:
    for i, (line, line_now) in enumerate(zip(before[:-1], now[:-1], strict=False), 1):
        if line != line_now and (is_same_machine or not _is_alike(line, line_now)):
            return f"line {i} was {line!r}, and is {line_now!r}"
    if len(before) == len(now) and not is_same_machine:
        return ""
    return f"later lines differ: {before[-1]} before, {now[-1]} now; run `python -m tests.golden show NAME`"


def _is_alike(line: str, now: str) -> bool:
    """Whether lines have the same words, and numbers that differ little."""
    numbers, numbers_now = NUMBER.findall(line), NUMBER.findall(now)
    same_words = NUMBER.sub("#", line).split() == NUMBER.sub("#", now).split()
    return same_words and all(_relative([a], [b]) < 10**-2 for a, b in zip(numbers, numbers_now, strict=True))


def _relative(values: list[str], others: list[str]) -> float:
    """The largest difference, as a share of the largest value."""
    a, b = np.array(values, np.float64), np.array(others, np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return np.inf
    return float(np.abs(a - b)[finite].max(initial=0.0) / max(np.abs(a)[finite].max(initial=0.0), 1e-300))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
