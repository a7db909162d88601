"""Weights are relative, a row of weight 0 is not there, and copies of rows are no evidence."""

import numpy as np
import pytest

from tests.pool.rows import KINDS, Stream, differences, learned, stream
from tunefree.core.rows import dense, rows_at
from tunefree.pool.contexts import FOLLOWING, FrozenMixture, RelativeWeights
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

N = 100  # rows of most streams


def weighted(rows: Stream, factor: float = 1.0) -> Stream:
    return rows._replace(weight=factor * np.random.default_rng(5).uniform(0.2, 3.0, len(rows.weight)))


def predictions(rows: Stream, kind: str, targets: str) -> np.ndarray:
    model, _ = learned(rows)
    model.freeze()
    *_, (X, _, _) = stream(kind, targets, N, seed=1).pieces(10**6)
    return model.predict(X)


@pytest.mark.parametrize("targets", ["two", "late", "numbers"])
@pytest.mark.parametrize("kind", ["dense", "table"])
def test_times_a_number_predictions_are_the_same_but_for_rounding(kind, targets):
    """No byte changes with a power of two."""
    rows = stream(kind, targets, N)
    expected = predictions(weighted(rows), kind, targets)
    assert predictions(weighted(rows, 2.0**-30), kind, targets).tobytes() == expected.tobytes()
    times_another = predictions(weighted(rows, 3.7), kind, targets)
    np.testing.assert_allclose(times_another, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("table", "two"), ("table", "three"), *((kind, "numbers") for kind in KINDS if kind != "late columns")],
)
def test_a_row_of_weight_0_is_a_row_that_is_not_there(kind, targets):
    rows = stream(kind, targets, N)
    kept = np.random.default_rng(3).random(N) < 0.7
    kept[60:66] = False  # in tables, the first rows that came before
    if targets != "numbers":  # a label is known from a row of weight 0, too
        kept[[rows.targets.index(label) for label in set(rows.targets)]] = True
    without = Stream(
        [rows_at(rows.blocks[0], np.flatnonzero(kept))],
        [0, int(kept.sum())],
        [y for y, is_kept in zip(rows.targets, kept.tolist(), strict=True) if is_kept],
        np.ones(int(kept.sum())),
        rows.task,
    )
    expected, losses_of_kept = learned(without)
    predicted = set()
    for size in (1, 10**6):
        model, losses = learned(rows._replace(weight=kept.astype(float)), size)
        assert losses[kept].tobytes() == losses_of_kept.tobytes()
        of_pool = [name for name in differences(model, expected) if name.startswith("pool.")]
        assert [name for name in of_pool if ".linear." not in name] == []  # which have features of all rows
        predicted.add(model.predict(rows.blocks[0]).tobytes())
    assert predicted == {expected.predict(rows.blocks[0]).tobytes()}


@pytest.mark.parametrize("kind", ["dense", "table"])
def test_weights_change_predictions_as_copies_of_rows_to_come_would(kind):
    """A class of nine times the weight is predicted as if it were as frequent, whichever mixture predicts."""
    rows = stream(kind, "two", 600)
    heavy = rows._replace(weight=np.where(np.array(rows.targets) == "a", 9.0, 1.0))
    *_, (X, _, _) = stream(kind, "two", 500, seed=1).pieces(10**6)
    truth = np.array(stream(kind, "two", 500, seed=1).targets) == "a"
    losses = []
    for weighted_rows in (rows, heavy):
        model, _ = learned(weighted_rows, classes=["b", "a"])
        model.freeze()
        margins = model.predict(X)[:, 0]
        of_row = np.logaddexp(0.0, np.where(truth, -margins, margins))
        losses.append(np.average(of_row, weights=np.where(truth, 9.0, 1.0)))
    assert losses[1] < 0.95 * losses[0]


@pytest.mark.parametrize(
    ("losses", "squares", "choice"),
    [
        ([90.0, 95.0, 100.0], [16.0, 1.0], 0),  # better by a tenth, and by more than two standard errors
        ([95.0, 90.0, 100.0], [1.0, 16.0], 1),
        ([90.0, 95.0, 100.0], [36.0, 1.0], FOLLOWING),  # by less than two
        ([99.0, 99.5, 100.0], [0.01, 0.01], 0),  # by one part of a hundred, but by more than two
    ],
)
def test_the_frozen_mixture_predicts_only_where_it_is_better_for_sure(losses, squares, choice):
    frozen = FrozenMixture([0, 1], 2, None)
    frozen.losses, frozen.squares = np.array(losses), np.array(squares)
    assert frozen.choice == choice


def test_relative_weights_are_over_the_mean_so_far():
    weights, expected = np.array([3.0, 0.0, 1.0, 5.0]), np.float32([1.0, 0.0, 0.5, 5.0 / 3.0])
    np.testing.assert_array_equal(RelativeWeights().of(weights), expected)
    assert RelativeWeights().of(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(RelativeWeights().of(np.array([1e-300, 1e300, 1e300]))).all()


def noisy(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 2.0 * rng.normal(size=n) > 0).astype(int)


def test_copies_of_rows_are_no_evidence():
    """Trees that remember a row predict its copies without doubt, and rows to come no better than the noise lets."""
    ratios = []
    for seed in range(3):
        X, y = noisy(300, seed)
        test, truth = noisy(3000, 100 + seed)
        losses = []
        for times in (1, 5):
            order = np.random.default_rng(seed).permutation(np.tile(np.arange(len(X)), times))
            model = Model("classification", n_features=7, classes=[0, 1])
            model.learn(dense(X[order]), Labels.of(y[order].tolist()), np.ones(len(order)))
            model.freeze()
            margins = model.predict(dense(test))[:, 0]
            losses.append(np.logaddexp(0.0, np.where(truth == 1, -margins, margins)).mean())
        ratios.append(losses[1] / losses[0])
    assert np.exp(np.log(ratios).mean()) <= 1.02
    assert losses[1] < np.log(2.0)
