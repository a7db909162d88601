"""Rows to learn and to predict: tables of a few hundred rows drawn from seeds, and some of the census data.

Numbers are rounded to three decimals, so that a text holds them exactly, and the mathematical library of a machine does
not change them.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import tunefree

NEW = 60  # rows to predict
TOWNS, WORDS = np.array(["Bath", "Ely", "Ripon", "Wells", "York"]), np.array([f"word{i}" for i in range(150)])


class Data(NamedTuple):
    """Rows of a problem.

    ``columns`` names the column of the target and those with another role, by the parameter of a training.
    """

    task: str
    learned: pa.Table
    new: pa.Table
    columns: dict[str, str]
    options: dict[str, Any]  # of a training

    @property
    def extra(self) -> dict[str, np.ndarray]:
        """Weights, groups and exposures, by the parameters of estimators."""
        names = {"weight": "sample_weight", "group": "groups", "exposure": "exposure"}
        return {names[role]: self.learned[name].to_numpy() for role, name in self.columns.items() if role in names}

    @property
    def X(self) -> pa.Table:
        return self.learned.drop_columns(list(self.columns.values()))

    @property
    def y(self) -> np.ndarray:
        return np.array(self.learned[self.columns["target"]].to_pylist())

    @property
    def X_new(self) -> pa.Table:
        return self.new.drop_columns(list(self.columns.values()))


def data(task: str, table: dict[str, Any], options: dict[str, Any] | None = None, **columns: str) -> Data:
    """The last rows of a table are to be predicted."""
    whole = pa.table(table)
    n = len(whole) - NEW
    return Data(task, whole.slice(0, n), whole.slice(n), {"target": "y", **columns}, options or {})


def numbers(rng: np.random.Generator, n: int, columns: int) -> np.ndarray:
    return rng.normal(size=(n, columns)).round(3)


def with_nulls(rng: np.random.Generator, values: Any, share: float = 0.15) -> pa.Array:
    return pa.array(values, mask=rng.uniform(size=len(values)) < share)


def binary() -> Data:
    """Two classes by five numbers of unlike scales."""
    rng = np.random.default_rng(1)
    X = numbers(rng, 360, 5) * [1, 0.001, 1000, 1, 1] + [0, 0, 0, 50, 0]
    is_yes = X[:, 0] + (X[:, 2] / 1000) ** 2 + 0.5 * rng.normal(size=360) > 1
    return data("classification", {f"x{j}": X[:, j] for j in range(5)} | {"y": np.where(is_yes, "yes", "no")})


def seven() -> Data:
    """Seven classes, of which some are rare, by numbers and a category."""
    rng = np.random.default_rng(2)
    X, town = numbers(rng, 360, 4), rng.integers(0, 5, 360)
    place = np.digitize(X[:, 0] + 0.5 * (town == 2) + 0.2 * rng.normal(size=360), [-1.5, -1, -0.3, 0.1, 0.6, 1.2])
    table = {f"x{j}": X[:, j] for j in range(4)} | {"town": TOWNS[town]}
    return data("classification", table | {"y": np.array(list("abcdefg"))[place]})


def prices() -> Data:
    """A number far from zero, with a few that are very large."""
    rng = np.random.default_rng(3)
    area, age, town = rng.uniform(30, 200, 360).round(1), rng.integers(0, 100, 360), rng.integers(0, 5, 360)
    noise = (9000 * rng.standard_t(2, 360)).round(1)
    y = 100_000 + 2500 * area - 9 * age * area + 40_000 * (town == 4) + noise
    return data("regression", {"area": area, "age": age, "town": TOWNS[town], "y": y.round(1)})


def counts() -> Data:
    """Counts with exposures, most of them zero."""
    rng = np.random.default_rng(4)
    x, town = rng.integers(0, 10, 360), rng.integers(0, 5, 360)
    years = rng.uniform(0.1, 2, 360).round(3)
    y = rng.poisson((0.1 + 0.1 * x * (town < 3)) * years)
    table = {"x": x, "town": TOWNS[town], "years": years, "y": y.astype(float)}
    return data("regression", table, {"loss": "poisson"}, exposure="years")


def texts() -> Data:
    """Short texts, and a number."""
    rng = np.random.default_rng(5)
    draws = (150 * rng.uniform(size=(300, 8)) ** 2).astype(int)
    is_spam = (draws < 12).sum(1) + rng.integers(0, 2, 300) > 2
    said = [" ".join(WORDS[row]) for row in draws]
    table = {"said": said, "length": draws.max(1), "y": np.where(is_spam, "spam", "ham")}
    return data("classification", table, {"text": ("said",)})


def levels() -> Data:
    """Categories of many levels, so that new ones come all along."""
    rng = np.random.default_rng(6)
    codes = (80 * rng.uniform(size=(360, 3)) ** 3).astype(int)
    y = np.where((codes % 3 == 0).sum(1) + rng.uniform(size=360) > 1.6, "in", "out")
    table = {f"code{j}": [f"level {code}" for code in codes[:, j]] for j in range(3)}
    return data("classification", table | {"y": y})


def people() -> Data:
    """Missing values, dates, booleans, weights and groups."""
    rng = np.random.default_rng(7)
    day = rng.integers(0, 700, 360)
    age, town = rng.integers(18, 80, 360).astype(float), rng.integers(0, 5, 360)
    is_rich = age + 20 * (town == 1) + 0.03 * day + 8 * rng.normal(size=360) > 65
    table = {
        "age": with_nulls(rng, age),
        "town": with_nulls(rng, TOWNS[town]),
        "since": with_nulls(rng, [date(2024, 1, 1) + timedelta(int(days)) for days in day]),
        "owns": with_nulls(rng, town % 2 == 0),
        "weight": rng.integers(0, 4, 360).astype(float),
        "house": np.arange(360) // 3,
        "y": np.where(is_rich, "rich", "poor"),
    }
    return data("classification", table, weight="weight", group="house")


def few_values() -> Data:
    """Numbers of few values, and two that do not change."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 4, (300, 4)).astype(float)
    table = {f"x{j}": X[:, j] for j in range(4)} | {"zero": np.zeros(300), "seven": np.full(300, 7.0)}
    return data("regression", table | {"y": X[:, 0] * X[:, 1] - X[:, 2] + rng.integers(0, 2, 300)})


