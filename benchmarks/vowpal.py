"""Vowpal Wabbit: one pass over a text file, with its default settings and with eleven others.

The best of the twelve is chosen on the test rows. This favours Vowpal Wabbit, since test labels are not available to a
user.
"""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import VOWPAL

DEFAULT = "default"
RATES = (0.05, 0.1, 0.25, 1, 2, 5, 10, 20)  # and 0.5, the default
SETTINGS: dict[str, list[str]] = {DEFAULT: []}
SETTINGS |= {name: [name] for name in ("--coin", "--pistol", "--freegrad")}
SETTINGS |= {f"-l {rate}": ["-l", str(rate)] for rate in RATES}


class Problem(NamedTuple):
    """Text files of training and test rows, and the test targets."""

    folder: Path  # with train.vw and test.vw
    n_classes: int  # 0: regression
    targets: np.ndarray  # of the test rows: class indices from 0, or numbers
    options: tuple[str, ...] = ()  # of every run

    @classmethod
    def write(
        cls,
        folder: Path,
        train: Iterable[str],
        test: Iterable[str],
        n_classes: int,
        targets: np.ndarray,
        options: tuple[str, ...] = (),
    ) -> Problem:
        """Write the lines to files."""
        for name, lines in (("train", train), ("test", test)):
            (folder / f"{name}.vw.cache").unlink(missing_ok=True)
            with open(folder / f"{name}.vw", "w", encoding="utf-8") as file:
                file.writelines(lines)
        return cls(folder, n_classes, targets, options)


class Run(NamedTuple):
    """Results of a pass."""

    predictions: np.ndarray  # of the test rows: (n,) numbers, or (n, classes) log-probabilities
    seconds: float  # training time of the whole process, which reads text (the default) or a cache (the others)
    progressive: np.ndarray  # progressive predictions of the training rows; empty if not requested


def run(problem: Problem, setting: str = DEFAULT, loss: str | None = None, progressive: bool = False) -> Run:
    """Train on train.vw in one pass and predict test.vw.

    Parameters
    ----------
    problem : Problem
    setting : str
        A key of ``SETTINGS``.
    loss : str, optional
        "logistic" (the default for classes), "squared" (for numbers) or "quantile".
    progressive : bool, default False
        Whether to return the progressive predictions, each made before its row is learned.
    """
    loss = loss or ("logistic" if problem.n_classes else "squared")
    kind = ["--oaa", str(problem.n_classes)] if problem.n_classes > 2 else []
    cache = [] if setting == DEFAULT and not progressive else ["-c"]
    learn = [*kind, "--loss_function", loss, *SETTINGS[setting], *problem.options, "-f", "model"]
    written = "-r" if problem.n_classes else "-p"
    start = time.perf_counter()
    _call(problem, ["-d", "train.vw", *cache, *learn, *([written, "progressive"] if progressive else [])])
    seconds = time.perf_counter() - start
    _call(problem, ["-t", "-d", "test.vw", "-c", "-i", "model", written, "predictions"])
    known = _read(problem, "progressive") if progressive else np.empty(0)
    return Run(_read(problem, "predictions"), seconds, known)


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


def log_loss(targets: np.ndarray, predictions: np.ndarray) -> float:
    """Mean log-loss; infinite if a prediction is NaN."""
    mean = float(-predictions[np.arange(len(targets)), targets].mean())
    return math.inf if math.isnan(mean) else mean


def error(targets: np.ndarray, predictions: np.ndarray) -> float:
    """Classification error."""
    return float((predictions.argmax(axis=1) != targets).mean())
