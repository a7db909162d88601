"""Categories that training never saw: how rows with a level that was held out are predicted.

A level of each column is left out of the training, and its rows are predicted. ``average`` is what the same model
predicts of these rows on average if the column is each of the levels it knows, by their shares; LightGBM has its
defaults. ``factor`` is by how much a probability differs from that average, as a mean and at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
from common import parser_of
from datasets import FEW_TRAINED, DataSet, available, load

import tunefree
from tunefree.core.errors import DataWarning

ROWS, MOST_TESTED, MOST_LEVELS = 12_000, 1500, 20
COLUMNS = {
    "adult": ("occupation", "workclass", "education", "marital-status"),
    "bank_additional_full": ("job", "month", "poutcome"),
    "census_income_kdd_test": ("education", "major industry code"),
    "diamonds": ("clarity", "color", "cut"),
    "flights_3m": ("origin", "destination"),
}
HEADER = (
    "| data | column | level | rows | mean probability: unseen | average | LightGBM"
    " | log-loss: unseen | average | LightGBM | factor: mean | most |\n|" + "---|" * 12
)


def rows_of(data: DataSet, most: int) -> tuple[pd.DataFrame, str]:
    """Some rows of a data set, and its target of two classes; prices are split at their median."""
    table = load(data).train.slice(0, most).to_pandas()
    if data.name == "diamonds":
        table[data.target] = np.where(table[data.target] > table[data.target].median(), "dear", "cheap")
    return table.drop(columns=["date"], errors="ignore"), data.target


def by_lightgbm(train: pd.DataFrame, test: pd.DataFrame, target: str, positive: str) -> np.ndarray:
    """Probabilities of LightGBM with its defaults, to which an unseen level is a missing one."""
    X, held_out = train.drop(columns=target), test.drop(columns=target)
    for column in X.select_dtypes(exclude="number"):
        levels = sorted(X[column].dropna().unique())
        X[column] = pd.Categorical(X[column], levels)
        held_out[column] = pd.Categorical(held_out[column].where(held_out[column].isin(levels)), levels)
    model = lightgbm.LGBMClassifier(verbose=-1).fit(X, train[target] == positive)
    return np.asarray(model.predict_proba(held_out))[:, 1]


def log_loss(probabilities: np.ndarray, is_positive: np.ndarray) -> float:
    """Mean log-loss."""
    sure = np.clip(probabilities, 1e-12, 1.0 - 1e-12)
    return float(-np.mean(np.log(np.where(is_positive, sure, 1.0 - sure))))


def line(name: str, table: pd.DataFrame, target: str, column: str) -> str:
    """A line of the table: the level is the middle one of those with 2 to 25 per cent of the rows."""
    counts = table[column].value_counts()
    middling = counts[(counts > 0.02 * len(table)) & (counts < 0.25 * len(table))]
    level = (middling if len(middling) else counts[1:]).index[len(middling) // 2]
    is_held_out = table[column] == level
    train, test = table[~is_held_out], table[is_held_out][:MOST_TESTED]
    model = tunefree.train(pa.Table.from_pandas(train, preserve_index=False), target=target, shuffle=False)
    positive = model.classes_[1]
    predict = lambda rows: model.predict_proba(pa.Table.from_pandas(rows, preserve_index=False))[:, 1]  # noqa: E731
    known = counts.drop(level)[:MOST_LEVELS]
    average = np.average([predict(test.assign(**{column: other})) for other in known.index], 0, known.to_numpy())
    unseen, peer = predict(test), by_lightgbm(train, test, target, positive)
    factors = np.abs(np.log(unseen / average))
    means = " | ".join(f"{p.mean():.3f}" for p in (unseen, average, peer))
    losses = " | ".join(f"{log_loss(p, (test[target] == positive).to_numpy()):.4f}" for p in (unseen, average, peer))
    sizes = f"{np.exp(factors.mean()):.2f} | {np.exp(factors.max()):.2f}"
    return f"| {name} | {column} | {level} | {len(test)} | {means} | {losses} | {sizes} |"


def lines(most: int) -> Iterator[str]:
    """The lines of the table, of data with at most so many rows."""
    for data in available(list(COLUMNS)):
        columns, (table, target) = COLUMNS[data.name], rows_of(data, most)
        yield from (line(data.name, table, target, column) for column in columns)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    warnings.simplefilter("ignore", DataWarning)
    print(HEADER)
    for text in islice(lines(FEW_TRAINED if quick else ROWS), 1 if quick else None):
        print(text, flush=True)


if __name__ == "__main__":
    main()
