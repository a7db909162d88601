"""All situations: public functions of this file, in their order, which halves them.

A situation is rows to learn and rows to predict, drawn from a seed, and how good is good enough. Those of even number
are the chosen half, on which constants of the package may be chosen. The others are measured once, when nothing changes
any more. What each is for, its docstring says in one line.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn.datasets
from pyarrow import parquet
from scipy import sparse
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.class_weight import compute_sample_weight

import tunefree

TEST = 10_000  # rows to predict
FEW = 300  # rows, below which the bar is wider
BAR, BAR_OF_FEW, BAR_OF_TELLING = 1.05, 1.10, 1.02


class Rows(NamedTuple):
    """Rows and what is said about them."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None

    def take(self, rows: Any) -> Rows:
        """These rows, in this order."""
        weight, groups = (None if part is None else part[rows] for part in (self.weight, self.groups))
        return Rows(self.X[rows], self.y[rows], weight, groups)


class Case(NamedTuple):
    """One draw of a situation."""

    train: Rows
    test: Rows
    loss: str = "log"  # "log", "square" (the root of its mean) or "absolute"
    plain: Rows | None = None  # the same said in the plainest way: what is learned from it is the reference
    class_weight: str | None = None

    @property
    def bar(self) -> float:
        """The largest ratio of losses that is good enough."""
        if self.plain is not None:
            return BAR_OF_TELLING
        return BAR_OF_FEW if len(self.train.y) < FEW else BAR


class Situation(NamedTuple):
    """A function from seeds to cases."""

    name: str
    why: str
    draw: Callable[[int], Case]
    seeds: int = 4


def _cut(X: np.ndarray, y: np.ndarray, n: int, loss: str = "log") -> Case:
    """The first n rows to learn, the others to predict."""
    return Case(Rows(X[:n], y[:n]), Rows(X[n:], y[n:]), loss)


def _labels(margins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """0 or 1 with these log-odds."""
    return (rng.random(len(margins)) < expit(margins)).astype(np.int64)


def _mixed_margins(X: np.ndarray) -> np.ndarray:
    """Something linear, a step, a product and a curve, of the first five columns."""
    return X[:, 0] - 0.7 * X[:, 1] + 1.5 * (X[:, 2] > 0.3) + X[:, 3] * X[:, 4] + np.sin(2 * X[:, 1]) - 0.7


def _normal(seed: int, n: int, n_columns: int) -> tuple[np.random.Generator, np.ndarray]:
    """A generator, and columns of normal numbers of n rows to learn and the rows to predict."""
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n + TEST, n_columns))


def _targets(truth: np.ndarray, rng: np.random.Generator, loss: str) -> np.ndarray:
    """Labels with these log-odds, or these numbers with noise."""
    return _labels(truth, rng) if loss == "log" else truth + rng.normal(size=len(truth))


def _mixed(seed: int, n: int = 3000, loss: str = "log") -> Case:
    """Two classes or noisy numbers, eight columns of which five matter in all the usual ways."""
    rng, X = _normal(seed, n, 8)
    return _cut(X, _targets(_mixed_margins(X), rng, loss), n, loss)


def _linear(seed: int, n: int, n_columns: int, loss: str = "log", n_true: int | None = None) -> Case:
    """Two classes or numbers with a linear truth of the first columns, or of all."""
    rng, X = _normal(seed, n, n_columns)
    n_true = n_columns if n_true is None else n_true
    truth = X[:, :n_true] @ rng.normal(size=n_true) * 2 / np.sqrt(n_true)
    return _cut(X, _targets(truth, rng, loss), n, loss)


