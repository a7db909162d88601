"""The data sets of the benchmarks, split into training and test rows, as tables and as matrices.

They are Parquet files in TUNEFREE_DATA (or ../shared/data); missing data sets are skipped. The census data are part of
the package. Files without a column ``split`` are split two to one in a fixed random order, or in temporal order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from common import SHARED
from pyarrow import compute, parquet

import tunefree

LATE = 15  # minutes of delay from which a flight is late


class DataSet(NamedTuple):
    """The file and the target of a data set."""

    name: str
    target: str
    kind: str = "table"  # "table", "drift" (in temporal order), "text" or "regression"
    drop: tuple[str, ...] = ()  # columns that reveal the target or are not informative
    file: str | None = None  # name of the file, if not that of the data set

    @property
    def path(self) -> Path:
        """Path of the file, which may not exist."""
        if self.name == "adult":
            return Path(tunefree.__file__).parent / "data" / "adult.parquet"
        return SHARED / f"{self.file or self.name}.parquet"


ALL = (
    DataSet("adult", "income"),
    DataSet("shuttle", "Class"),
    DataSet("covtype", "Cover_Type"),
    DataSet("letter_recognition", "lettr"),
    DataSet("mnist", "label"),
    DataSet("bank_additional_full", "y", drop=("duration",)),
    DataSet("spambase", "type"),
    DataSet("census_income_kdd_test", "income", drop=("instance weight",)),
    DataSet("madelon", "Class"),
    DataSet("satellite", "classes"),
    DataSet("elec2", "class", "drift"),
    DataSet("flights_3m", "delay", "drift"),
    DataSet("newsgroups20_binary", "news20_binary", "text", ("group", "article"), "newsgroups20_bydate"),
    DataSet("newsgroups20", "group", "text", ("news20_binary", "article"), "newsgroups20_bydate"),
    DataSet("spam_assassin", "label", "text", ("group", "id")),
    DataSet("diamonds", "price", "regression"),
    DataSet("california_housing", "MedHouseVal", "regression"),
)


class Split(NamedTuple):
    """Training rows, in the order of learning, and test rows; labels are strings."""

    data: DataSet
    train: pa.Table
    test: pa.Table

    @property
    def classes(self) -> list[str]:
        """The labels, sorted; none in regression."""
        return [] if self.data.kind == "regression" else sorted(self.train[self.data.target].unique().to_pylist())

    def targets(self, table: pa.Table) -> np.ndarray:
        """Class indices into the sorted labels, or numbers."""
        column = table[self.data.target]
        if self.data.kind == "regression":
            return column.to_numpy().astype(np.float64)
        return compute.index_in(column, pa.array(self.classes)).to_numpy()


def available(names: list[str] | None = None) -> Iterator[DataSet]:
    """Yield the selected data sets, or all; prints a line for each missing one."""
    known = {data.name: data for data in ALL}
    if unknown := set(names or ()) - known.keys():
        raise SystemExit(f"no data set is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for data in (known[name] for name in names) if names else ALL:
        if data.path.exists():
            yield data
        else:
            print(f"{data.name}: skipped, {data.path} does not exist", flush=True)


def load(data: DataSet) -> Split:
    """Read and split a data set."""
    table = parquet.read_table(data.path)
    table = table.drop_columns([column for column in data.drop if column in table.column_names])
    if data.kind != "regression":
        labels = table[data.target]
        labels = compute.greater(labels, LATE) if data.name == "flights_3m" else labels
        table = table.set_column(table.column_names.index(data.target), data.target, labels.cast(pa.string()))
    n, random = len(table), np.random.default_rng(0)
    if "split" in table.column_names:
        is_train = compute.equal(table["split"], "train")
        train, test = (table.filter(mask).drop_columns("split") for mask in (is_train, compute.invert(is_train)))
        return Split(data, train.take(random.permutation(len(train))), test)
    if data.kind != "drift":
        table = table.take(random.permutation(n))
    return Split(data, table.slice(0, 2 * n // 3), table.slice(2 * n // 3))


FEW_TRAINED, FEW_TESTED = 600, 300  # rows with --quick


def few(split: Split) -> Split:
    """The first rows of both parts, as many as a test needs."""
    return split._replace(train=split.train.slice(0, FEW_TRAINED), test=split.test.slice(0, FEW_TESTED))


def with_calendar(table: pa.Table) -> pa.Table:
    """Replace timestamps by the fields that tunefree derives from them: year, month, weekday, hour, elapsed days."""
    for name in [field.name for field in table.schema if pa.types.is_timestamp(field.type)]:
        moment = table[name]
        for part in ("year", "month", "day_of_week", "hour"):
            table = table.append_column(f"{name} {part}", getattr(compute, part)(moment).cast(pa.string()))
        days = moment.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 86_400_000_000
        table = table.append_column(f"{name} days", pa.array(days)).drop_columns(name)
    return table


def is_number(table: pa.Table, name: str) -> bool:
    """Whether a column is numeric."""
    kind = table.schema.field(name).type
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


SEPARATOR = re.compile(r"[ :|\n]")  # special characters of the text format


def lines(split: Split, table: pa.Table) -> Iterator[str]:
    """The training or test rows as Vowpal Wabbit text: numbers unchanged, texts as words, others one-hot encoded."""
    targets, n_classes = split.targets(table), len(split.classes)
    if n_classes:
        targets = 2 * targets - 1 if n_classes == 2 else targets + 1
    table = with_calendar(table.drop_columns(split.data.target))
    columns = [table[name].to_pylist() for name in table.column_names]
    numeric = [is_number(table, name) for name in table.column_names]
    for target, row in zip(targets.tolist(), zip(*columns, strict=True), strict=True):
        if split.data.kind == "text":
            yield f"{target} | {' '.join(map(words, row))}\n"
            continue
        yield f"{target} | {' '.join(starmap(entry, zip(range(len(row)), row, numeric, strict=True)))}\n"


def words(text: str | None) -> str:
    """The words of a text as ``word:log(1 + count)``, as scikit-learn's vectorisers find them."""
    counts = Counter(re.findall(r"\b\w\w+\b", (text or "").lower()))
    return " ".join(f"{word}:{math.log1p(count):.6g}" for word, count in counts.items())


