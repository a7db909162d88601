"""Boosted trees: the structure is that of a slow twin, and losses fall."""

import math

import numpy as np
import pytest

from tests.generations.problems import IS_CATEGORICAL, columns, numbers, problem
from tunefree.core.exporting import jitted
from tunefree.generations import boosted, gradient_trees, growing
from tunefree.generations.bins import MISSING, bins_of, codes_of
from tunefree.generations.trees import CODE, COLUMN
from tunefree.losses import Absolute, Square, huber, quantile
from tunefree.losses.power import epsilon_insensitive, power_loss

LOSSES = [Square(), Absolute(), quantile(0.9), huber(0.5), power_loss(1.5), power_loss(3.0), epsilon_insensitive(0.1)]


def score(sums):
    return np.sum(sums[0] ** 2 / (sums[1] + gradient_trees.RIDGE))


def cut_of(codes, n_codes, derivatives, rows, least):
    """The slow twin of the search: (gain, test, rows that go left) of the best split of some rows."""
    best = (0.0, -1, None)
    sums = lambda part: derivatives[part].astype(float).reshape(len(part), -1, 2).sum(axis=0).T  # noqa: E731
    for j in range(len(codes)):
        of_rows = codes[j, rows]
        for side in range(2 if (of_rows == MISSING).any() else 1):
            for b in np.unique(of_rows[of_rows < n_codes[j]]):
                is_left = (of_rows <= b) | ((of_rows == MISSING) & (side == 1))
                left, right = rows[is_left], rows[~is_left]
                bits = (int(left[0]) + (len(left) << 32)) * 0x9E3779B97F4A7C15 % 2**64
                goes_left = (bits >> 11) / 2.0**53 * len(rows) < len(left)
                default = int(goes_left and not (of_rows == MISSING).any())
                if min(len(left), len(right)) >= least:
                    gain = score(sums(left)) + score(sums(right)) - score(sums(rows))
                    if gain > best[0] * (1.0 + 1e-9) + 1e-12:
                        best = (gain, j << COLUMN | int(b) << CODE | side | default, is_left)
    return best


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("is_missing", [False, True], ids=["", "mostly missing"])
def test_trees_are_those_of_a_slow_twin(n_outputs, is_missing):
    X, random, most, least = columns(300), np.random.default_rng(2), 9, 5
    if is_missing:
        X[random.random(300) < 0.85, 0] = np.nan
    bins = bins_of(X, IS_CATEGORICAL, numbers(X))
    codes, n_codes = np.ascontiguousarray(codes_of(bins, X).T), bins.n_codes
    derivatives = np.empty((300, 2 * n_outputs), np.float32)
    derivatives[:, 0::2] = numbers(X)[:, None] * random.random(n_outputs) + random.normal(size=(300, n_outputs))
    derivatives[:, 1::2] = random.random((300, n_outputs)) + 0.1
    rows, drawn = np.flatnonzero(random.random(300) < 0.8), np.array([0, 1, 3, 4], np.int32)
    work = gradient_trees.Work.create(300, len(drawn), n_outputs, most)
    work.gradients[:], work.curvatures[:] = derivatives[:, 0::2], derivatives[:, 1::2]
    work.rows[: len(rows)], work.columns[:], work.sizes[0] = rows, drawn, len(rows)
    gained = np.zeros(len(codes))
    gradient_trees.grow_tree(work, codes, n_codes, least, gained, np.array([5], np.uint64))
    nodes, n_nodes, parts, tests = work.nodes, work.sizes[1], {0: rows}, {}
    codes, n_codes = codes.copy(), n_codes.copy()
    codes[2], n_codes[2] = 0, 1  # not drawn
    for _ in range(most - 1):
        cuts = {v: cut_of(codes, n_codes, derivatives, part, least) for v, part in parts.items()}
        v = max(cuts, key=lambda v: cuts[v][0])
        if cuts[v][0] <= 0.0:
            break
        part, left = parts.pop(v), len(parts) * 2 + 1
        tests[v] = cuts[v][1], left
        parts[left], parts[left + 1] = part[cuts[v][2]], part[~cuts[v][2]]
    assert n_nodes == 2 * len(parts) - 1
    for v, expected in tests.items():
        assert tuple(nodes[v]) == expected
    gains = np.zeros(len(codes))
    np.add.at(gains, [test >> COLUMN for test, _ in tests.values()], work.gains[list(tests)])
    assert np.allclose(gained, gains, rtol=1e-12) and gained[2] == 0.0 < gained.sum()
    for v, part in parts.items():
        assert (work.rows[work.first[v] : work.last[v]] == part).all()
        sums = derivatives[part].astype(float).sum(axis=0).reshape(n_outputs, 2)
        assert np.allclose(work.sums[nodes[v, 1]], sums, rtol=1e-12)


def test_of_many_columns_the_best_so_far_are_drawn_and_some_of_the_others():
    work, varying = gradient_trees.Work.create(10, 8, 1, 2), np.arange(3, 40, dtype=np.int32)
    gained, state, seen = np.zeros(50), np.array([5], np.uint64), set()
    gained[[5, 9, 30, 2]] = 3.0, 1.0, 2.0, 9.0  # of which one does not vary
    for _ in range(90):
        gradient_trees.draw(work, 0.8, varying, gained, 4, state)
        drawn = work.columns.tolist()
        assert drawn[:3] == [5, 30, 9] and len(set(drawn)) == 8
        assert sorted(varying.tolist()) == list(range(3, 40))
        seen.update(drawn)
    assert seen == set(range(3, 40))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("weights", ["equal", "one", "far apart"])