RATES, ROWS = (0.001, 0.002, 0.01, 0.05), (500, 3000, 20_000)  # of rare classes
TIMES = 5  # copies of a row
RARE_TEST = 40_000  # rows, so that there are some positives
GROUPS, LIKE = 400, 12
SHARED = Path(os.environ.get("TUNEFREE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def _each(seeds: int = 4, **values: tuple[Any, ...]) -> Callable[[Any], Any]:
    """A mark of a function with another number of seeds, or with the values of a parameter."""

    def marked(draw: Any) -> Any:
        draw.each = seeds, values
        return draw

    return marked


def _situations(draw: Callable[..., Case]) -> list[Situation]:
    """A situation for each value of one parameter of a function, or one for a function of the seed alone."""
    (seeds, values), why = getattr(draw, "each", (4, {})), draw.__doc__ or ""
    if not values:
        return [Situation(draw.__name__, why, draw, seeds)]
    ((parameter, several),) = values.items()
    return [
        Situation(f"{draw.__name__}[{'-'.join(f'{part:g}' for part in np.atleast_1d(value))}]", why, call, seeds)
        for value in several
        for call in [partial(draw, **{parameter: value})]
    ]


# -- weights of rows, and copies, which say the same


@_each(factor=(1e-6, 1e-3, 3.7, 1e3, 1e6))
def constant_weights(seed: int, factor: float) -> Case:
    """Weights are relative: one and the same for all rows says nothing."""
    case = _mixed(seed)
    return case._replace(train=case.train._replace(weight=np.full(len(case.train.y), factor)), plain=case.train)


def random_weights(seed: int) -> Case:
    """Weights that have nothing to do with the rows cost rows, as with anybody else."""
    case = _mixed(seed)
    weight = np.random.default_rng(seed).gamma(0.7, size=len(case.train.y)) + 0.01
    return case._replace(train=case.train._replace(weight=weight))


def integer_weights(seed: int) -> Case:
    """A row of weight 3 is three rows."""
    case = _mixed(seed)
    times = np.random.default_rng(seed).integers(1, 4, len(case.train.y))
    plain = case.train.take(np.random.default_rng(seed).permutation(np.repeat(np.arange(len(times)), times)))
    return case._replace(train=case.train._replace(weight=times.astype(float)), plain=plain)


def zero_weights(seed: int) -> Case:
    """Rows of weight 0 are left out, whatever they hold."""
    case, rng = _mixed(seed), np.random.default_rng(seed)
    n = len(case.train.y)
    X = np.concatenate([case.train.X, 100 * rng.normal(size=case.train.X.shape)])
    y = np.concatenate([case.train.y, rng.integers(2, size=n)])
    order = rng.permutation(2 * n)
    return case._replace(train=Rows(X, y, (np.arange(2 * n) < n).astype(float)).take(order), plain=case.train)


def copies(seed: int) -> Case:
    """All rows five times, as a join makes them, are no more than the rows."""
    case = _mixed(seed)
    order = np.random.default_rng(seed).permutation(np.tile(np.arange(len(case.train.y)), TIMES))
    return case._replace(train=case.train.take(order), plain=case.train)


def copies_with_other_labels(seed: int) -> Case:
    """The same things were measured five times: their columns are equal, their labels are not."""
    case, rng = _mixed(seed, 600), np.random.default_rng(seed)
    X = np.repeat(case.train.X, TIMES, axis=0)
    order = rng.permutation(len(X))
    return case._replace(train=Rows(X, _labels(_mixed_margins(X), rng)).take(order))


def _few_positives(seed: int) -> Case:
    """A tenth of the rows are positive."""
    rng, X = _normal(seed, 30_000, 8)
    return _cut(X, _labels(_mixed_margins(X) - 3.5, rng), 4000)


def copied_minority(seed: int) -> Case:
    """Copies of the rare class make it as heavy as their number, and nothing else."""
    case, rng = _few_positives(seed), np.random.default_rng(seed)
    times = np.where(case.train.y == 1, TIMES, 1)
    order = rng.permutation(np.repeat(np.arange(len(times)), times))
    test = case.test._replace(weight=np.where(case.test.y == 1, float(TIMES), 1.0))
    return Case(case.train.take(order), test, plain=case.train._replace(weight=times.astype(float)))


def weighted_minority(seed: int) -> Case:
    """The rare class is worth more than others: probabilities are those of the weighted rows."""
    return _changed(_few_positives(seed), lambda rows: rows._replace(weight=np.where(rows.y == 1, float(TIMES), 1.0)))


def balanced(seed: int) -> Case:
    """``class_weight="balanced"`` is weights that make the classes equally heavy."""
    case = _few_positives(seed)
    test = case.test._replace(weight=compute_sample_weight("balanced", case.test.y))
    return Case(case.train, test, class_weight="balanced")


# -- rare classes, and many


@_each(6, rate_and_rows=tuple(product(RATES, ROWS)))
def rare(seed: int, rate_and_rows: tuple[float, int]) -> Case:
    """Rare positives: few of them judge anything, and a wrong base rate costs more than all the columns gain."""
    rate, n = rate_and_rows
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + RARE_TEST, 5))
    margins = X @ np.array([1.0, -0.8, 0.6, 0.0, 0.0])
    y = _labels(margins + _intercept(margins, rate), rng)
    n_positive = max(1, round(rate * n))
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    rows = rng.permutation(np.concatenate([positive[:n_positive], negative[: n - n_positive]]))
    others = np.concatenate([positive[n_positive:], negative[n - n_positive :]])
    return Case(Rows(X[rows], y[rows]), Rows(X[others], y[others]))