def entry(column: int, value: Any, numeric: bool) -> str:
    """A cell: ``column:number``, nothing for 0, or ``column=value``."""
    if numeric and value is not None:
        return f"{column}:{value!r}" if value else ""
    return f"{column}={SEPARATOR.sub('_', str(value))}"


class Matrices(NamedTuple):
    """A split as matrices for scikit-learn."""

    X: np.ndarray  # (n, d) training rows: unscaled numbers, then one-hot columns
    y: np.ndarray  # (n,)
    X_test: np.ndarray
    y_test: np.ndarray
    n_numbers: int  # number of numeric columns, which come first
    classes: list[str]


def matrices(split: Split) -> Matrices:
    """Unscaled numbers and one-hot columns as dense matrices."""
    from sklearn.preprocessing import OneHotEncoder

    tables = [with_calendar(table.drop_columns(split.data.target)) for table in (split.train, split.test)]
    numbers = [name for name in tables[0].column_names if is_number(tables[0], name)]
    others = [name for name in tables[0].column_names if name not in numbers]
    parts = [[table[name].to_numpy().astype(np.float64).reshape(-1, 1) for name in numbers] for table in tables]
    if others:
        cells = [np.array([table[name].to_pylist() for name in others], object).T for table in tables]
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(cells[0])
        for part, values in zip(parts, cells, strict=True):
            part.append(encoder.transform(values))
    X, X_test = (np.ascontiguousarray(np.hstack(part)) for part in parts)
    return Matrices(X, split.targets(split.train), X_test, split.targets(split.test), len(numbers), split.classes)