@pytest.mark.parametrize("n", [1, 3, 1000, 2**17])
def test_whole_numbers_do_not_overflow_and_are_right_on_average(n, weights, n_outputs):
    random = np.random.default_rng(n)
    scale = {"equal": np.ones(n), "one": np.where(np.arange(n) == 0, 1e15, 1e-20)}
    scale["far apart"] = 10.0 ** random.uniform(-30.0, 15.0, n)
    work = gradient_trees.Work.create(n, 1, n_outputs, 2)
    work.rows[:], work.gradients[:] = np.arange(n), random.normal(size=(n, n_outputs)) * scale[weights][:, None]
    work.curvatures[:] = random.random((n, n_outputs)) * scale[weights][:, None]
    low, high = map(int, gradient_trees.fields_of(n))
    jitted(gradient_trees.pack, (), True)(work, n, low, high, np.uint64(random.integers(2**63)))
    packed = work.packed.astype(object)  # sums in which nothing overflows
    gradients, rest = packed >> high, packed & ((1 << high) - 1)
    assert (np.abs(gradients).sum(axis=0) < 2 ** (63 - high)).all()
    assert ((rest >> low).sum(axis=0) < 2 ** (high - low)).all() and ((rest & ((1 << low) - 1)) == 1).all()
    for whole, derivatives in ((gradients, work.gradients), (rest >> low, work.curvatures)):
        sizes = np.abs(derivatives.astype(float))
        units = sizes / np.maximum(sizes.sum(axis=0), 1e-300) * np.abs(whole).sum(axis=0).astype(float)
        error = np.sign(derivatives) * units - whole.astype(float)
        assert np.abs(error).max() < 1.0 + n * 1e-2 and np.abs(error.sum(axis=0)).max() < 5.0 * math.sqrt(n) + 1.0


def mean_loss(loss, y, predictions):
    return np.mean([loss.value(a, b) for a, b in zip(y.tolist(), predictions.tolist(), strict=True)])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: repr(loss)[:20])
@pytest.mark.parametrize("kind", ["boosted", "randomised"])
def test_each_loss_falls_and_its_units_do_not_matter(kind, loss):
    X, fresh = columns(), columns(200, seed=8)
    y, truth = numbers(X), numbers(fresh, seed=9)
    predict = lambda y: growing.grow(kind, problem(X=X, y=y, loss=loss), 0).apply(fresh)[1][0, :, 0]  # noqa: E731
    predictions = predict(y)
    constants = [mean_loss(loss, truth, np.full(200, c)) for c in np.quantile(y, np.linspace(0.02, 0.98, 25))]
    assert mean_loss(loss, truth, predictions) < 0.92 * min(constants)
    if not hasattr(loss, "delta") and not hasattr(loss, "epsilon"):  # which are in units of the targets
        for unit in (2.0**20, 2.0**-60):
            assert (predict(y * unit) == predictions * unit).all()
    for unit in (1e300, 1e-300):
        assert np.isfinite(predict(y * unit)).all()


@pytest.mark.filterwarnings("error")
def test_an_outlier_does_not_overflow():
    y = numbers(columns())
    y[0] = 1e300
    for loss in LOSSES:
        model = growing.grow("boosted", problem(y=y, loss=loss), 0)
        assert np.isfinite(model.apply(columns())[1]).all()


def test_unequal_classes_do_not_diverge():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 5))
    y = np.where(X[:, 0] > 0.8, 1.0, 0.0)
    y[X[:, 1] > 1.8], y[:6], X[:6, 2] = 2.0, 3.0, 9.0
    rows = problem("three", X=X, y=np.zeros(3000))._replace(targets=y, n_classes=4, is_categorical=np.zeros(5, bool))
    margins = growing.grow("boosted", rows, 0).apply(X)[1][0]
    margins -= margins.max(axis=1, keepdims=True)
    losses = np.log(np.exp(margins).sum(axis=1)) - margins[np.arange(3000), y.astype(int)]
    assert losses.mean() < 0.02 and np.abs(margins).max() < 60.0


def test_steps_follow_from_the_rows():
    assert [boosted.sizes_of(n, 2).most_leaves for n in (999, 1000, 8000)] == [8, 16, 31]
    assert boosted.sizes_of(5000, 26).rate == 0.2


def test_leaves_hold_enough_rows():
    rows = problem("two")
    leaves = growing.grow("boosted", rows, 0).apply(rows.columns)[0]
    counts = np.bincount(leaves.ravel())
    assert counts.min() >= boosted.sizes_of(len(rows.targets), 2).least_rows


def test_exclusive_or_is_learned():
    X = np.random.default_rng(3).uniform(-1.0, 1.0, (600, 5))
    rows = problem(X=X, y=np.zeros(600))._replace(targets=np.sign(X[:, 0] * X[:, 1]), is_categorical=np.zeros(5, bool))
    predictions = growing.grow("boosted", rows, 0).apply(X)[1][0][:, 0]
    assert math.sqrt(np.mean((predictions - rows.targets) ** 2)) < 0.5