def _intercept(margins: np.ndarray, rate: float) -> float:
    """What to add to log-odds so that their mean probability is this rate."""
    low, high = -30.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-margins - middle))).mean() < rate else (low, middle)
    return low


@_each(classes_and_rows=((3, 20), (10, 20), (30, 15), (100, 10)))
def many(seed: int, classes_and_rows: tuple[int, int]) -> Case:
    """Few rows of each class: what is known of one class is little, and there are many."""
    n_classes, n_each = classes_and_rows
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_classes * n_each + TEST)
    y[:n_classes] = np.arange(n_classes)
    centres = rng.normal(size=(n_classes, 10))
    return _cut(centres[y] + 0.8 * rng.normal(size=(len(y), 10)), y, n_classes * n_each)


def single_rows(seed: int) -> Case:
    """Some classes have one row: they cannot be learned, and must not spoil the others."""
    rng = np.random.default_rng(seed)
    counts = np.array([150, 120, 100, 80, 50, 1, 1, 1, 1])
    centres = rng.normal(size=(len(counts), 6))
    y = np.concatenate([np.repeat(np.arange(len(counts)), counts), rng.choice(len(counts), TEST, p=counts / 504)])
    rows = np.concatenate([rng.permutation(504), np.arange(504, len(y))])
    return _cut(centres[y[rows]] + rng.normal(size=(len(y), 6)), y[rows], 504)


def unequal_sizes(seed: int) -> Case:
    """Ten classes, each half as large as the one before: boosting goes astray on the smallest."""
    rng = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(10.0)
    y = rng.choice(10, 3000 + TEST, p=shares / shares.sum())
    y[:10] = np.arange(10)
    centres = rng.normal(size=(10, 8))
    return _cut(centres[y] + 1.2 * rng.normal(size=(len(y), 8)), y, 3000)


# -- what there is to learn: nothing, something linear, steps, interactions, hidden among noise


@_each(n=(100, 500, 3000))
def noise(seed: int, n: int) -> Case:
    """Nothing to learn: the best is the share of each class."""
    rng = np.random.default_rng(seed)
    return _cut(rng.normal(size=(n + TEST, 10)), rng.integers(2, size=n + TEST), n)


