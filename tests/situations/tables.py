"""Small real tables, those of scikit-learn and some that may not be there, and texts."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import tunefree
from tests.situations.situation import Case, Rows

SHARED = Path(os.environ.get("TUNEFREE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def parts(X: Any, y: np.ndarray, n: int, seed: int, loss: str = "log") -> Case:
    """So many rows to learn, drawn at random, and all others to predict."""
    order = np.random.default_rng(seed).permutation(len(y))
    rows = Rows(X, y)
    return Case(rows.take(order[:n]), rows.take(order[n:]), loss)


def bundled(name: str, seed: int, loss: str = "log") -> Case:
    """Two thirds of a table of scikit-learn to learn."""
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return parts(X, y, 2 * len(y) // 3, seed, loss)


def breast_cancer(seed: int) -> Case:
    """Thirty columns that say nearly the same, 379 rows."""
    return bundled("breast_cancer", seed)


def wine(seed: int) -> Case:
    """Three classes, 118 rows, and hardly an error."""
    return bundled("wine", seed)


def iris(seed: int) -> Case:
    """A hundred rows."""
    return bundled("iris", seed)


def digits(seed: int) -> Case:
    """Ten classes of pictures, 1,198 rows."""
    return bundled("digits", seed)


def diabetes(seed: int) -> Case:
    """Much noise, 294 rows, and lines are hard to beat."""
    return bundled("diabetes", seed, "square")


def people(seed: int, n: int) -> Case:
    """Few rows of the census: numbers, categories as codes."""
    from pyarrow import parquet

    frame = parquet.read_table(Path(tunefree.__file__).parent / "data" / "adult.parquet").to_pandas()
    income = (frame.pop("income").astype(str).str.contains(">")).to_numpy(np.int64)
    frame = frame.drop(columns="split", errors="ignore")
    for name in frame.columns:
        if frame[name].dtype.kind not in "iuf":
            frame[name] = frame[name].astype("category").cat.codes
    case = parts(frame.to_numpy(float), income, n, seed)
    return case._replace(test=case.test.take(slice(0, 10_000)))


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
    return Case(Rows(X[:n], y[:n]), Rows(X[n:], y[n:]))


def newsgroups(seed: int) -> Case:
    """Four hundred posts of 20 groups that talk about two kinds of things; skipped where they are not there."""
    from pyarrow import parquet

    table = parquet.read_table(SHARED / "newsgroups20_bydate.parquet", columns=["text", "news20_binary"]).to_pandas()
    y = np.unique(table["news20_binary"].astype(str), return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(y))[:3000]
    texts = table["text"].to_numpy()[order]
    terms = TfidfVectorizer(min_df=2, sublinear_tf=True).fit(texts[:400])
    X = sparse.csr_array(terms.transform(texts))
    return Case(Rows(X[:400], y[order[:400]]), Rows(X[400:], y[order[400:]]))
