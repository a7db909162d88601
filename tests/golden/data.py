"""Rows to learn and to predict: tables of a few hundred rows drawn from seeds, and some of the census data.

Numbers are rounded to three decimals: texts hold them exactly, and they do not depend on the mathematical library.
"""

from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

import tunefree

N, NEW = 300, 60  # rows of most tables to learn, and of all to predict
TOWNS, WORDS = np.array(["Bath", "Ely", "Ripon", "Wells", "York"]), np.array([f"word{i}" for i in range(150)])


class Data(NamedTuple):
    """A problem: rows to learn and to predict, names of columns by their roles, and options of a training."""

    task: str
    learned: pa.Table
    new: pa.Table
    columns: dict[str, str]
    options: dict[str, Any]
    name: str = ""

    @property
    def extra(self) -> dict[str, np.ndarray]:
        """Weights, groups and exposures, by the parameters of estimators."""
        names = "sample_weight", "groups", "exposure"
        return {role: self.learned[name].to_numpy() for role, name in self.columns.items() if role in names}

    @property
    def rows(self) -> pa.Table:
        return self.learned.drop_columns(list(self.columns.values()))

    @property
    def y(self) -> np.ndarray:
        return np.array(self.learned["y"].to_pylist())

    @property
    def new_rows(self) -> pa.Table:
        return self.new.drop_columns(list(self.columns.values()))


def data(task: str, table: dict[str, Any], options: dict[str, Any] | None = None, **columns: str) -> Data:
    whole = pa.table(table)
    n = len(whole) - NEW
    return Data(task, whole.slice(0, n), whole.slice(n), {"target": "y", **columns}, options or {})


def numbers(rng: np.random.Generator, n: int, columns: int) -> dict[str, np.ndarray]:
    return dict(zip([f"x{j}" for j in range(columns)], rng.normal(size=(columns, n)).round(3), strict=True))


def seven() -> Data:
    """Seven classes, of which some are rare, by numbers of unlike scales and a category."""
    rng = np.random.default_rng(2)
    x, town = numbers(rng, N + NEW, 4), rng.integers(0, 5, N + NEW)
    score = x["x0"] + 0.5 * (town == 2) + x["x1"] ** 2 + 0.2 * rng.normal(size=N + NEW)
    labels = np.array(list("abcdefg"))[np.digitize(score, [-1, -0.5, 0.3, 1, 1.6, 2.2])]
    return data("classification", {**x, "x1": 1000 * x["x1"], "x2": 50 + x["x2"], "town": TOWNS[town], "y": labels})


def prices() -> Data:
    """A number far from zero, with a few that are very large."""
    rng = np.random.default_rng(3)
    area, age, town = rng.uniform(30, 200, N + NEW).round(1), rng.integers(0, 100, N + NEW), rng.integers(0, 5, N + NEW)
    y = 100_000 + 2500 * area - 9 * age * area + 40_000 * (town == 4) + 9000 * rng.standard_t(2, N + NEW)
    return data("regression", {"area": area, "age": age, "town": TOWNS[town], "y": y.round(1)})


def counts() -> Data:
    """Counts with exposures, most of them zero."""
    rng = np.random.default_rng(4)
    x, town, years = rng.integers(0, 10, N + NEW), rng.integers(0, 5, N + NEW), rng.uniform(0.1, 2, N + NEW).round(3)
    y = rng.poisson((0.1 + 0.1 * x * (town < 3)) * years).astype(float)
    table = {"x": x, "town": TOWNS[town], "years": years, "y": y}
    return data("regression", table, {"loss": "poisson"}, exposure="years")


def texts() -> Data:
    """Short texts, and a number."""
    rng = np.random.default_rng(5)
    words = (150 * rng.uniform(size=(N + NEW, 8)) ** 2).astype(int)
    labels = np.where((words < 12).sum(1) + rng.integers(0, 2, N + NEW) > 2, "spam", "ham")
    table = {"said": [" ".join(WORDS[row]) for row in words], "largest": words.max(1), "y": labels}
    return data("classification", table, {"text": ("said",)})