def noise_of_classes(seed: int) -> Case:
    """Nothing to learn about ten classes of unequal shares."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, 11) / 55
    return _cut(rng.normal(size=(2000 + TEST, 10)), rng.choice(10, 2000 + TEST, p=shares), 2000)


@_each(n=(100, 1000))
def noise_of_numbers(seed: int, n: int) -> Case:
    """Nothing to learn: the best is the mean."""
    rng = np.random.default_rng(seed)
    return _cut(rng.normal(size=(n + TEST, 10)), rng.normal(size=n + TEST), n, "square")


def noise_columns(seed: int) -> Case:
    """Five columns of a hundred matter."""
    return _linear(seed, 1000, 100, n_true=5)


def noise_columns_with_steps(seed: int) -> Case:
    """Three columns of sixty matter, by steps, so that linear models do not find them."""
    rng, X = _normal(seed, 2000, 60)
    y = 2.0 * (X[:, 0] > 0.5) + (np.abs(X[:, 1]) < 0.5) - (X[:, 2] > 1) + 0.5 * rng.normal(size=len(X))
    return _cut(X, y, 2000, "square")


@_each(n=(100, 400))
def wide(seed: int, n: int) -> Case:
    """More columns than rows: whoever fits all of them fits noise."""
    return _linear(seed, n, 5 * n // 2, n_true=10)


def wide_numbers(seed: int) -> Case:
    """More columns than rows, and numbers to predict."""
    return _linear(seed, 300, 600, "square", n_true=20)


@_each(n=(150, 1000))
def linear_classes(seed: int, n: int) -> Case:
    """A linear truth, where trees are a waste."""
    return _linear(seed, n, 10)


@_each(n=(150, 1000))
def linear_numbers(seed: int, n: int) -> Case:
    """A linear truth with noise, where trees are a waste."""
    return _linear(seed, n, 10, "square")


def exact_numbers(seed: int) -> Case:
    """A linear truth with hardly any noise: anything beside the linear model shows."""
    rng, X = _normal(seed, 1000, 6)
    return _cut(X, X @ rng.normal(size=6) + 0.05 * rng.normal(size=len(X)), 1000, "square")


def steps(seed: int) -> Case:
    """Steps in a few columns, which trees know and lines do not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(2000 + TEST, 6))
    return _cut(X, _labels(3 * (X[:, 0] > 0.6) - 2 * (X[:, 1] > 0.3) + 2 * (np.abs(X[:, 2] - 0.5) < 0.2), rng), 2000)


def exclusive_or(seed: int) -> Case:
    """Two columns matter only together."""
    rng, X = _normal(seed, 1000, 6)
    return _cut(X, _labels(np.where((X[:, 0] > 0) ^ (X[:, 1] > 0), 2.5, -2.5), rng), 1000)


def products(seed: int) -> Case:
    """Products of columns, smooth, with noise."""
    rng, X = _normal(seed, 2000, 6)
    return _cut(X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=len(X)), 2000, "square")


def waves(seed: int) -> Case:
    """A smooth curve of one column and a line of another."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(1500 + TEST, 5))
    return _cut(X, np.sin(3 * X[:, 0]) + 0.5 * X[:, 1] + 0.4 * rng.normal(size=len(X)), 1500, "square")


def separable(seed: int) -> Case:
    """Classes that a line separates: log-odds have no bound, and every error is dear."""
    rng, X = _normal(seed, 600, 5)
    return _cut(X, (X @ rng.normal(size=5) > 0).astype(np.int64), 600)


# -- rows that are not independent, and not in a random order


def _of_groups(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Centres of groups (groups, 8), and the group of each row, in random order."""
    rng = np.random.default_rng(seed)
    n = GROUPS + GROUPS // 4 * 10
    return rng, rng.normal(size=(n, 8)), rng.permutation(np.repeat(np.arange(n), LIKE))


def _divided(X: np.ndarray, y: np.ndarray, groups: np.ndarray, loss: str) -> Case:
    """The first groups to learn, the others to predict."""
    rows = Rows(X, y, groups=groups)
    return Case(rows.take(groups < GROUPS), rows.take(groups >= GROUPS)._replace(groups=None), loss)


def groups_of_like_rows(seed: int) -> Case:
    """Rows of one group are nearly equal and have one label: rows of a group are no evidence for each other."""
    rng, centres, groups = _of_groups(seed)
    y = _labels(centres[:, 0] - centres[:, 1], rng)[groups]
    return _divided(centres[groups] + 0.05 * rng.normal(size=(len(groups), 8)), y, groups, "log")


def groups_of_numbers(seed: int) -> Case:
    """Each group has a level of its own, which says nothing about new groups."""
    rng, centres, groups = _of_groups(seed)
    y = (centres[:, 0] + rng.normal(size=len(centres)))[groups] + 0.3 * rng.normal(size=len(groups))
    return _divided(centres[groups] + 0.05 * rng.normal(size=(len(groups), 8)), y, groups, "square")


