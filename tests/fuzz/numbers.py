"""Streams of extreme numbers: rows, weights and targets over all sizes that double precision has."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from tunefree import learners, losses
from tunefree.core.rows import dense, part, sparse
from tunefree.pool import views
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

SIZES = (0.0, 1e-300, 1e-150, 1e-8, 1.0, 1e8, 1e150, 1e300, 1.7976931348623157e308)


class Stream(NamedTuple):
    """Rows in order."""

    X: Any
    y: Any  # Labels, or numbers
    weight: np.ndarray


def numbers(rng: np.random.Generator, n: int) -> np.ndarray:
    """Numbers of one size, of a few sizes, or of all."""
    how = rng.integers(4)
    if how == 0:
        return rng.normal(size=n) * SIZES[rng.integers(1, len(SIZES) - 1)]
    if how == 1:
        return rng.choice(SIZES, n) * rng.choice([-1.0, 1.0], n)
    if how == 2:
        return rng.normal(size=n) * 10.0 ** rng.uniform(-300, 300, n)
    return np.where(rng.random(n) < 0.02, rng.choice(SIZES, n), rng.normal(size=n))


def weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """Weights of 1, of a spread around one size, or of all sizes from 1e-300 to 1e300."""
    how = rng.integers(4)
    if how == 0:
        return np.ones(n)
    if how == 1:
        return rng.choice([0.0, 1e-300, 1.0, 1e300], n)
    spread = rng.uniform(0, 25) if how == 2 else 300.0
    return 10.0 ** rng.uniform(-spread, spread, n)


def stream(rng: np.random.Generator, task: str, n: int = 300, d: int = 4, n_classes: int = 2) -> Stream:
    """A stream of rows, dense or sparse."""
    columns = np.column_stack([numbers(rng, n) for _ in range(d)])
    X: Any = dense(columns)
    if rng.random() < 0.3:
        X = sparse(np.arange(0, n * d + 1, d), np.tile(np.arange(1, d + 1), n), columns.reshape(-1))
    y: Any = numbers(rng, n) if task == "regression" else Labels.of(rng.integers(0, n_classes, n))
    return Stream(X, y, weights(rng, n))


def choice(rng: np.random.Generator, task: str) -> dict[str, Any]:
    """A learner with a loss, a view and an average or none; not all can be combined."""
    learner = str(rng.choice([*learners.ALL, "kernel-pistol"]))
    loss = str(rng.choice(losses.usage(task))).partition(":")[0]
    view = str(rng.choice(views.NAMES))
    return {"learner": learner, "loss": loss, "view": view, "average": bool(rng.integers(2))}


def outcome(rng: np.random.Generator, task: str, n_classes: int = 2, **options: Any) -> list[str]:
    """Learn and predict a stream: what of it is not a finite number, and what was warned of.

    Members may predict what is no finite number; the model may not.
    """
    shown = stream(rng, task, n_classes=n_classes)
    classes = range(n_classes) if task == "classification" else ()
    model = Model(task, n_features=5, classes=classes, **options)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        cut = int(rng.integers(1, 299))
        found = {}
        for start, stop in ((0, cut), (cut, 300)):
            X = part(shown.X, start, stop)
            y = shown.y[start:stop] if task == "regression" else Labels(shown.y.values, shown.y.codes[start:stop])
            predictions, losses = model.learn(X, y, shown.weight[start:stop])
            found[f"predictions from {start}"] = predictions
            is_later = task == "regression" or options["learner"].startswith("kernel")  # than it is predicted
            found[f"losses from {start}"] = np.nan_to_num(losses, posinf=np.inf) if is_later else losses
        model.freeze()
        found["new predictions"] = model.predict(shown.X)
        if task == "classification":
            found["probabilities"] = model.probabilities(found["new predictions"])
        found["shares"] = np.array([*model.predictor.shares().values()])
    wrong = [
        name for name, array in found.items() if np.isnan(array).any() or (np.isinf(array).any() and "pred" in name)
    ]
    return wrong + [str(warning.message) for warning in warned]
