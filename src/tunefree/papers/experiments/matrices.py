"""The data sets of Orabona 2014, Appendix C, as matrices with labels -1 and +1, and the settings for each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pyarrow import compute, parquet

from tunefree.papers.kernel.kernels import median_gamma

SEED = 0  # of the split where the file has none, and of the choice of training rows
TEST_ROWS = {"Covertype": 19_705, "20 Newsgroups": 10_000}  # as in the data sets that these replace
SENSIT_ROWS = 58_000  # training rows
LARGEST_CLASS = 2  # of Covertype: nearly half of the rows

STAND_IN = (
    "Covertype, class 2 against the others, with standardised features, replaces SensIT Vehicle, which was not "
    "available; its width is that of SensIT Vehicle"
)


class Case(NamedTuple):
    """A panel of the figure."""

    name: str
    source: str  # of the data, in data.ALL or data.OTHERS
    title: str
    kernel: str  # scikit-learn's name
    gamma: float  # 0 for the median rule's
    powers: range  # of 2, the grid of C for the SVM
    rows: int  # training rows of the paper
    svm_rows: int  # up to which the SVM is trained; cross-validation on more rows takes far more than ten minutes
    stand_in: str = ""  # how the data differ from the paper's

    @property
    def costs(self) -> list[float]:
        """The grid of C."""
        return [2.0**power for power in self.powers]


CASES = (
    Case("a9a", "a9a", "a9a", "rbf", 0.04, range(-1, 4), 32_561, 32_561),
    Case("Covertype", "Covertype", "Covertype, class 2", "rbf", 0.125, range(7), SENSIT_ROWS, 17_000, STAND_IN),
    Case("Covertype-median", "Covertype", "Covertype, median rule", "rbf", 0.0, range(7), SENSIT_ROWS, 17_000),
    Case(
        "20 Newsgroups",
        "20 Newsgroups",
        "20 Newsgroups, binary",
        "linear",
        1.0,
        range(1, 5),
        8_846,
        8_846,
        "20 Newsgroups with two classes, TF-IDF of words and bigrams, replaces news20.binary",
    ),
)


class Matrices(NamedTuple):
    """Rows and labels; the rows are an array, or a CSR matrix if they are sparse."""

    train: Any
    train_labels: np.ndarray
    test: Any
    test_labels: np.ndarray


@cache
def prepare(source: str, path: Path, train_rows: int = 0, test_rows: int = 0) -> Matrices:
    """Read the source of a case, at most so many rows or those of the paper (0); cached in each process."""
    return {"a9a": _a9a, "Covertype": _covertype, "20 Newsgroups": _newsgroups}[source](path, train_rows, test_rows)


def _a9a(path: Path, train_rows: int, test_rows: int) -> Matrices:
    table = parquet.read_table(path)
    rows = np.column_stack([table[f"f{j}"].to_numpy() for j in range(1, 124)]).astype(np.float64)
    is_train = compute.equal(table["split"], "train").to_numpy()
    train = np.random.default_rng(SEED).permutation(np.flatnonzero(is_train))[: train_rows or None]
    test = np.flatnonzero(~is_train)[: test_rows or None]
    return _matrices(rows, table["y"].to_numpy() > 0, train, test)


def _covertype(path: Path, train_rows: int, test_rows: int) -> Matrices:
    table = parquet.read_table(path)
    train, test = _random_split(len(table), "Covertype", train_rows or SENSIT_ROWS, test_rows)
    table = table.take(np.concatenate([train, test]))
    names = [name for name in table.column_names if name != "Cover_Type"]
    rows = np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64)
    learned = rows[: len(train)]
    spread = learned.std(axis=0)
    rows = (rows - learned.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    places = np.arange(len(rows))
    return _matrices(rows, table["Cover_Type"].to_numpy() == LARGEST_CLASS, *np.split(places, [len(train)]))


def _newsgroups(path: Path, train_rows: int, test_rows: int) -> Matrices:
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = parquet.read_table(path, columns=["text", "news20_binary"])
    train, test = _random_split(len(table), "20 Newsgroups", train_rows, test_rows)
    table = table.take(np.concatenate([train, test]))
    # The document frequencies include the test rows (not their labels): the paper's file has fixed features as well.
    rows = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit_transform(table["text"].to_pylist())
    labels = table["news20_binary"].to_numpy()
    return _matrices(rows.tocsr(), labels == np.unique(labels)[-1], *np.split(np.arange(len(labels)), [len(train)]))


def _random_split(n: int, name: str, train_rows: int, test_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random indices of training and test rows."""
    order = np.random.default_rng(SEED).permutation(n)
    test, train = np.split(order, [TEST_ROWS[name]])
    return train[: train_rows or None], test[: test_rows or None]


def _matrices(rows: Any, positive: np.ndarray, train: np.ndarray, test: np.ndarray) -> Matrices:
    labels = np.where(positive, 1.0, -1.0)
    return Matrices(rows[train], labels[train], rows[test], labels[test])


def width(case: Case, rows: Matrices) -> float:
    """gamma of a case's kernel: the paper's, or the median rule's on the first training rows."""
    if case.gamma > 0.0 or case.kernel != "rbf":
        return case.gamma
    return float(median_gamma(rows.train, rows.train_labels))