def sorted_by_class(seed: int) -> Case:
    """A file that is sorted by its target."""
    case = _mixed(seed)
    return case._replace(train=case.train.take(np.argsort(case.train.y, kind="stable")), plain=case.train)


def sorted_by_number(seed: int) -> Case:
    """A file that is sorted by its numbers."""
    case = _mixed(seed, loss="square")
    return case._replace(train=case.train.take(np.argsort(case.train.y)), plain=case.train)


def drift(seed: int) -> Case:
    """Rows in the order of time, the truth turns slowly, and what is predicted comes after."""
    rng = np.random.default_rng(seed)
    n, n_test = 4000, 1000
    X = rng.normal(size=(n + n_test, 6))
    angle = np.arange(n + n_test) / n * np.pi / 2
    return _cut(X, _labels(2 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]), rng), n)


def drift_with_a_clock(seed: int) -> Case:
    """The same with the time as a column."""
    case = drift(seed)
    n, n_test = len(case.train.y), len(case.test.y)
    times = iter([np.arange(n), np.arange(n, n + n_test)])
    return _with_columns(case, lambda X: np.column_stack([X, next(times)]))


def two_clusters(seed: int) -> Case:
    """Two populations far from each other, with opposite truths."""
    rng, X = _normal(seed, 2000, 5)
    side = rng.integers(2, size=len(X))
    y = _labels(np.where(side == 1, 2.0, -2.0) * X[:, 0], rng)
    X[:, 1:3] += 20.0 * side[:, None]
    return _cut(X, y, 2000)


def outliers(seed: int) -> Case:
    """One row of a hundred is a thousand times too large, in training and after it."""
    rng = np.random.default_rng(seed)
    return _with_columns(_mixed(seed), lambda X: np.where(rng.random((len(X), 1)) < 0.01, 1000.0, 1.0) * X)


def wrong_labels(seed: int) -> Case:
    """A fifth of the training labels are wrong, and those of the test rows as well."""
    rng = np.random.default_rng(seed)
    mislabelled = lambda y: np.where(rng.random(len(y)) < 0.2, 1 - y, y)  # noqa: E731
    return _changed(_mixed(seed), lambda rows: rows._replace(y=mislabelled(rows.y)))


# -- columns as they come: heavy tails, constants, copies, numbers of rows, gaps, units


def _table(X: np.ndarray) -> pd.DataFrame:
    """A table with these columns, whose gaps are missing values."""
    return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])


def _changed(case: Case, change: Callable[[Rows], Rows]) -> Case:
    """Other training rows and test rows."""
    return case._replace(train=change(case.train), test=change(case.test))


def _with_columns(case: Case, change: Callable[[np.ndarray], Any]) -> Case:
    """Training rows and test rows with other columns."""
    return _changed(case, lambda rows: rows._replace(X=change(rows.X)))


def heavy_columns(seed: int) -> Case:
    """Columns without a variance, as sums of money are."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.2, size=(2000 + TEST, 8))
    return _cut(X, _labels(np.arcsinh(X[:, 0]) - np.arcsinh(X[:, 1]) + (X[:, 2] > 0), rng), 2000)


def heavy_columns_of_numbers(seed: int) -> Case:
    """Log-normal columns, and numbers that follow their logarithms."""
    rng = np.random.default_rng(seed)
    logarithms = rng.normal(size=(2000 + TEST, 6))
    y = logarithms @ rng.normal(size=6) + rng.normal(size=len(logarithms))
    return _cut(np.exp(3 * logarithms), y, 2000, "square")


def constant_columns(seed: int) -> Case:
    """Columns that never vary say nothing."""
    return _with_columns(_mixed(seed), lambda X: np.hstack([X, np.full((len(X), 5), 7e5), np.zeros((len(X), 5))]))


def copied_columns(seed: int) -> Case:
    """One column ten times: linear models must not learn it ten times as fast, nor trees see nothing else."""
    return _with_columns(_mixed(seed), lambda X: np.hstack([X, np.repeat(X[:, :1], 10, axis=1)]))


def row_numbers(seed: int) -> Case:
    """A number of each row, large and of no meaning."""
    case = _mixed(seed)
    n, n_test = len(case.train.y), len(case.test.y)
    numbers = iter(np.split(1e7 + np.random.default_rng(seed).permutation(n + n_test), [n]))
    return _with_columns(case, lambda X: np.column_stack([next(numbers), X]))


def missing_at_random(seed: int) -> Case:
    """A fifth of the values of a table is missing."""
    rng = np.random.default_rng(seed)
    return _with_columns(_mixed(seed), lambda X: _table(np.where(rng.random(X.shape) < 0.2, np.nan, X)))


def missing_where_large(seed: int) -> Case:
    """Large values of a table are missing, so that a gap says something."""
    return _with_columns(_mixed(seed, loss="square"), lambda X: _table(np.where(X > 0.8, np.nan, X)))


def large_offsets(seed: int) -> Case:
    """Columns far from zero, as years and coordinates are."""
    case = _mixed(seed, loss="square")
    return _with_columns(case, lambda X: X + np.array([2000, 1e6, -1e6, 1e4, 50, 1e5, 0, 1e3]))


def tiny_scales(seed: int) -> Case:
    """Columns of the size of 1e-9: units are nobody's business."""
    return _with_columns(_mixed(seed), lambda X: 1e-9 * X)


