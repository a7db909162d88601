"""Learners on leaves: those of the papers on rows of ones, in single precision, and finite."""

import numpy as np
import pytest

from tunefree.compiled import functions
from tunefree.core.rows import Row
from tunefree.generations.leaves import LivingLeaves, learners_of, objective_of
from tunefree.learners import ALL
from tunefree.learners.contract import Scale
from tunefree.losses import Square

LEARNERS = learners_of(0.1)
N, TREES, LEAVES = 200, 3, 12


def rows(n_classes, seed=0):
    """Leaves, margins of trees, targets and weights of rows, of which some weigh nothing."""
    rng = np.random.default_rng(seed)
    leaves = (rng.integers(0, LEAVES // TREES, (N, TREES)) + np.arange(TREES) * (LEAVES // TREES)).astype(np.int32)
    y = leaves[:, 0] % 2 + rng.normal(size=N) if n_classes == 0 else rng.integers(0, n_classes, N) * 1.0
    y = 2.0 * y - 1.0 if n_classes == 2 else y
    margins = rng.normal(size=(N, n_classes if n_classes > 2 else 1))
    return leaves, margins, y, np.where(rng.random(N) < 0.1, 0.0, rng.uniform(0.5, 3.0, N))


def living(learner, settings, n_classes):
    objective = objective_of(n_classes, None if n_classes else Square())
    return LivingLeaves(learner, settings, LEAVES, n_classes if n_classes > 2 else 1, objective)


def follow(part, leaves, margins, y, weight):
    predictions = np.empty(margins.shape)
    run, *arguments = part.call_on(leaves, margins, y, weight, predictions)
    run(*arguments)
    return predictions


@pytest.mark.parametrize("n_classes", [0, 2, 5])
@pytest.mark.parametrize(("learner", "settings"), LEARNERS)
def test_plain_python_gives_the_same_bits(learner, settings, n_classes, monkeypatch):
    both = []
    for is_compiled in (True, False):
        monkeypatch.setattr(functions, "IS_COMPILED", is_compiled)
        part = living(learner, settings, n_classes)
        both.append([follow(part, *rows(n_classes)), part.state.coordinates, part.state.features, part.frozen().levels])
    for one, other in zip(*both, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("learner", "settings"), LEARNERS)
def test_they_are_the_learners_of_the_papers_on_rows_of_ones(learner, settings):
    rng = np.random.default_rng(0)
    part, paper = living(learner, settings, 5).state, ALL[learner](LEAVES, 5, **settings)
    if learner == "nag":
        paper.squares[:] = paper.inverse[:] = paper.largest[:] = 1.0
    for place in range(N):
        leaves, margins, others = rng.choice(LEAVES, TREES, replace=False), np.zeros(8), np.zeros(8)
        scale, gradient = Scale(rng.uniform(0.5, 4.0), 1.0 if place < 50 else 4.0, 1.0), np.zeros(8)
        gradient[:5] = scale.slope * rng.uniform(-1.0, 1.0, 5)
        part.predict(leaves, scale, margins)
        paper.predict(Row(leaves, np.ones(TREES)), scale, others)
        np.testing.assert_allclose(margins[:5], others[:5], rtol=1e-4, atol=1e-5)
        part.update(leaves, gradient, gradient)
        paper.update(Row(leaves, np.ones(TREES)), gradient, np.zeros(8))


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize(("learner", "settings"), LEARNERS)
def test_numbers_of_any_size_leave_statistics_finite(learner, settings, size):
    part, (leaves, margins, y, weights) = living(learner, settings, 0), rows(0)
    y[::7] *= size
    for weight in (weights, weights * 1e-100, weights * 1e100):
        assert np.isfinite(follow(part, leaves, margins, y, weight)).all()
        assert all(np.isfinite(block).all() for block in part.state.blocks)


@pytest.mark.parametrize(("learner", "settings"), LEARNERS)
def test_a_third_class_leaves_the_margins_of_two_as_they_were(learner, settings):
    part = living(learner, settings, 2)
    follow(part, *rows(2))
    before = part.values(LEAVES)[:, 0]
    part.add_class(3)
    after = part.values(LEAVES)
    np.testing.assert_allclose(after[:, 1] - after[:, 0], before, rtol=1e-6)
    assert before.any() and not after[:, 2].any()
