"""The data sets of the papers' experiments, prepared as the papers prepare them.

Kempka, Kotlowski, Warmuth 2019, Section 4.2: categories are one-hot encoded, with a feature for missing values, and
data sets without test rows are split two to one at random. Feature 0 is a constant. Two things are as in the authors'
published code and not in the paper: the pixels of MNIST are divided by 255, and the categories of Bank have no feature
for their first level (in the order of the alphabet), which makes the 53 features of Table 2.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet
from scipy.sparse import csr_array

from tunefree.core.errors import DataError
from tunefree.core.rows import Block, rows_at, sparse, table

VARIABLE = "TUNEFREE_DATA"  # environment variable: the folder of data files without --data
LACKS = "two thirds of Census, of which only the test part could be had"
MISSING = "(missing)"
SPLIT_SEED = 0  # of the split into training and test rows, the same in every run
DENSE_SHARE = 0.5  # of nonzero numbers, from which on they are stored as a dense array


class DataSet(NamedTuple):
    """A data set of the papers, and the file that it is read from."""

    name: str  # the name in the paper
    file: str
    target: str
    origin: str  # where it is available
    drop: tuple[str, ...] = ()  # columns that are not features
    indicators: tuple[str, ...] = ()  # prefixes of groups of 0/1 columns, each group one category
    unit: float = 1.0  # that numbers are divided by
    drops_first: bool = False  # whether the first level of each category has no feature
    stand_in: str = ""  # how the file differs from the data of the paper


ALL = {
    data.name: data
    for data in (
        DataSet(
            "Bank",
            "bank_additional_full.parquet",
            "y",
            "UCI repository, Bank Marketing, bank-additional-full",
            drops_first=True,
        ),
        DataSet(
            "Census",
            "census_income_kdd_test.parquet",
            "income",
            "UCI repository, Census-Income (KDD), its test part",
            drop=("instance weight",),
            stand_in="99,762 rows, the test part of the paper's 299,285",
        ),
        DataSet(
            "Covertype",
            "covtype.parquet",
            "Cover_Type",
            "UCI repository, Covertype",
            indicators=("Wilderness_Area", "Soil_Type"),
        ),
        DataSet("Madelon", "madelon.parquet", "Class", "UCI repository, Madelon (training and validation part)"),
        DataSet(
            "MNIST", "mnist.parquet", "label", "the MNIST database: 784 columns of pixels from 0 to 255", unit=255.0
        ),
        DataSet("Shuttle", "shuttle.parquet", "Class", "UCI repository, Statlog (Shuttle)"),
    )
}

# Of Orabona 2014, Appendix C; with Covertype (see :mod:`tunefree.papers.experiments.matrices`).
OTHERS = {
    data.name: data
    for data in (
        DataSet("a9a", "a9a.parquet", "y", "LIBSVM data sets, a9a: columns f1 to f123 of 0 and 1, and split"),
        DataSet(
            "20 Newsgroups",
            "newsgroups20_bydate.parquet",
            "news20_binary",
            "20 Newsgroups, bydate: a column text, and the posts' binary label",
        ),
    )
}


class Prepared(NamedTuple):
    """A data set as feature rows and class indices, split into training and test rows."""

    train: Block
    train_classes: np.ndarray  # (n,) indices into the labels
    test: Block
    test_classes: np.ndarray
    n_features: int  # including the constant
    labels: list[str]


def locate(name: str, folder: Path | None) -> Path:
    """The file of a data set, a name in ``ALL`` or ``OTHERS``, in a folder, by default that of ``TUNEFREE_DATA``.

    Raises
    ------
    DataError
        If the folder or the file is missing. The message names the file and its origin.
    """
    data = (ALL | OTHERS)[name]
    needed = f"a file {data.file} ({data.origin}; Parquet, original column names, target {data.target})"
    if folder is None and VARIABLE in os.environ:
        folder = Path(os.environ[VARIABLE])
    if folder is None:
        raise DataError(f"{name} needs {needed}", remedy=f"name its folder with --data DIR or in {VARIABLE}")
    if not (folder / data.file).is_file():
        raise DataError(f"{folder} does not hold {needed}", remedy="put it there, or name another folder with --data")
    return folder / data.file


@cache
def prepare(name: str, path: Path, train_rows: int = 0, test_rows: int = 0) -> Prepared:
    """Read a data set in ``ALL``, so many rows drawn at random or all (0); the result is cached in each process."""
    content, classes, labels, is_train = _read(ALL[name], path)
    rows, n_features = _features(content, ALL[name])
    random = np.random.default_rng(SPLIT_SEED)
    if is_train is None:
        order = random.permutation(len(classes))
        train, test = np.split(order, [2 * len(order) // 3])
    else:
        train, test = (random.permutation(np.flatnonzero(mask)) for mask in (is_train, ~is_train))
    train, test = train[: train_rows or None], test[: test_rows or None]
    return Prepared(rows_at(rows, train), classes[train], rows_at(rows, test), classes[test], n_features, labels)


def _read(data: DataSet, path: Path) -> tuple[pa.Table, np.ndarray, list[str], np.ndarray | None]:
    """The feature columns, the classes, the labels, and the mask of training rows if the file has one."""
    content = parquet.read_table(path)
    absent = {data.target, *data.drop} - set(content.column_names)
    if absent:
        raise DataError(
            f"there is no column {sorted(absent)[0]!r}", str(path), remedy=f"download the file again from {data.origin}"
        )
    answers = content[data.target].cast(pa.string())
    labels = sorted(answers.unique().to_pylist())
    classes = compute.index_in(answers, pa.array(labels)).to_numpy()
    is_train = None
    if "split" in content.column_names:
        is_train = compute.equal(content["split"], "train").to_numpy()
        content = content.drop_columns("split")
    return content.drop_columns([data.target, *data.drop]), classes, labels, is_train


def _features(content: pa.Table, data: DataSet) -> tuple[Block, int]:
    """Columns as features, numbers first, and the number of features including the constant.

    Rows of numbers alone that are mostly 0 are sparse.
    """
    rest = [name for name in content.column_names if not name.startswith(data.indicators)]
    numeric = [name for name in rest if is_number(content, name)]
    numbers = np.column_stack([content[name].to_numpy() for name in numeric]).astype(np.float64) / data.unit
    codes, first = [], len(numeric) + 1
    for name in (name for name in rest if name not in numeric):
        values = content[name].cast(pa.string()).fill_null(MISSING)
        known, dropped = sorted(values.unique().to_pylist()), int(data.drops_first)
        levels = compute.index_in(values, pa.array(known)).to_numpy()
        codes.append(np.where(levels >= dropped, first + levels - dropped, 0))
        first += len(known) - dropped
    for prefix in data.indicators:
        group = [name for name in content.column_names if name.startswith(prefix)]
        ones = np.column_stack([content[name].to_numpy() for name in group])
        codes.append(np.where(ones.any(axis=1), first + ones.argmax(axis=1), 0))
        first += len(group)
    one_hot = np.column_stack(codes) if codes else np.empty((len(numbers), 0))
    columns = np.arange(1, len(numeric) + 1)
    if codes or np.count_nonzero(numbers) >= DENSE_SHARE * numbers.size:
        return table(numbers, columns, one_hot), first
    present = csr_array(numbers)
    return sparse(present.indptr, present.indices + 1, present.data), first


def is_number(content: pa.Table, name: str) -> bool:
    """Whether a column is numeric."""
    kind = content.schema.field(name).type
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