def unlike_scales(seed: int) -> Case:
    """Each column is a thousand times larger than the one before."""
    return _with_columns(_mixed(seed), lambda X: X * 1000.0 ** np.arange(-4, X.shape[1] - 4))


def correlated_columns(seed: int) -> Case:
    """Columns that are nearly equal, and their small differences are what matters."""
    rng, common = _normal(seed, 1500, 1)
    X = common + 0.1 * rng.normal(size=(1500 + TEST, 6))
    return _cut(X, _labels(10 * (X[:, 0] - X[:, 1]) + 10 * (X[:, 2] - X[:, 3]), rng), 1500)


# -- numbers to predict: heavy tails, unequal variance, counts, units


def heavy_targets(seed: int) -> Case:
    """Targets without a variance: the median is what can be learned."""
    rng, X = _normal(seed, 3000, 8)
    return _cut(X, _mixed_margins(X) + rng.standard_t(1.5, size=len(X)), 3000, "absolute")


def log_normal_targets(seed: int) -> Case:
    """Prices: most are small, some are large, and squares are asked for."""
    rng, X = _normal(seed, 3000, 8)
    return _cut(X, np.exp(0.6 * _mixed_margins(X) + 0.4 * rng.normal(size=len(X))), 3000, "square")


def unequal_variance(seed: int) -> Case:
    """The noise grows with a column."""
    rng, X = _normal(seed, 2000, 6)
    return _cut(X, X[:, 0] + (X[:, 2] > 0) + np.exp(X[:, 1]) * rng.normal(size=len(X)), 2000, "square")


def counts(seed: int) -> Case:
    """An integer target that is a number, not a class."""
    rng, X = _normal(seed, 2000, 6)
    return _cut(X, rng.poisson(np.exp(0.5 * X[:, 0] + 0.5 * (X[:, 1] > 0))).astype(float), 2000, "square")


def rare_numbers(seed: int) -> Case:
    """Nearly all targets are zero, as claims are."""
    rng, X = _normal(seed, 4000, 6)
    claims = rng.random(len(X)) < 0.05 * np.exp(0.7 * X[:, 0])
    return _cut(X, claims * rng.gamma(2.0, size=len(X)), 4000, "square")


def far_targets(seed: int) -> Case:
    """Targets far from zero and close together."""
    return _changed(_mixed(seed, loss="square"), lambda rows: rows._replace(y=1e6 + 1e-2 * rows.y))


# -- small real tables, those of scikit-learn and some that may not be there, and texts


def _parts(X: Any, y: np.ndarray, n: int, seed: int, loss: str = "log") -> Case:
    """So many rows to learn, drawn at random, and all others to predict."""
    order = np.random.default_rng(seed).permutation(len(y))
    rows = Rows(X, y)
    return Case(rows.take(order[:n]), rows.take(order[n:]), loss)


