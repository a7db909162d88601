"""Vowpal Wabbit: one pass over a text file, with its default settings and with eleven others.

The best of the twelve is chosen on the test rows. This favours Vowpal Wabbit, since test labels are not available to a
user.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import vowpalwabbit  # noqa: F401 - missing, it is an ImportError before anything is measured

VOWPAL = [sys.executable, "-m", "vowpalwabbit"]
DEFAULT = "default"
RATES = (0.05, 0.1, 0.25, 1, 2, 5, 10, 20)  # and 0.5, the default
SETTINGS: dict[str, list[str]] = {DEFAULT: []}
SETTINGS |= {name: [name] for name in ("--coin", "--pistol", "--freegrad")}
SETTINGS |= {f"-l {rate}": ["-l", str(rate)] for rate in RATES}


class Problem(NamedTuple):
    """Text files of training and test rows."""

    folder: Path  # with train.vw and test.vw
    n_classes: int  # 0: regression

    @classmethod
    def write(cls, folder: Path, train: Iterable[str], test: Iterable[str], n_classes: int) -> Problem:
        """Write the lines to files."""
        for name, lines in (("train", train), ("test", test)):
            (folder / f"{name}.vw.cache").unlink(missing_ok=True)
            with open(folder / f"{name}.vw", "w", encoding="utf-8") as file:
                file.writelines(lines)
        return cls(folder, n_classes)


def run(problem: Problem, setting: str = DEFAULT) -> np.ndarray:
    """Train on train.vw in one pass with a setting, a key of ``SETTINGS``, and predict test.vw.

    Returns
    -------
    predictions : array
        (n,) numbers, or (n, classes) log-probabilities.
    """
    loss = "logistic" if problem.n_classes else "squared"
    kind = ["--oaa", str(problem.n_classes)] if problem.n_classes > 2 else []
    _call(problem, ["-d", "train.vw", "-c", *kind, "--loss_function", loss, *SETTINGS[setting], "-f", "model"])
    _call(problem, ["-t", "-d", "test.vw", "-c", "-i", "model", "-r" if problem.n_classes else "-p", "predictions"])
    return _read(problem, "predictions")


def _call(problem: Problem, arguments: list[str]) -> None:
    done = subprocess.run([*VOWPAL, "--quiet", *arguments], cwd=problem.folder, check=False, capture_output=True)
    if done.returncode:
        raise SystemExit(f"vw {' '.join(arguments)}\n{done.stderr.decode()}")


def _read(problem: Problem, name: str) -> np.ndarray:
    """Read numbers, or margins as log-probabilities, normalised for one-against-all as by ``--probabilities``.

    Some settings diverge to infinities or NaN.
    """
    text = (problem.folder / name).read_text()
    if problem.n_classes == 0:
        return np.array(text.split(), np.float64)
    with np.errstate(invalid="ignore"):
        if problem.n_classes == 2:
            margins = np.array(text.split(), np.float64)
            return -np.column_stack([np.logaddexp(0, margins), np.logaddexp(0, -margins)])
        numbers = [part.partition(":")[2] for part in text.split()]
        logs = -np.logaddexp(0, -np.array(numbers, np.float64).reshape(-1, problem.n_classes))
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)


def loss_of(targets: np.ndarray, predictions: np.ndarray) -> float:
    """Mean log-loss, or the root of the mean squared error of numbers; infinite if a prediction is NaN."""
    if predictions.ndim == 1:
        loss = float(np.sqrt(((predictions - targets) ** 2).mean()))
    else:
        loss = float(-predictions[np.arange(len(targets)), targets].mean())
    return math.inf if math.isnan(loss) else loss
