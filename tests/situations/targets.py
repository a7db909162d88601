"""Numbers to predict: heavy tails, unequal variance, counts, units."""

import numpy as np

from tests.situations.situation import Case
from tests.situations.truths import TEST, cut, mixed_margins, mixed_numbers


def heavy_targets(seed: int) -> Case:
    """Targets without a variance: the median is what can be learned."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000 + TEST, 8))
    return cut(X, mixed_margins(X) + rng.standard_t(1.5, size=len(X)), 3000, "absolute")


def log_normal_targets(seed: int) -> Case:
    """Prices: most are small, some are large, and squares are asked for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000 + TEST, 8))
    return cut(X, np.exp(0.6 * mixed_margins(X) + 0.4 * rng.normal(size=len(X))), 3000, "square")


def unequal_variance(seed: int) -> Case:
    """The noise grows with a column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000 + TEST, 6))
    return cut(X, X[:, 0] + (X[:, 2] > 0) + np.exp(X[:, 1]) * rng.normal(size=len(X)), 2000, "square")


def counts(seed: int) -> Case:
    """An integer target that is a number, not a class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000 + TEST, 6))
    return cut(X, rng.poisson(np.exp(0.5 * X[:, 0] + 0.5 * (X[:, 1] > 0))).astype(float), 2000, "square")


def rare_numbers(seed: int) -> Case:
    """Nearly all targets are zero, as claims are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4000 + TEST, 6))
    claims = rng.random(len(X)) < 0.05 * np.exp(0.7 * X[:, 0])
    return cut(X, claims * rng.gamma(2.0, size=len(X)), 4000, "square")


def far_targets(seed: int) -> Case:
    """Targets far from zero and close together."""
    case = mixed_numbers(seed)
    train, test = (rows._replace(y=1e6 + 1e-2 * rows.y) for rows in (case.train, case.test))
    return case._replace(train=train, test=test)
