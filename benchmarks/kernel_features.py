"""Random Fourier and Nyström features: test errors of linear learners after one and five passes, and times.

Features are standardised by the means and standard deviations of the training rows. Bandwidths are multiples of gamma_0
that suit a support vector machine. Landmarks are chosen among the first rows of the stream.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from common import FOLDER
from datasets import ALL, load, matrices

from tunefree import losses
from tunefree.core import rows
from tunefree.kernel import fourier, nystroem
from tunefree.kernel.fourier import Fourier
from tunefree.kernel.kernels import median_gamma
from tunefree.kernel.nystroem import Nystroem
from tunefree.learners import ALL as LEARNERS
from tunefree.losses import objectives
from tunefree.model import passes

FIRST = 1024  # rows from which gamma_0 is computed
BLOCK = 512


class Task(NamedTuple):
    """A binary task from the classes of a data set, and the bandwidth gamma in units of gamma_0."""

    positive: Callable[[str], bool]
    width: float
    most: int = 20000  # training rows


TASKS = {
    "letter_recognition": Task(lambda label: label[0].upper() <= "M", 16.0),
    "satellite": Task(lambda label: label in ("red soil", "cotton crop", "grey soil"), 8.0),
    "spambase": Task(lambda label: label in ("spam", "1", "true"), 2.0),
    "shuttle": Task(lambda label: label in ("Rad.Flow", "1"), 4.0),
    "adult": Task(lambda label: ">50K" in label, 0.125, 10000),
    "mnist": Task(lambda label: int(float(label)) % 2 == 1, 4.0, 10000),
    "madelon": Task(lambda label: float(label) > 0.0, 16.0),
}
MAPS = {
    "fourier": (500, 2000, 8192),  # features
    "nystroem": (256, 512, 1024, 2048),
}
SETTINGS = (
    ("scinol2", {"epsilon": 1.0}),
    ("adagrad", {"eta": 0.1}),
    ("adagrad", {"eta": 0.5}),
    ("nag", {"eta": 0.5}),
    ("nag", {"eta": 2.0}),
)


class Data(NamedTuple):
    """Standardised rows with targets of -1 and 1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def data_of(name: str) -> Data:
    """The rows of a data set with binary targets."""
    task, split = TASKS[name], load(next(data for data in ALL if data.name == name))
    m = matrices(split)
    signs = np.array([1.0 if task.positive(label) else -1.0 for label in m.classes])
    X, y = m.X[: task.most], signs[m.y[: task.most]]
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0.0] = 1.0
    return Data((X - centre) / scale, y, (m.X_test - centre) / scale, signs[m.y_test])


def map_of(kind: str, size: int, data: Data, width: float) -> Callable[[np.ndarray], Any]:
    """The feature map for a multiple of gamma_0."""
    n_features = data.X.shape[1] + 1
    gamma = width * median_gamma(data.X[:FIRST], data.y[:FIRST])
    if kind == "fourier":
        made = Fourier.create(n_features, size // 2)
        return lambda X: fourier.features(fourier.angles(made, rows.dense(X)), gamma)
    dictionary = Nystroem.create(rows.dense(data.X[: max(FIRST, size)]), n_features, gamma, n_landmarks=size)
    return lambda X: nystroem.features(dictionary, rows.dense(X))


def error(state: Any, phi: Callable[[np.ndarray], Any], data: Data) -> float:
    """Test error."""
    d, wrong = len(state.coordinates), 0
    weights, units = np.empty((d, 1)), np.empty(d)
    passes.read(state, weights, units)
    for i in range(0, len(data.y_test), BLOCK):
        X = phi(data.X_test[i : i + BLOCK])
        margins = np.empty((rows.n_rows(X), 1))
        passes.score(weights, units, X, margins)
        wrong += int(np.sum((margins[:, 0] > 0.0) != (data.y_test[i : i + BLOCK] > 0.0)))
    return wrong / len(data.y_test)


def run(kind: str, size: int, data: Data, width: float, n_passes: int) -> dict[str, Any]:
    """Test errors after the first and the last pass, and median microseconds for each row over blocks."""
    phi = map_of(kind, size, data, width)
    d = phi(data.X[:2]).values.shape[1] + 1
    states = {f"{name} {value:g}": LEARNERS[name].create(d, 1, **kw) for name, kw in SETTINGS for value in kw.values()}
    errors: dict[str, list[float]] = {name: [] for name in states}
    seconds: dict[str, list[float]] = {name: [] for name in ("features", *states)}
    objective = objectives.Binary(losses.Logistic(), 0.0)
    for t in range(n_passes):
        for i in range(0, len(data.y), BLOCK):
            started = time.perf_counter()
            X, y = phi(data.X[i : i + BLOCK]), rows.read_only(data.y[i : i + BLOCK], np.float64)
            seconds["features"].append((time.perf_counter() - started) / len(y))
            for name, state in states.items():
                started = time.perf_counter()
                passes.learn(state, objective, X, y, rows.read_only(np.ones(len(y)), np.float64), np.empty((len(y), 1)))
                seconds[name].append((time.perf_counter() - started) / len(y))
        if t in (0, n_passes - 1):
            for name, state in states.items():
                errors[name].append(error(state, phi, data))
    return {"errors": errors, "microseconds": {name: 1e6 * float(np.median(s)) for name, s in seconds.items()}}


def show(results: dict[str, Any]) -> None:
    """Print the table: test errors of the learner that is best after one pass, and times."""
    names = sorted({key.split()[0] for key in results}, key=list(TASKS).index)
    print("| features | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for kind, sizes in MAPS.items():
        for size in sizes:
            cells = []
            for name in names:
                result = results.get(f"{name} {kind} {size}")
                if result is None:
                    cells.append("-")
                    continue
                best = min(result["errors"], key=lambda learner: result["errors"][learner])
                first, last = (100.0 * value for value in (result["errors"][best][0], result["errors"][best][-1]))
                cost = result["microseconds"]
                cells.append(f"{first:.2f} / {last:.2f} ({best}, {cost['features']:.0f} + {cost[best]:.0f} us)")
            print(f"| {kind} {size} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run the selected data sets, store the results and print all stored ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(TASKS))
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    path = FOLDER / "kernel_features.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in () if arguments.show else arguments.sets.split(","):
        data = data_of(name)
        for kind, sizes in MAPS.items():
            for size in sizes:
                key = f"{name} {kind} {size}"
                results[key] = run(kind, size, data, TASKS[name].width, arguments.passes)
                print(key, json.dumps(results[key]), flush=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(results, indent=1))
    show(results)


if __name__ == "__main__":
    main()