def _bundled(name: str, seed: int, loss: str = "log") -> Case:
    """Two thirds of a table of scikit-learn to learn."""
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return _parts(X, y, 2 * len(y) // 3, seed, loss)


def breast_cancer(seed: int) -> Case:
    """Thirty columns that say nearly the same, 379 rows."""
    return _bundled("breast_cancer", seed)


@_each(8)
def wine(seed: int) -> Case:
    """Three classes, 118 rows, and hardly an error."""
    return _bundled("wine", seed)


@_each(8)
def iris(seed: int) -> Case:
    """A hundred rows."""
    return _bundled("iris", seed)


def digits(seed: int) -> Case:
    """Ten classes of pictures, 1,198 rows."""
    return _bundled("digits", seed)


@_each(8)
def diabetes(seed: int) -> Case:
    """Much noise, 294 rows, and lines are hard to beat."""
    return _bundled("diabetes", seed, "square")


@_each(n=(200, 1000))
def people(seed: int, n: int) -> Case:
    """Few rows of the census: numbers, categories as codes."""
    frame = parquet.read_table(Path(tunefree.__file__).parent / "data" / "adult.parquet").to_pandas()
    income = (frame.pop("income").astype(str).str.contains(">")).to_numpy(np.int64)
    frame = frame.drop(columns="split", errors="ignore")
    for name in frame.columns:
        if frame[name].dtype.kind not in "iuf":
            frame[name] = frame[name].astype("category").cat.codes
    case = _parts(frame.to_numpy(float), income, n, seed)
    return case._replace(test=case.test.take(slice(0, 10_000)))


@_each(n=(100, 1000))
def short_texts(seed: int, n: int) -> Case:
    """Few documents of words that follow Zipf's law, a few of which tell two kinds apart."""
    rng = np.random.default_rng(seed)
    n_words, n_documents = 3000, n + 2000
    y = rng.integers(2, size=n_documents)
    rates = 40.0 / (np.arange(1, n_words + 1) + 10) / np.log(n_words)
    tilt = np.where(rng.random(n_words) < 0.05, rng.normal(size=n_words), 0.0)
    words = rng.poisson(rates * np.exp(np.where(y[:, None] == 1, tilt, -tilt)) * 2)
    lengths = np.sqrt((words**2).sum(axis=1, keepdims=True))
    X = sparse.csr_array(words / np.maximum(lengths, 1))
    return _cut(X, y, n)


def newsgroups(seed: int) -> Case:
    """Four hundred posts of 20 groups that talk about two kinds of things; skipped where they are not there."""
    table = parquet.read_table(SHARED / "newsgroups20_bydate.parquet", columns=["text", "news20_binary"]).to_pandas()
    y = np.unique(table["news20_binary"].astype(str), return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(y))[:3000]
    texts = table["text"].to_numpy()[order]
    terms = TfidfVectorizer(min_df=2, sublinear_tf=True).fit(texts[:400])
    X = sparse.csr_array(terms.transform(texts))
    return Case(Rows(X[:400], y[order[:400]]), Rows(X[400:], y[order[400:]]))


# -- columns of few values


@_each(values=(3, 6, 10))
def few_values(seed: int, values: int) -> Case:
    """Columns of few values, so that many rows are alike; an effect of each cell is added to those of its values."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (2000 + TEST, 3))
    effects = sum(rng.normal(size=values)[X[:, j]] for j in range(3)) + 0.7 * rng.normal(size=(values,) * 3)[tuple(X.T)]
    return _cut(X.astype(float), _labels(effects, rng), 2000)


def few_values_of_numbers(seed: int) -> Case:
    """Numbers of 216 cells, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (2000 + TEST, 3))
    return _cut(X.astype(float), rng.normal(size=(6, 6, 6))[tuple(X.T)] + rng.normal(size=len(X)), 2000, "square")


ALL = tuple(
    situation
    for name, draw in list(globals().items())
    if inspect.isfunction(draw) and draw.__module__ == __name__ and not name.startswith("_")
    for situation in _situations(draw)
)
CHOSEN, OTHER = ALL[::2], ALL[1::2]
HALVES = {"chosen": CHOSEN, "other": OTHER}