def levels() -> Data:
    """Categories of many levels, so that new ones come all along."""
    rng = np.random.default_rng(6)
    codes = (80 * rng.uniform(size=(3, N + NEW)) ** 3).astype(int)
    labels = np.where((codes % 3 == 0).sum(0) + rng.uniform(size=N + NEW) > 1.6, "in", "out")
    return data("classification", {f"code{j}": [f"level {c}" for c in codes[j]] for j in range(3)} | {"y": labels})


def people() -> Data:
    """Missing values, dates, booleans, weights and groups."""
    rng = np.random.default_rng(7)
    day, town = rng.integers(0, 700, N + NEW), rng.integers(0, 5, N + NEW)
    age = rng.integers(18, 80, N + NEW).astype(float)
    since = [date(2024, 1, 1) + timedelta(int(days)) for days in day]
    columns = {"age": age, "town": TOWNS[town], "since": since, "owns": town % 2 == 0}
    table = {name: pa.array(part, mask=rng.uniform(size=N + NEW) < 0.15) for name, part in columns.items()}
    labels = np.where(age + 20 * (town == 1) + 0.03 * day + 8 * rng.normal(size=N + NEW) > 65, "rich", "poor")
    table |= {"weight": rng.integers(0, 4, N + NEW).astype(float), "house": np.arange(N + NEW) // 3, "y": labels}
    return data("classification", table, sample_weight="weight", groups="house")


def few_values() -> Data:
    """Numbers of few values, and two that do not change."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 4, (5, N + NEW)).astype(float)
    table = {f"x{j}": X[j] for j in range(4)} | {"zero": np.zeros(N + NEW), "seven": np.full(N + NEW, 7.0)}
    return data("regression", table | {"y": X[0] * X[1] - X[2] + (X[4] > 1)})


def wide() -> Data:
    """A thousand columns and fewer rows."""
    table = numbers(np.random.default_rng(9), 70 + NEW, 1000)
    return data("classification", table | {"y": np.where(table["x0"] + table["x1"] > 0, "plus", "minus")})


def late() -> Data:
    """Classes, which are numbers, and levels that come late."""
    rng = np.random.default_rng(10)
    table, row = numbers(rng, N + NEW, 2), np.arange(N + NEW)
    place = np.minimum(np.digitize(table["x0"], [-0.5, 0.3, 1]), row // 80).astype(float)
    towns = TOWNS[np.minimum(rng.integers(0, 5, N + NEW), row // 50)]
    return data("classification", {**table, "town": towns, "y": place})


def adult() -> Data:
    """Some of the census data that comes with the package."""
    whole = pq.read_table(Path(tunefree.__file__).parent / "data" / "adult.parquet").slice(0, 400 + NEW)
    table = {name: whole[name] for name in whole.column_names if name not in ("split", "income")}
    return data("classification", table | {"y": whole["income"]})


def one_row() -> Data:
    table = numbers(np.random.default_rng(11), 1 + NEW, 2)
    return data("regression", table | {"y": 3 + table["x0"]})


def stream() -> Data:
    """Enough rows for a new window, and for generations that take over; it changes halfway."""
    table = numbers(np.random.default_rng(13), 4700 + NEW, 3)
    x0, x1, x2 = table.values()
    labels = np.where(np.arange(4700 + NEW) < 2500, x0 > x1, x0 * x2 > 0).astype(str)
    return data("classification", table | {"y": labels})


DRAWN = (seven, prices, counts, texts, levels, people, few_values, wide, late, adult, one_row, stream)
TABLES = {f.__name__: cache(lambda f=f: f()._replace(name=f.__name__)) for f in DRAWN}


@cache
def sparse_rows() -> tuple[csr_array, np.ndarray, csr_array]:
    """Rows of many features of which most are rare, classes 0 to 2, and rows to predict."""
    rng = np.random.default_rng(12)
    shape = N + NEW, 2000
    X = csr_array(rng.integers(1, 9, shape) / 4 * (rng.uniform(size=shape) < 0.5 / (1 + np.arange(2000) / 8)))
    score = X[:, :40:2].sum(1) - X[:, 1:40:2].sum(1)
    return X[:N], np.digitize(score, [-1.5, 1.5])[:N], X[N:]