def wide() -> Data:
    """A thousand columns and fewer rows."""
    rng = np.random.default_rng(9)
    X = numbers(rng, 130, 1000)
    table = {f"x{j}": X[:, j] for j in range(1000)}
    return data("classification", table | {"y": np.where(X[:, 0] + X[:, 1] > 0, "plus", "minus")})


def late() -> Data:
    """Classes and levels that come late."""
    rng = np.random.default_rng(10)
    row, x = np.arange(360), numbers(rng, 360, 2)
    place = np.minimum(np.digitize(x[:, 0], [-0.5, 0.3, 1]), row // 80)
    town = np.minimum(rng.integers(0, 5, 360), row // 50)
    return data("classification", {"a": x[:, 0], "b": x[:, 1], "town": TOWNS[town], "y": place.astype(float)})


def adult() -> Data:
    """Some of the census data that comes with the package."""
    whole = pq.read_table(Path(tunefree.__file__).parent / "data" / "adult.parquet").slice(0, 400 + NEW)
    columns = {name: whole[name] for name in whole.column_names if name not in ("split", "income")}
    return data("classification", columns | {"y": whole["income"]})


def one_row() -> Data:
    """One row to learn."""
    rng = np.random.default_rng(11)
    X = numbers(rng, 1 + NEW, 2)
    return data("regression", {"a": X[:, 0], "b": X[:, 1], "y": 3 + X[:, 0]})


TABLES = {f.__name__: cache(f) for f in (binary, seven, prices, counts, texts, levels, people, few_values, wide, late)}
TABLES |= {f.__name__: cache(f) for f in (adult, one_row)}


@cache
def sparse_rows() -> tuple[sparse.csr_array, np.ndarray, sparse.csr_array]:
    """Sparse rows of many features, three classes, and rows to predict."""
    rng = np.random.default_rng(12)
    shape = 300 + NEW, 2000
    X = sparse.csr_array(rng.integers(1, 9, shape) / 4 * (rng.uniform(size=shape) < 0.01))
    score = X[:, :700].sum(1) - X[:, 700:1400].sum(1) + rng.normal(size=300 + NEW).round(3)
    return sparse.csr_array(X[:300]), np.digitize(score, [-2.0, 2.0])[:300], sparse.csr_array(X[300:])


@cache
def stream() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A stream that is long enough for a new window, and generations that take over; it changes halfway."""
    rng = np.random.default_rng(13)
    X = numbers(rng, 4700 + NEW, 3)
    y = np.where(np.arange(4700 + NEW) < 2500, X[:, 0] > X[:, 1], X[:, 0] * X[:, 2] > 0).astype(int)
    return X[:4700], y[:4700], X[4700:]
