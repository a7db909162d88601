"""Kernel PiSTOL in bounded memory, by limits on support points and Fourier features.

Prints test error, memory and processor time of binary tasks with standardised features: one pass, all bandwidths of the
grid at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from common import names_in, parser_of
from datasets import ALL, few, load, matrices

from tunefree.core import rows
from tunefree.model.model import Model
from tunefree.model.targets import Labels
from tunefree.papers.kernel import feature_expansion
from tunefree.papers.kernel.kernel_bank import KernelConfig

BOUNDS = ((None, 0), (1024, 1024), (1024, 4096), (4096, 1024), (4096, 4096), (4096, 16384))  # points, features


class Task(NamedTuple):
    """A binary task from the classes of a data set."""

    positive: Callable[[str], bool]
    most: int = 20000  # training rows


TASKS = {
    "letter_recognition": Task(lambda label: label[0].upper() <= "M"),
    "satellite": Task(lambda label: label in ("red soil", "cotton crop", "grey soil")),
    "spambase": Task(lambda label: label in ("spam", "1", "true")),
    "shuttle": Task(lambda label: label in ("Rad.Flow", "1")),
    "adult": Task(lambda label: ">50K" in label, 10000),
    "mnist": Task(lambda label: int(float(label)) % 2 == 1, 10000),
    "madelon": Task(lambda label: float(label) > 0.0),
}


class Data(NamedTuple):
    """Standardised rows with targets of -1 and 1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def data_of(name: str, quick: bool) -> Data:
    """The rows of a data set with binary targets."""
    task, split = TASKS[name], load(next(data for data in ALL if data.name == name))
    m = matrices(few(split) if quick else split)
    signs = np.array([1.0 if task.positive(label) else -1.0 for label in m.classes])
    X, y = m.X[: task.most], signs[m.y[: task.most]]
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0.0] = 1.0
    return Data((X - centre) / scale, y, (m.X_test - centre) / scale, signs[m.y_test])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each data set and limit."""
    parser = parser_of(__doc__)
    parser.add_argument("--sets", type=names_in, default=("letter_recognition", "adult"))
    options = parser.parse_args(arguments)
    print("| set | max_support | features | error | switched after | MB | seconds |\n|---|---|---|---|---|---|---|")
    for name in ("adult",) if options.quick else options.sets:
        data = data_of(name, options.quick)
        y, y_test = ((signs > 0).astype(np.int64) for signs in (data.y, data.y_test))
        for bound, n_features in ((128, 64),) if options.quick else BOUNDS:
            choice, started = KernelConfig(max_support=bound), time.process_time()
            model = Model(
                "classification", "kernel-pistol", "smoothed-hinge", True, {"growth": 1.0}, "steady", [0, 1],
                data.X.shape[1] + 1, choice,
            )  # fmt: skip
            with patch.object(feature_expansion, "affordable", lambda _, n=n_features: n):
                model.learn(rows.dense(data.X), Labels([0, 1], y), np.ones(len(y)))
            seconds = time.process_time() - started
            wrong = model.errors(Labels([0, 1], y_test), model.predict(rows.dense(data.X_test))).mean()
            size = sum(array.nbytes for array in model.save_state()[0].values()) / 1e6
            cells = (
                name,
                bound,
                n_features,
                f"{100 * wrong:.2f}",
                model.banks[0].switched,
                f"{size:.1f}",
                f"{seconds:.0f}",
            )
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
