"""One row at a time, by the interfaces of river and of scikit-learn, beside the models of these two.

With river's interface: rows of its data set Phishing, 1,250 rows of nine numbers, as dicts, by ScInOL2 and by river's
logistic regression on standardised numbers; and their progressive log-losses. With scikit-learn's, ``partial_fit`` of
one row: generated rows of 30 columns, by ScInOL2, the pool and SGDClassifier, after 600 rows that were learned at once.
And frames of one row, of six numbers and six categories, which are predicted only, by the pool and by SGDClassifier on
standardised numbers and one-hot codes. Rows are predicted and learned, learned only, or predicted only. Times are
processor time a row, so threads count; runs are interleaved.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from common import interleaved, parser_of
from river import datasets, linear_model, metrics, preprocessing
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tunefree import ScInOLClassifier, TuneFreeClassifier
from tunefree.river import ScInOLClassifier as RiverScInOLClassifier
from tunefree.river import TuneFreeClassifier as RiverTuneFreeClassifier

REPEATS = 5
WAYS = {"predicted and learned": (True, True), "learned": (False, True), "predicted": (True, False)}
FIRST, ROWS, COLUMNS = 600, 300, 30
Make = Callable[[], Any]  # a new model
OF_RIVER: dict[str, Make] = {
    "river, scaled logistic regression": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "tunefree.river, ScInOL2": RiverScInOLClassifier,
    "tunefree.river, pool": RiverTuneFreeClassifier,
}
OF_SCIKIT_LEARN: dict[str, Make] = {
    "scikit-learn, SGDClassifier": partial(SGDClassifier, loss="log_loss"),
    "tunefree, ScInOL2": ScInOLClassifier,
    "tunefree, pool": TuneFreeClassifier,
}


def of_frames() -> Any:
    """SGDClassifier on what is usual for a frame."""
    codes, numbers = OneHotEncoder(handle_unknown="ignore"), StandardScaler()
    of_columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (codes, make_column_selector(dtype_exclude="number"))
    )
    return make_pipeline(of_columns, SGDClassifier(loss="log_loss"))


OF_FRAMES: dict[str, Make] = {"scikit-learn, SGDClassifier": of_frames, "tunefree, pool": TuneFreeClassifier}


def by_river(make: Make, rows: list[Any], predicts: bool, learns: bool) -> float:
    """Microseconds a row by river's interface; rows are predicted after all were learned, or before each is."""
    model = make()
    for x, y in () if learns else rows:
        model.learn_one(x, y)
    model.predict_proba_one(rows[0][0])  # rows that wait are learned
    start = time.process_time()
    for x, y in rows:
        if predicts:
            model.predict_proba_one(x)
        if learns:
            model.learn_one(x, y)
    return 1e6 * (time.process_time() - start) / len(rows)


def by_scikit_learn(make: Make, n_rows: int, predicts: bool, learns: bool) -> float:
    """Microseconds a row by scikit-learn's interface."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FIRST + n_rows, COLUMNS))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
    model = make().partial_fit(X[:FIRST], y[:FIRST], classes=[0, 1])
    start = time.process_time()
    for i in range(FIRST, FIRST + n_rows):
        if predicts:
            model.predict_proba(X[i : i + 1])
        if learns:
            model.partial_fit(X[i : i + 1], y[i : i + 1])
    return 1e6 * (time.process_time() - start) / n_rows


def by_frames(make: Make, n_rows: int) -> float:
    """Microseconds a row that is predicted in a frame of its own."""
    rng, n = np.random.default_rng(0), FIRST + n_rows
    numbers = {f"number {k}": rng.normal(size=n) for k in range(6)}
    frame = pd.DataFrame(numbers | {f"category {k}": rng.choice(list("abcdefgh"), n) for k in range(6)})
    y = frame["number 0"] + (frame["category 0"] == "a") + rng.normal(size=n) > 0
    model, rows = make().fit(frame[:FIRST], y[:FIRST]), [frame[i : i + 1] for i in range(FIRST, n)]
    start = time.process_time()
    for row in rows:
        model.predict_proba(row)
    return 1e6 * (time.process_time() - start) / n_rows


def progressive_loss(make: Make, rows: list[Any]) -> float:
    """Mean log-loss of the rows, each predicted before it is learned."""
    model, metric = make(), metrics.LogLoss()
    for x, y in rows:
        metric.update(y, model.predict_proba_one(x))
        model.learn_one(x, y)
    return float(metric.get())


def compare(title: str, models: dict[str, Make], measure: Callable[[Make], float], repeats: int) -> None:
    """Print the medians of the models' times, and their ratios to the first one's."""
    microseconds = interleaved({name: partial(measure, make) for name, make in models.items()}, repeats)
    first = statistics.median(next(iter(microseconds.values())))
    for name, values in microseconds.items():
        middle, spread = statistics.median(values), f"({min(values):.1f} .. {max(values):.1f})"
        print(f"{title:<24}{name:<36}{middle:8.1f} us a row  {spread:<20} ratio {middle / first:6.3f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Time all, print medians and ratios."""
    options = parser_of(__doc__).parse_args(arguments)
    repeats, most = (1, 20) if options.quick else (REPEATS, ROWS)
    rows = list(islice(datasets.Phishing(), most if options.quick else None))
    for title, (predicts, learns) in WAYS.items():
        compare(title, OF_RIVER, partial(by_river, rows=rows, predicts=predicts, learns=learns), repeats)
    for name, make in OF_RIVER.items():
        print(f"progressive log-loss    {name:<36}{progressive_loss(make, rows):8.4f}")
    for title, (predicts, learns) in WAYS.items():
        measure = partial(by_scikit_learn, n_rows=most, predicts=predicts, learns=learns)
        compare(title, OF_SCIKIT_LEARN, measure, repeats)
    compare("predicted in frames", OF_FRAMES, lambda make: by_frames(make, most), repeats)


if __name__ == "__main__":
    main()
