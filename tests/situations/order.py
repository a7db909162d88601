"""Rows that are not independent, and not in a random order."""

import numpy as np

from tests.situations.situation import Case, Rows
from tests.situations.truths import TEST, labels, mixed, mixed_numbers

GROUPS, LIKE = 400, 12


def of_groups(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Centres of groups (groups, 8), and the group of each row, in random order."""
    rng = np.random.default_rng(seed)
    n = GROUPS + GROUPS // 4 * 10
    return rng, rng.normal(size=(n, 8)), rng.permutation(np.repeat(np.arange(n), LIKE))


def divided(X: np.ndarray, y: np.ndarray, groups: np.ndarray, loss: str) -> Case:
    """The first groups to learn, the others to predict."""
    rows = Rows(X, y, groups=groups)
    return Case(rows.take(groups < GROUPS), rows.take(groups >= GROUPS)._replace(groups=None), loss)


def groups_of_like_rows(seed: int) -> Case:
    """Rows of one group are nearly equal and have one label: rows of a group are no evidence for each other."""
    rng, centres, groups = of_groups(seed)
    y = labels(centres[:, 0] - centres[:, 1], rng)[groups]
    return divided(centres[groups] + 0.05 * rng.normal(size=(len(groups), 8)), y, groups, "log")


def groups_of_numbers(seed: int) -> Case:
    """Each group has a level of its own, which says nothing about new groups."""
    rng, centres, groups = of_groups(seed)
    y = (centres[:, 0] + rng.normal(size=len(centres)))[groups] + 0.3 * rng.normal(size=len(groups))
    return divided(centres[groups] + 0.05 * rng.normal(size=(len(groups), 8)), y, groups, "square")


def sorted_by_class(seed: int) -> Case:
    """A file that is sorted by its target."""
    case = mixed(seed)
    return case._replace(train=case.train.take(np.argsort(case.train.y, kind="stable")), plain=case.train)


def sorted_by_number(seed: int) -> Case:
    """A file that is sorted by its numbers."""
    case = mixed_numbers(seed)
    return case._replace(train=case.train.take(np.argsort(case.train.y)), plain=case.train)


def drift(seed: int) -> Case:
    """Rows in the order of time, the truth turns slowly, and what is predicted comes after."""
    rng = np.random.default_rng(seed)
    n, n_test = 4000, 1000
    X = rng.normal(size=(n + n_test, 6))
    angle = np.arange(n + n_test) / n * np.pi / 2
    y = labels(2 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]), rng)
    return Case(Rows(X[:n], y[:n]), Rows(X[n:], y[n:]))


def drift_with_a_clock(seed: int) -> Case:
    """The same with the time as a column."""
    case = drift(seed)
    times = np.arange(len(case.train.y) + len(case.test.y))[:, None]
    first, last = times[: len(case.train.y)], times[len(case.train.y) :]
    return Case(
        case.train._replace(X=np.hstack([case.train.X, first])), case.test._replace(X=np.hstack([case.test.X, last]))
    )


def two_clusters(seed: int) -> Case:
    """Two populations far from each other, with opposite truths."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000 + TEST, 5))
    side = rng.integers(2, size=len(X))
    y = labels(np.where(side == 1, 2.0, -2.0) * X[:, 0], rng)
    X[:, 1:3] += 20.0 * side[:, None]
    return Case(Rows(X[:2000], y[:2000]), Rows(X[2000:], y[2000:]))


def outliers(seed: int) -> Case:
    """One row of a hundred is a thousand times too large, in training and after it."""
    case, rng = mixed(seed), np.random.default_rng(seed)
    train, test = (
        rows._replace(X=np.where(rng.random((len(rows.y), 1)) < 0.01, 1000.0, 1.0) * rows.X)
        for rows in (case.train, case.test)
    )
    return case._replace(train=train, test=test)


def wrong_labels(seed: int) -> Case:
    """A fifth of the training labels are wrong, and those of the test rows as well."""
    case, rng = mixed(seed), np.random.default_rng(seed)
    train, test = (
        rows._replace(y=np.where(rng.random(len(rows.y)) < 0.2, 1 - rows.y, rows.y)) for rows in (case.train, case.test)
    )
    return case._replace(train=train, test=test)
