"""Groups: what is predicted of them, what is evidence, and what decides how a pool predicts."""

import numpy as np
import pytest

from tests.pool.rows import bytes_of
from tunefree.core.errors import ModelError
from tunefree.core.rows import dense, part, sparse
from tunefree.pool import groups
from tunefree.pool.model import Model, restored
from tunefree.pool.targets import Labels

CLASSES = ["no", "yes"]


def like_rows(seed: int, n_groups: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a group hardly differ, and have one label: what trees remember of it tells nothing of other groups."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_groups, 5))
    labels = rng.random(n_groups) < 1.0 / (1.0 + np.exp(-2.0 * centres[:, 0]))
    group = np.repeat(np.arange(n_groups), size)
    return centres[group] + 0.05 * rng.normal(size=(len(group), 5)), labels[group].astype(int), group


def learned(X: np.ndarray, y: np.ndarray, of_groups: np.ndarray | None, size: int = 10**9) -> Model:
    """A finished pool; blocks of at least so many rows end where a group does."""
    model = Model("classification", classes=CLASSES)
    starts = np.arange(0, len(y), size) if of_groups is None else groups.starts_of_runs(of_groups)[:: max(size // 8, 1)]
    for start, stop in zip(starts, [*starts[1:], len(y)], strict=True):
        rows = slice(start, stop)
        labels = Labels.of([CLASSES[k] for k in y[rows]])
        some = None if of_groups is None else of_groups[rows]
        model.learn(dense(X[rows]), labels, np.ones(stop - start), groups=some)
    model.freeze()
    return model


def log_loss(model: Model, X: np.ndarray, y: np.ndarray) -> float:
    margins = model.predict(dense(X))[:, 0]
    return float(np.logaddexp(0.0, np.where(y == 1, -margins, margins)).mean())


def test_groups_that_are_named_are_not_remembered_for_evidence():
    X, y, group = like_rows(0, 200, 8)
    new, labels, _ = like_rows(1, 200, 8)
    order = np.random.default_rng(2).permutation(len(y))
    by_group = np.concatenate([np.flatnonzero(group == k) for k in np.random.default_rng(2).permutation(200)])
    named = log_loss(learned(X[by_group], y[by_group], groups.digests(group[by_group])), new, labels)
    assert named < 0.85 * log_loss(learned(X[order], y[order], None), new, labels)
    assert named < np.log(2.0)


def test_rows_of_a_group_are_predicted_before_any_of_them_is_learned():
    X, y, group = like_rows(3, 40, 8)
    digests = groups.digests(group)
    model, other = (learned(X[:-8], y[:-8], digests[:-8]) for _ in range(2))
    expected = other.pool.predict(dense(X[-8:]))
    model.pool.has_finished = other.pool.has_finished = False
    expected = other.pool.contexts[0].mixture.predict(other.pool.members.predict(dense(X[-8:])), is_over=False)
    margins, _ = model.learn(dense(X[-8:]), Labels.of([CLASSES[k] for k in y[-8:]]), np.ones(8), groups=digests[-8:])
    assert np.array_equal(margins[:, 0], expected[:, 1] - expected[:, 0])


def test_a_group_that_comes_again_is_no_evidence():
    X, y, group = like_rows(4, 50, 8)
    digests = groups.digests(group)
    once = learned(X, y, digests)
    again = learned(np.tile(X, (2, 1)), np.tile(y, 2), np.tile(digests, 2))
    assert once.pool.known_rows == (0, 400) and again.pool.known_rows == (400, 800)
    assert (again.pool.selection().rows <= 400).all()
    new, known = again.pool.contexts
    assert new.mixture.base.rounds == once.pool.contexts[0].mixture.base.rounds <= 60
    assert 50 <= known.mixture.top.rounds <= 60  # one row of each group that came again
    again.learn(dense(X), Labels.of([CLASSES[k] for k in y]), np.ones(400), groups=digests)
    assert again.pool.known_share > 0.5 and again.pool.context is new  # later groups are expected to be new


def test_blocks_that_end_with_groups_only_decide_how_many_runs_are_predicted_together():
    X, y, group = like_rows(5, 20, 8)  # as many as are predicted one by one
    digests = groups.digests(group)
    whole = learned(X, y, digests)
    for size in (8, 24):
        assert bytes_of(learned(X, y, digests, size)) == bytes_of(whole)
    other = restored(*whole.save_state())
    X, y, group = like_rows(8, 30, 8)
    for model in (whole, other):
        model.learn(dense(X), Labels.of([CLASSES[k] for k in y]), np.ones(240), groups=groups.digests(group + 10))
    assert bytes_of(other) == bytes_of(whole)


def test_groups_of_rows_too_wide_for_trees():
    rng = np.random.default_rng(7)
    n, group = 240, np.repeat(np.arange(60), 4)
    features = np.sort(rng.integers(2000, 9000, (n, 5)), axis=1) + np.arange(5)
    X = sparse(np.arange(0, 5 * n + 1, 5), features.ravel(), np.ones(5 * n), True)
    model, y = Model("classification", classes=CLASSES), Labels.of(["no", "yes"] * (n // 2))
    model.learn(X, y, np.ones(n), groups=groups.digests(group))
    assert model.pool.members.growth is None and model.pool.known_rows == (0, n)
    for number in range(1, 41):  # it is known however often it comes
        model.learn(part(X, 0, 4), Labels.of(["no"] * 4), np.ones(4), groups=groups.digests(group[:4]))
        assert model.pool.known_rows == (4 * number, n + 4 * number)


def test_what_takes_memory_is_given_up_in_a_fixed_order_and_the_rest_goes_on():
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(3000, 4)), Labels.of([CLASSES[k] for k in rng.integers(0, 2, 3000)])
    model = Model("classification", classes=CLASSES)
    model.learn(dense(X), y, np.ones(3000))
    names, released, before = [], [], model.pool.nbytes
    while (name := model.pool.put_to_sleep()) is not None:
        names.append(name)
        released.append(before - model.pool.nbytes)
        model.learn(dense(X[:600]), Labels(y.values, y.codes[:600]), np.ones(600))
        assert bytes_of(restored(*model.save_state())) == bytes_of(model)
        assert np.isfinite(model.predict(dense(X[:9]))).all()
        before = model.pool.nbytes
    trees, linear = names[:4], names[4:]
    assert [name.split()[1] for name in trees] == ["windows", "previous", "randomised", "trees"]
    assert len(linear) == len(set(linear)) == 5 and len(model.linear.members) == 1
    assert min(released[:4]) > 0


def test_rows_of_weight_0_do_not_judge_in_place_of_the_others_of_their_group():
    X, y, group = like_rows(13, 40, 3)
    digests, weight = groups.digests(group), np.tile([1.0, 0.0, 1.0], 40)
    model = Model("classification", classes=CLASSES)
    model.learn(dense(X), Labels.of([CLASSES[k] for k in y]), weight, groups=digests)
    assert model.pool.contexts[0].mixture.base.rounds >= 40
    for known, others, problem in ((digests, None, "give groups="), (None, digests, "leave groups= out")):
        with pytest.raises(ModelError, match=problem):
            learned(X, y, known).learn(dense(X), Labels.of([CLASSES[k] for k in y]), weight, groups=others)
