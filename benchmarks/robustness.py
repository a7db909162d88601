"""Adverse streams: test losses of the pool, and of the best of twelve settings of Vowpal Wabbit.

In the first part one row of real data is multiplied by a million, at three places of the stream. The result is the
pool's test log-loss divided by that on the clean stream. The second part has synthetic streams: heavy-tailed features,
a feature whose scale grows by a million along the stream (the test rows have its final scale), strongly correlated
features, and sample weights from 1/1000 to 1000. The result is the pool's test log-loss divided by that of Vowpal
Wabbit's best setting, chosen on the test rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import numpy as np
import vowpal
from common import keep
from scipy import sparse
from scipy.special import expit

from tunefree import TuneFreeClassifier

POISONED = ("adult", "spambase", "bank_additional_full")
TIMES = 1e6
TRAIN, TEST, FEATURES, SEEDS = 20_000, 10_000, 10, 5


def pool_loss(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Test log-loss after one pass in the given order."""
    model = TuneFreeClassifier().partial_fit(X, y, classes=[0, 1], sample_weight=weight)
    logs = model.predict_log_proba(X_test)
    return float(-logs[np.arange(len(y_test)), y_test].mean())


def poison() -> None:
    """One row multiplied by a million."""
    print("one row multiplied by 1e6: test log-loss over that of the clean stream")
    print("\n| stream | rows | clean | first row | second row | middle row |\n|---|---|---|---|---|---|")
    for data in datasets.available(list(POISONED)):
        problem = datasets.matrices(datasets.load(data))
        for kind, form in {"dense": np.asarray, "sparse": sparse.csr_array}.items():
            test = form(problem.X_test), problem.y_test
            clean = pool_loss(form(problem.X), problem.y, *test)
            ratios = []
            for row in (0, 1, len(problem.y) // 2):
                X = problem.X.copy()
                X[row] *= TIMES
                ratios.append(pool_loss(form(X), problem.y, *test) / clean)
            keep("robustness", f"{data.name} {kind}", {"clean": clean, "ratios": ratios})
            print(f"| {data.name} | {kind} | {clean:.4f} | {' | '.join(f'{r:.3f}' for r in ratios)} |", flush=True)


class Stream(NamedTuple):
    """Rows, the last of which are unweighted test rows."""

    X: np.ndarray  # (TRAIN + TEST, FEATURES)
    y: np.ndarray  # (TRAIN + TEST,) 0 or 1
    weight: np.ndarray  # (TRAIN,)


def labels(margins: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Sample labels with the given log-odds."""
    return (random.random(len(margins)) < expit(margins)).astype(np.int64)


def plain(random: np.random.Generator) -> Stream:
    """Normal features of equal scale, for comparison."""
    X = random.normal(size=(TRAIN + TEST, FEATURES))
    return Stream(X, labels(X @ random.normal(size=FEATURES), random), np.ones(TRAIN))


def heavy_tails(random: np.random.Generator) -> Stream:
    """Student-t features with 1.2 degrees of freedom, which have a mean but no variance."""
    X = random.standard_t(1.2, size=(TRAIN + TEST, FEATURES))
    return Stream(X, labels(X @ random.normal(size=FEATURES), random), np.ones(TRAIN))


def growing_scale(random: np.random.Generator) -> Stream:
    """The scale of the first feature grows by a factor of a million from the first training row to the last."""
    X, y, weight = plain(random)
    X[:, 0] *= TIMES ** (np.minimum(np.arange(len(X)), TRAIN) / TRAIN)
    return Stream(X, y, weight)


def correlated(random: np.random.Generator) -> Stream:
    """Each pair of features has a correlation of 0.99."""
    X = np.sqrt(0.99) * random.normal(size=(TRAIN + TEST, 1)) + 0.1 * random.normal(size=(TRAIN + TEST, FEATURES))
    return Stream(X, labels(X @ (5 * random.normal(size=FEATURES)), random), np.ones(TRAIN))


def weighted(random: np.random.Generator) -> Stream:
    """Normal features and sample weights from 1/1000 to 1000, uniform on a logarithmic scale."""
    return plain(random)._replace(weight=10 ** random.uniform(-3, 3, TRAIN))


STREAMS: dict[str, Callable[[np.random.Generator], Stream]] = {
    "normal features, for comparison": plain,
    "Student-t features, 1.2 degrees of freedom": heavy_tails,
    "a feature that grows by 1e6": growing_scale,
    "correlations of 0.99": correlated,
    "weights from 1e-3 to 1e3": weighted,
}


def lines(stream: Stream, start: int, stop: int) -> Iterator[str]:
    """Rows as Vowpal Wabbit text."""
    weight = np.concatenate([stream.weight, np.ones(TEST)])
    for row, y, importance in zip(stream.X[start:stop].tolist(), stream.y[start:stop], weight[start:stop], strict=True):
        yield f"{2 * y - 1} {importance:.6g} | {' '.join(f'{j}:{value!r}' for j, value in enumerate(row))}\n"


def theirs(stream: Stream) -> dict[str, float]:
    """Test log-losses of Vowpal Wabbit, by setting."""
    with tempfile.TemporaryDirectory() as name:
        parts = lines(stream, 0, TRAIN), lines(stream, TRAIN, TRAIN + TEST)
        problem = vowpal.Problem.write(Path(name), *parts, 2, stream.y[TRAIN:])
        runs = {setting: vowpal.run(problem, setting).predictions for setting in vowpal.SETTINGS}
    return {setting: vowpal.log_loss(stream.y[TRAIN:], predictions) for setting, predictions in runs.items()}


def generated() -> None:
    """Print the results on the synthetic streams."""
    print(f"\nsynthetic streams, {TRAIN} training rows: mean test log-loss over {SEEDS} streams, and the ratio's range")
    print("\n| stream | pool | VW default | VW best (which) | pool / best |\n|---|---|---|---|---|")
    for name, make in STREAMS.items():
        ours, default, best, which = [], [], [], []
        for seed in range(SEEDS):
            stream = make(np.random.default_rng(seed))
            X, y = stream.X, stream.y
            ours.append(pool_loss(X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:], stream.weight))
            losses = theirs(stream)
            which.append(min(losses, key=losses.__getitem__))
            default.append(losses[vowpal.DEFAULT])
            best.append(losses[which[-1]])
        ratios = np.array(ours) / best
        figures = {"ours": ours, "default": default, "best": best, "which": which}
        keep("robustness", name, figures)
        chosen = ", ".join(f"`{setting}`" for setting in sorted(set(which)))
        means = [float(np.mean(values)) for values in (ours, default, best)]
        span = f"{np.exp(np.log(ratios).mean()):.3f} ({ratios.min():.3f} to {ratios.max():.3f})"
        print(f"| {name} | {means[0]:.4f} | {means[1]:.4f} | {means[2]:.4f} ({chosen}) | {span} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=("poison", "generated"), help="one of the two tables")
    only = parser.parse_args().only
    if only != "generated":
        poison()
    if only != "poison":
        generated()


if __name__ == "__main__":
    main()
