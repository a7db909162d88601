"""Weights are relative, a row of weight 0 is not there, and copies of rows are no evidence."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pool.rows import KINDS, Stream, differences, learned, stream
from tunefree.core.rows import dense, n_rows, rows_at
from tunefree.generations.seen import FREQUENT, Seen, without_copies
from tunefree.model.targets import Labels
from tunefree.pool.frozen import FOLLOWING, Frozen
from tunefree.pool.model import PoolModel

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


@pytest.mark.parametrize("targets", ["two", "numbers"])
def test_constant_weights_are_no_weights(targets):
    rows = stream("dense", targets, N)
    expected = predictions(rows, "dense", targets)
    for constant in (0.1, 5e-324, 1e308):
        constantly_weighted = predictions(rows._replace(weight=np.full(N, constant)), "dense", targets)
        np.testing.assert_allclose(constantly_weighted, expected, rtol=1e-9, atol=1e-9, err_msg=f"weights {constant}")


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("table", "two"), ("table", "three"), *((kind, "numbers") for kind in KINDS if kind != "late columns")],
)
def test_a_row_of_weight_0_is_a_row_that_is_not_there(kind, targets):
    rows = stream(kind, targets, N)
    kept = np.random.default_rng(3).random(N) < 0.7
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
def test_weights_change_what_is_predicted_as_copies_of_rows_to_come_would(kind):
    """A class of nine times the weight is predicted as if it were as frequent, whichever mixture predicts."""
    rows = stream(kind, "two", 1200)
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
            model = PoolModel("classification", n_features=7, classes=[0, 1])
            model.learn(dense(X[order]), Labels.of(y[order].tolist()), np.ones(len(order)))
            model.freeze()
            margins = model.predict(dense(test))[:, 0]
            losses.append(np.logaddexp(0.0, np.where(truth == 1, -margins, margins)).mean())
        ratios.append(losses[1] / losses[0])
    assert np.exp(np.log(ratios).mean()) <= 1.02
    assert losses[1] < np.log(2.0)


def test_the_rows_that_generations_know_judge_no_member():
    X, y = noisy(64, 0)
    model = PoolModel("classification", n_features=7, classes=[0, 1])
    for _ in range(3):
        model.learn(dense(X), Labels.of(y.tolist()), np.ones(len(X)))
    assert model.pool.rows == 3 * n_rows(dense(X))
    assert int(model.pool.mixture.base.rounds[0]) == len(X)


@pytest.mark.parametrize(
    ("losses", "squares", "choice"),
    [
        ([90.0, 95.0, 100.0], [16.0, 1.0], 0),  # better by a tenth, and by more than two standard errors
        ([95.0, 90.0, 100.0], [1.0, 16.0], 1),
        ([90.0, 95.0, 100.0], [36.0, 1.0], FOLLOWING),  # by less than two
        ([99.0, 99.5, 100.0], [0.01, 0.01], FOLLOWING),  # by one part of a hundred
    ],
)
def test_what_stood_still_predicts_only_where_it_is_much_better_and_that_is_sure(losses, squares, choice):
    frozen = Frozen([0, 1], 2, None)
    frozen.losses, frozen.squares = np.array(losses), np.array(squares)
    assert frozen.choice == choice


def few_values(n: int = 400, cells: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Digests of rows, ten of each, and their targets, which are 1 more often the larger the digest."""
    rng = np.random.default_rng(0)
    digests = rng.permutation(np.arange(n) % cells + 1).astype(np.uint64)
    return digests, (rng.random(n) < digests / (cells + 1.0)) * 1.0


def test_rows_that_are_alike_are_separate_where_their_targets_differ():
    digests, y = few_values()
    seen = Seen()
    is_seen, is_separate = seen.add(digests, y, np.ones(400))
    assert seen.are_separate and is_seen.sum() == seen.n_repeats == 360
    assert not is_separate[:50].any() and is_separate[-100:].all()


@pytest.mark.parametrize("times", [2, 5, 40])
def test_copies_are_not_separate_even_if_some_rows_are_alike(times):
    rng = np.random.default_rng(1)
    digests, y = np.arange(1, 401, dtype=np.uint64), rng.integers(0, 2, 400) * 1.0
    digests[:40] = digests[40:80]  # a fifth of the rows
    order = rng.permutation(400 * times)
    seen = Seen()
    seen.add(np.tile(digests, times)[order], np.tile(y, times)[order], np.ones(len(order)))
    assert seen.n_repeats >= 400 * (times - 1) and seen.are_separate == (times > FREQUENT)


def test_rows_that_differ_in_their_targets_alone_are_not_separate_as_of_copies_that_were_merged():
    seen, rows = Seen(), np.repeat(np.arange(1, 201, dtype=np.uint64), 2)
    order = np.random.default_rng(2).permutation(400)
    seen.add(rows[order], (np.arange(400) % 2 * 1.0)[order], np.ones(400))
    assert not seen.are_separate


def test_many_rows_of_each_observation_are_separate_whatever_their_targets():
    seen = Seen()
    _, is_separate = seen.add(np.tile(np.array([5, 6], np.uint64), 40), np.tile([0.0, 1.0], 40), np.ones(80))
    assert is_separate.tolist() == [False] * 2 * FREQUENT + [True] * (80 - 2 * FREQUENT)


def test_rows_without_weight_are_not_seen():
    digests, y = few_values()
    seen, other = Seen(), Seen()
    weight = np.arange(400) % 3 > 0
    seen.add(digests, y, weight * 1.0)
    other.add(digests[weight], y[weight], np.ones(weight.sum()))
    assert all(
        np.array_equal(a, b) for a, b in zip(seen.save_state().values(), other.save_state().values(), strict=True)
    )


def test_what_was_seen_does_not_depend_on_how_rows_are_cut_nor_on_a_file():
    digests, y = few_values()
    seen, other = Seen(), Seen()
    whole = seen.add(digests, y, np.ones(400))
    parts = []
    for start in range(0, 400, 7):
        parts.append(
            other.add(digests[start : start + 7], y[start : start + 7], np.ones(len(digests[start : start + 7])))
        )
        restored = Seen()
        restored.restore(other.save_state())
        other = restored
    assert all(
        np.array_equal(np.concatenate(part), array) for part, array in zip(zip(*parts, strict=True), whole, strict=True)
    )


def test_copies_of_any_number_are_one_row_of_their_total_weight():
    kept, weights = without_copies(np.repeat([7, 8], [50, 1]), np.ones(51))
    assert kept.tolist() == [0, 50] and weights.tolist() == [50.0, 1.0]
