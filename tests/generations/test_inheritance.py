"""Settings that generations inherit: later rows change them where these are sure, within a budget of work."""

import math

import numpy as np
import pytest

from tests.generations.problems import numbers, problem
from tests.generations.test_boosted import LOSSES
from tunefree.generations import inheritance
from tunefree.generations.inheritance import Course, Inherited, Trial, inherited
from tunefree.generations.kinds import KINDS, TREES
from tunefree.generations.problem import USUAL, Problem, prepared
from tunefree.losses import Square
from tunefree.losses.deviances import poisson

N = 800
RICH = Inherited(saved=1e12)
kinds = pytest.mark.parametrize("kind", TREES)


def of_rows(X, y, n_classes=0, loss=None, **others):
    """A problem of numbers, as growers get it, each row of which is an observation of its own."""
    others = {"weights": np.ones(len(X)), "digests": np.arange(len(X), dtype=np.uint64)} | others
    loss = loss or (None if n_classes else Square())
    return prepared(Problem(X, np.zeros(X.shape[1], bool), y, n_classes=n_classes, loss=loss, **others))


def uniform(n=N, n_columns=6, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (n, n_columns))


def exact(X):
    """Targets that many trees predict better."""
    return np.sin(4.0 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2


@pytest.mark.parametrize("n_classes", [0, 2])
def test_more_or_larger_trees_are_grown_where_the_target_needs_them_and_not_for_noise(n_classes):
    X, grower = uniform(), KINDS["boosted"]
    y = exact(X) > 0.3 if n_classes else exact(X)
    settings = inherited(grower, of_rows(X, y.astype(float), n_classes), 1, RICH).settings
    assert settings.trees * settings.leaves > 1.0
    noise = np.random.default_rng(1).permutation(y).astype(float)
    of_noise = inherited(grower, of_rows(X, noise, n_classes), 1, RICH).settings
    assert of_noise.trees <= 1.0 >= of_noise.leaves and of_noise.columns == 1.0


@kinds
def test_trials_take_no_more_work_than_has_been_saved_up(kind, monkeypatch):
    grower, before, growth, courses = KINDS[kind], Inherited(), 0.0, []

    class Counted(Course):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            courses.append(self)

    monkeypatch.setattr(inheritance, "Course", Counted)
    for n in (64, 128, 181, 256, 362, 512):
        rows = of_rows(uniform(n), numbers(uniform(n)))
        growth += grower.work(before.settings, rows, n)
        before = inherited(grower, rows, n, before)
        trials = sum(course.judged[-1].work for course in courses)
        assert math.isclose(before.saved, inheritance.BUDGET * growth - trials, abs_tol=1e-6 * growth)
        assert before.saved >= 0.0
    assert len(courses) > 1 and before.turn > 0


def test_whole_groups_judge():
    digests = np.arange(N, dtype=np.uint64) // 7
    digests[-9:] = 3  # of a group that begins earlier
    trial = Trial(KINDS["boosted"], of_rows(uniform(), exact(uniform()), digests=digests), 1, 0.0)
    assert not set(trial.earlier.digests.tolist()) & set(trial.later.digests.tolist())
    assert 0.2 * N < len(trial.later.digests) <= 0.25 * N
    assert trial.units.max() + 1 == len(set(trial.later.digests.tolist())) < 0.2 * len(trial.later.digests)


@kinds
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("task", ["two", "three", *LOSSES, poisson()], ids=repr)
def test_each_loss_is_judged_and_each_neighbour_can_be_grown(kind, task):
    grower, is_class = KINDS[kind], isinstance(task, str)
    rows = problem(task) if is_class else problem(y=np.abs(numbers(problem().columns)), loss=task)
    rows = prepared(rows._replace(digests=np.arange(400, dtype=np.uint64)))
    for settings in [USUAL, *grower.neighbours(USUAL, rows)]:
        trial = Trial(grower, rows, 1, 0.0)
        course = Course(trial, settings)
        [judged] = course.judged
        assert np.isfinite(judged.losses).all() and judged.losses.std() > 0.0 < judged.work
        assert (judged.imagined > 0.0) == is_class
    assert inherited(grower, rows, 1, RICH).turn > 0


def test_rows_judge_by_their_weight():
    X, y = uniform(1200), exact(uniform(1200))
    is_noise = np.arange(1200) % 2 == 0
    y[is_noise] = 9.0 * np.random.default_rng(2).normal(size=600)
    grower = KINDS["boosted"]
    weighted = [of_rows(X, y, weights=np.where(is_noise, weight, 1.0)) for weight in (1.0, 1e-6)]
    chosen = [inherited(grower, rows, 1, RICH).settings for rows in weighted]
    assert chosen[0].leaves == 1.0 < chosen[1].leaves
