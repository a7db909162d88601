"""Boosted trees: the structure is that of a slow twin, and losses fall."""

import math

import numpy as np
import pytest

from tests.generations.problems import IS_CATEGORICAL, columns, grow, numbers, problem
from tunefree.compiled.exporting import jitted
from tunefree.generations import gradient_trees
from tunefree.generations.bins import MISSING, bins_of, codes_of
from tunefree.generations.bundles import exclusive_of
from tunefree.generations.trees import CODE, COLUMN, SET
from tunefree.losses import Absolute, Square, huber, quantile
from tunefree.losses.regression import epsilon_insensitive, power_loss

LOSSES = [Square(), Absolute(), quantile(0.9), huber(0.5), power_loss(1.5), power_loss(3.0), epsilon_insensitive(0.1)]


def score(sums):
    return np.sum(sums[0] ** 2 / (sums[1] + gradient_trees.RIDGE))


def sums_of(derivatives, rows):
    """Gradients and second derivatives (2, K) of some rows."""
    return derivatives[rows].astype(float).reshape(len(rows), -1, 2).sum(axis=0).T


def shrunk_sums(parts, total, noises):
    """Sums (codes, 2, K) whose means are drawn to that of all rows by their share of noise, and the variances (K,).

    Of equal second derivatives that is the estimator of James and Stein, with (codes - 3) * noise for what is noise.
    """
    g, h, variances = parts[:, 0].copy(), parts[:, 1] + gradient_trees.RIDGE, np.zeros(len(noises))
    for k, noise in enumerate(noises):
        mean = total[0, k] / (total[1, k] + 2 * gradient_trees.RIDGE)
        away = g[:, k] - mean * h[:, k]
        if len(g) > 1:
            of_noise, degrees = max(len(g) - 3, 0) * noise, len(g) - 1
            beyond = max(np.sum(away**2 / h[:, k]), degrees * noise) - of_noise
            variances[k] = degrees * beyond / (h[:, k].sum() - np.sum(h[:, k] ** 2) / h[:, k].sum())
            g[:, k] = mean * h[:, k] + away * variances[k] * h[:, k] / (variances[k] * h[:, k] + of_noise)
    return np.stack([g, parts[:, 1]], axis=1), variances


def cuts_of(of_rows, is_categorical, derivatives, rows, noises):
    """Each cut of a column: its code or SET, the codes that go left, and sums of the left rows."""
    if not is_categorical:
        for side in range(2 if (of_rows == MISSING).any() else 1):
            for b in np.unique(of_rows[of_rows < MISSING]):
                is_left = (of_rows <= b) | ((of_rows == MISSING) & (side == 1))
                yield int(b) << CODE | side, np.unique(of_rows[is_left]), sums_of(derivatives, rows[is_left])
        return
    known, total = np.unique(of_rows), sums_of(derivatives, rows)
    parts = np.array([sums_of(derivatives, rows[of_rows == code]) for code in known])
    parts, variances = shrunk_sums(parts, total, noises)
    k = np.argmax(variances * total[1])
    order = np.argsort(parts[:, 0, k] / (parts[:, 1, k] + gradient_trees.RIDGE), kind="stable")
    for q in range(1, len(order)):
        yield SET, known[order[:q]], parts[order[:q]].sum(axis=0)


