"""One row at a time, by the interfaces of river and of scikit-learn, beside the models of these two.

With river's interface: rows of its data set Phishing, 1,250 rows of nine numbers, as dicts, by ScInOL2 and by river's
logistic regression on standardised numbers; and their progressive log-losses. With scikit-learn's, ``partial_fit`` of
one row: generated rows of 30 columns, by ScInOL2, the pool and SGDClassifier, after 600 rows that were learned at once.
Rows are predicted and learned, or learned only. Times are processor time a row, so threads count; runs are interleaved.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from common import interleaved, parser_of
from river import datasets, linear_model, metrics, preprocessing
from sklearn.linear_model import SGDClassifier

from tunefree import ScInOLClassifier, TuneFreeClassifier
from tunefree.river import ScInOLClassifier as RiverScInOLClassifier

REPEATS = 5
FIRST, ROWS, COLUMNS = 600, 300, 30
Make = Callable[[], Any]  # a new model
OF_RIVER: dict[str, Make] = {
    "river, scaled logistic regression": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "tunefree.river, ScInOL2": RiverScInOLClassifier,
}
OF_SCIKIT_LEARN: dict[str, Make] = {
    "scikit-learn, SGDClassifier": partial(SGDClassifier, loss="log_loss"),
    "tunefree, ScInOL2": ScInOLClassifier,
    "tunefree, pool": TuneFreeClassifier,
}


def by_river(make: Make, rows: list[Any], predicts: bool) -> float:
    """Microseconds a row by river's interface."""
    model, start = make(), time.process_time()
    for x, y in rows:
        if predicts:
            model.predict_proba_one(x)
        model.learn_one(x, y)
    return 1e6 * (time.process_time() - start) / len(rows)


def by_scikit_learn(make: Make, n_rows: int, predicts: bool) -> float:
    """Microseconds a row by scikit-learn's interface."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FIRST + n_rows, COLUMNS))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
    model = make().partial_fit(X[:FIRST], y[:FIRST], classes=[0, 1])
    start = time.process_time()
    for i in range(FIRST, FIRST + n_rows):
        if predicts:
            model.predict_proba(X[i : i + 1])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    model.predict(X[:1])  # rows that waited are learned now
    return 1e6 * (time.process_time() - start) / n_rows


def progressive_loss(make: Make, rows: list[Any]) -> float:
    """Mean log-loss of the rows, each predicted before it is learned."""
    model, metric = make(), metrics.LogLoss()
    for x, y in rows:
        metric.update(y, model.predict_proba_one(x))
        model.learn_one(x, y)
    return float(metric.get())


def compare(models: dict[str, Make], measure: Callable[[Make, bool], float], repeats: int) -> None:
    """Print the medians of the models' times, and their ratios to the first one's."""
    for title, predicts in (("predicted and learned", True), ("learned", False)):
        microseconds = interleaved({name: partial(measure, make, predicts) for name, make in models.items()}, repeats)
        first = statistics.median(next(iter(microseconds.values())))
        for name, values in microseconds.items():
            middle, spread = statistics.median(values), f"({min(values):.1f} .. {max(values):.1f})"
            print(f"{title:<24}{name:<36}{middle:8.1f} us a row  {spread:<20} ratio {middle / first:6.3f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Time all, print medians and ratios."""
    options = parser_of(__doc__).parse_args(arguments)
    repeats, most = (1, 20) if options.quick else (REPEATS, ROWS)
    rows = list(islice(datasets.Phishing(), most if options.quick else None))
    compare(OF_RIVER, lambda make, predicts: by_river(make, rows, predicts), repeats)
    for name, make in OF_RIVER.items():
        print(f"progressive log-loss    {name:<36}{progressive_loss(make, rows):8.4f}")
    compare(OF_SCIKIT_LEARN, lambda make, predicts: by_scikit_learn(make, most, predicts), repeats)


if __name__ == "__main__":
    main()
