"""Checks on random streams that an algorithm follows the protocol."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tunefree.papers.algorithm import Stream
from tunefree.papers.playing import Result, play

STREAMS = 20


def check(algorithm: Any, loss: str = "logistic", classes: int = 2) -> list[str]:
    """Check that an algorithm follows the protocol of :func:`tunefree.papers.playing`.

    Parameters
    ----------
    algorithm : Algorithm, or a class of algorithms that needs no arguments
    loss : str, default "logistic"
    classes : int, default 2
        Number of classes. With more than two, the algorithm has several outputs.

    Returns
    -------
    list of str
        A sentence for each check that passed.

    Raises
    ------
    AssertionError
        If a check fails. The message has the actual and the expected behaviour.

    Examples
    --------
    >>> from tunefree.papers import NAG, check
    >>> len(check(NAG))
    6
    >>> class Peeks(NAG):
    ...     def predict(self, x):
    ...         return super().predict(x) + getattr(self, "kept", 0.0)
    ...     def update(self, x, slope):
    ...         self.kept = 1.0
    >>> check(Peeks)
    Traceback (most recent call last):
    AssertionError: Peeks remembers an earlier stream; begin() must forget everything but the parameters
    """
    learner = algorithm() if isinstance(algorithm, type) else algorithm
    name = type(learner).__name__
    _require_methods(learner, name, classes)
    checks = _repeats, _predicts_first, _has_weights, _is_finite, _survives_extremes, _keeps_its_bound
    return [run(learner, name, loss, classes) for run in checks]


def _require_methods(learner: Any, name: str, classes: int) -> None:
    missing = [method for method in ("begin", "predict", "update") if not callable(getattr(learner, method, None))]
    assert not missing, f"{name} has no method {missing[0]}(); see tunefree.papers.Algorithm for its methods"
    begun = copy.deepcopy(learner)
    begun.begin(Stream(3, classes if classes > 2 else 1, 30, 1.0))
    assert hasattr(begun, "weights"), (
        f"{name} has no weights after begin(); they are (d, K) of the function it predicts by"
    )


def _stream(seed: int, classes: int, n: int = 30, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm at most 1, and labels 0 .. classes - 1, or -1 and +1 for two classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.7)
    X /= max(float(np.linalg.norm(X, axis=1).max()), 1.0)
    codes = np.r_[np.arange(classes), random.integers(0, classes, n - classes)]
    return X, codes if classes > 2 else 2 * codes - 1


def _play(learner: Any, loss: str, classes: int, seed: int = 0) -> Result:
    return play(learner, *_stream(seed, classes), loss=loss)


def _repeats(learner: Any, name: str, loss: str, classes: int) -> str:
    result = _play(learner, loss, classes)
    second = play(result.algorithm, *_stream(0, classes), loss=loss)
    same = np.array_equal(result.predictions, second.predictions)
    assert same, f"{name} remembers an earlier stream; begin() must forget everything but the parameters"
    return "begin() forgets earlier streams, and a stream has the same predictions each time"


def _predicts_first(learner: Any, name: str, loss: str, classes: int) -> str:
    X, y = _stream(1, classes)
    changed = y.copy()
    changed[len(y) // 2 :] = np.roll(y[len(y) // 2 :], 1)
    half = len(y) // 2 + 1
    first, second = play(learner, X, y, loss).predictions[:half], play(learner, X, changed, loss).predictions[:half]
    assert np.array_equal(first, second), f"{name} predicts rows by targets that come later"
    return "a prediction depends on no target of its round or later"


def _has_weights(learner: Any, name: str, loss: str, classes: int) -> str:
    result = _play(learner, loss, classes, 2)
    n = result.X.shape[1] if result.gram is None else result.rounds
    shape = n, result.stream.n_outputs
    assert result.weights.shape == shape, f"weights of {name} have shape {result.weights.shape}, not {shape}"
    return "weights have a row for each feature, or each round with a kernel, and a column for each output"


def _is_finite(learner: Any, name: str, loss: str, classes: int) -> str:
    for seed in range(STREAMS):
        result = _play(learner, loss, classes, seed)
        finite = np.isfinite(result.predictions).all() and np.isfinite(result.weights).all()
        assert finite, f"{name} makes numbers that are not finite of rows of norm at most 1 (stream {seed})"
    return f"predictions and weights are finite on {STREAMS} random streams"


def _survives_extremes(learner: Any, name: str, loss: str, classes: int) -> str:
    X, y = _stream(3, classes)
    X = X.copy()
    X[:, 0] = 0.0
    X[::5] = 0.0
    predictions = play(learner, X, y, loss).predictions
    assert np.isfinite(predictions).all(), f"{name} makes numbers that are not finite of a column and rows of zeros"
    return "a column of zeros and rows of zeros are learned"


def _keeps_its_bound(learner: Any, name: str, loss: str, classes: int) -> str:
    random, bounded = np.random.default_rng(4), 0
    for seed in range(STREAMS):
        result = _play(learner, loss, classes, seed)
        scale = 10.0 ** random.uniform(-1, 1)
        comparator = result.comparator(scale * random.normal(size=result.weights.shape))
        bound = result.bound(comparator)
        if bound.value is None or "mistakes" in bound.theorem:
            continue
        bounded += 1
        regret = result.regret(comparator)
        assert regret <= bound.value + 1e-9 * (1.0 + abs(bound.value)), (
            f"the regret of {name} is {regret:g} and its bound is {bound.value:g} ({bound.theorem}, stream {seed})"
        )
    if not bounded:
        return "no bound is claimed on these streams"
    return f"the regret is within the bound on the {bounded} of {STREAMS} streams to which a theorem applies"