def cut_of(codes, derivatives, rows, least, noises):
    """The slow twin of the search: (gain, test, rows that go left, codes that go right) of the best split."""
    best, total = (0.0, -1, None, None), sums_of(derivatives, rows)
    for j, of_column in codes.items():
        of_rows = of_column[rows]
        for test, known_left, of_left in cuts_of(of_rows, IS_CATEGORICAL[j], derivatives, rows, noises):
            is_left = np.isin(of_rows, known_left)
            left, right = rows[is_left], rows[~is_left]
            gain = score(of_left) + score(total - of_left) - score(total)
            if min(len(left), len(right)) >= least and gain > best[0] * (1.0 + 1e-9) + 1e-12:
                bits = (int(left[0]) + (len(left) << 32)) * 0x9E3779B97F4A7C15 % 2**64
                goes_left = (bits >> 11) / 2.0**53 * len(rows) < len(left)
                default = int(goes_left and test != SET and not (of_rows == MISSING).any())
                goes_right = set(range(256)) - set(known_left.tolist() if not goes_left else range(256))
                goes_right |= set(of_rows[~is_left].tolist())
                best = gain, j << COLUMN | test | default, is_left, goes_right
    return best


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("is_missing", [False, True], ids=["", "mostly missing"])
def test_trees_equal_a_slow_twin(n_outputs, is_missing):
    X, random, most, least = columns(300), np.random.default_rng(2), 9, 5
    if is_missing:
        X[random.random(300) < 0.85, 0] = np.nan
    bins = bins_of(X, IS_CATEGORICAL, numbers(X))
    codes = np.ascontiguousarray(codes_of(bins, X).T)
    derivatives = np.empty((300, 2 * n_outputs), np.float32)
    derivatives[:, 0::2] = numbers(X)[:, None] * random.random(n_outputs) + random.normal(size=(300, n_outputs))
    derivatives[:, 0::2] += random.normal(size=(256, n_outputs))[codes[4]]
    derivatives[:, 1::2] = random.random((300, n_outputs)) + 0.1
    rows, drawn = np.flatnonzero(random.random(300) < 0.8), np.array([0, 1, 3, 4], np.int32)
    work = gradient_trees.Work.create(300, len(drawn), n_outputs, most)
    work.gradients[:], work.curvatures[:] = derivatives[:, 0::2], derivatives[:, 1::2]
    work.rows[: len(rows)], work.columns[:], work.sizes[0] = rows, drawn, len(rows)
    gained = np.zeros(len(codes))
    of_tree = least, gained, np.array([5], np.uint64)
    exclusive = exclusive_of(codes, bins.n_codes, bins.is_categorical)
    facts = bins.n_codes, bins.is_categorical, np.zeros(len(codes), np.int8)
    gradient_trees.grow_tree(work, codes, *facts, exclusive, *of_tree)
    nodes, n_nodes, parts, tests = work.nodes, work.sizes[1], {0: rows}, {}
    of_drawn = {j: codes[j] for j in drawn.tolist()}
    noises = (derivatives[rows, 0::2].astype(float) ** 2).sum(axis=0) / sums_of(derivatives, rows)[1]
    for _ in range(most - 1):
        cuts = {v: cut_of(of_drawn, derivatives, part, least, noises) for v, part in parts.items()}
        v = max(cuts, key=lambda v: cuts[v][0])
        if cuts[v][0] <= 0.0:
            break
        part, left, (_, test, is_left, goes_right) = parts.pop(v), len(parts) * 2 + 1, cuts[v]
        tests[v] = test, left
        parts[left], parts[left + 1] = part[is_left], part[~is_left]
        if test & SET == SET:
            words = work.sets[left >> 1].tolist()
            assert {code for code in range(256) if words[code >> 6] >> (code & 63) & 1} == goes_right
    assert n_nodes == 2 * len(parts) - 1
    assert len({test & SET == SET for test, _ in tests.values()}) == 2  # some of both kinds
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
    predict = lambda y: grow(kind, problem(X=X, y=y, loss=loss), 0).apply(fresh)[1][0, :, 0]  # noqa: E731
    predictions = predict(y)
    constants = [mean_loss(loss, truth, np.full(200, c)) for c in np.quantile(y, np.linspace(0.02, 0.98, 25))]
    assert mean_loss(loss, truth, predictions) < 0.92 * min(constants)
    if not hasattr(loss, "delta") and not hasattr(loss, "epsilon"):  # which are in units of the targets
        for unit in (2.0**20, 2.0**-60):
            assert (predict(y * unit) == predictions * unit).all()
    for unit in (1e300, 1e-300):
        assert np.isfinite(predict(y * unit)).all()
