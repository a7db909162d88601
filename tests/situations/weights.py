"""Weights of rows, and copies, which say the same."""

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from tests.situations.situation import Case, Rows
from tests.situations.truths import labels, mixed, mixed_margins

TIMES = 5  # copies of a row


def constant_weights(seed: int, factor: float) -> Case:
    """Weights are relative: one and the same for all rows says nothing."""
    case = mixed(seed)
    return case._replace(train=case.train._replace(weight=np.full(len(case.train.y), factor)), plain=case.train)


def random_weights(seed: int) -> Case:
    """Weights that have nothing to do with the rows cost rows, as with anybody else."""
    case = mixed(seed)
    weight = np.random.default_rng(seed).gamma(0.7, size=len(case.train.y)) + 0.01
    return case._replace(train=case.train._replace(weight=weight))


def integer_weights(seed: int) -> Case:
    """A row of weight 3 is three rows."""
    case = mixed(seed)
    times = np.random.default_rng(seed).integers(1, 4, len(case.train.y))
    plain = case.train.take(np.random.default_rng(seed).permutation(np.repeat(np.arange(len(times)), times)))
    return case._replace(train=case.train._replace(weight=times.astype(float)), plain=plain)


def zero_weights(seed: int) -> Case:
    """Rows of weight 0 are left out, whatever they hold."""
    case, rng = mixed(seed), np.random.default_rng(seed)
    n = len(case.train.y)
    X = np.concatenate([case.train.X, 100 * rng.normal(size=case.train.X.shape)])
    y = np.concatenate([case.train.y, rng.integers(2, size=n)])
    order = rng.permutation(2 * n)
    return case._replace(train=Rows(X, y, (np.arange(2 * n) < n).astype(float)).take(order), plain=case.train)


def copies(seed: int) -> Case:
    """All rows five times, as a join makes them, are no more than the rows."""
    case = mixed(seed)
    order = np.random.default_rng(seed).permutation(np.tile(np.arange(len(case.train.y)), TIMES))
    return case._replace(train=case.train.take(order), plain=case.train)


def copies_with_other_labels(seed: int) -> Case:
    """The same things were measured five times: their columns are equal, their labels are not."""
    case, rng = mixed(seed, 600), np.random.default_rng(seed)
    X = np.repeat(case.train.X, TIMES, axis=0)
    order = rng.permutation(len(X))
    return case._replace(train=Rows(X, labels(mixed_margins(X), rng)).take(order))


def few_positives(seed: int) -> Case:
    """A tenth of the rows are positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40_000, 8))
    y = labels(mixed_margins(X) - 3.5, rng)
    return Case(Rows(X[:4000], y[:4000]), Rows(X[4000:], y[4000:]))


def copied_minority(seed: int) -> Case:
    """Copies of the rare class make it as heavy as their number, and nothing else."""
    case, rng = few_positives(seed), np.random.default_rng(seed)
    times = np.where(case.train.y == 1, TIMES, 1)
    order = rng.permutation(np.repeat(np.arange(len(times)), times))
    test = case.test._replace(weight=np.where(case.test.y == 1, float(TIMES), 1.0))
    return Case(case.train.take(order), test, plain=case.train._replace(weight=times.astype(float)))


def weighted_minority(seed: int) -> Case:
    """The rare class is worth more than others: probabilities are those of the weighted rows."""
    case = few_positives(seed)
    train, test = (rows._replace(weight=np.where(rows.y == 1, float(TIMES), 1.0)) for rows in (case.train, case.test))
    return Case(train, test)


def balanced(seed: int) -> Case:
    """``class_weight="balanced"`` is weights that make the classes equally heavy."""
    case = few_positives(seed)
    test = case.test._replace(weight=compute_sample_weight("balanced", case.test.y))
    return Case(case.train, test, class_weight="balanced")
