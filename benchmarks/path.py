"""Early stopping: time of a regularization path against a grid search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import datasets
from common import interleaved, parser_of, report

from tunefree import IterativeRegularizationClassifier

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # values of C in the grid search
FOLDS = 5


def census(rows: int) -> datasets.Matrices:
    """The census data as matrices."""
    problem = datasets.matrices(datasets.load(next(datasets.available(["adult"]))))
    return problem._replace(X=problem.X[:rows], y=problem.y[:rows])


def searched() -> Any:
    """Logistic regression on standardised columns, with C selected by cross-validation."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return GridSearchCV(model, {"logisticregression__C": STRENGTHS}, cv=FOLDS, scoring="neg_log_loss")


def path_against_search(rows: int, iterations: int, repeats: int) -> None:
    """Interleaved times of both, and their test errors."""
    problem = census(rows)
    models = {
        "grid search": searched(),
        "the whole path": IterativeRegularizationClassifier(max_iter=iterations),
    }

    def timed(model: Any) -> float:
        start = time.perf_counter()
        model.fit(problem.X, problem.y)
        return time.perf_counter() - start

    seconds = interleaved({name: partial(timed, model) for name, model in models.items()}, repeats)
    report(seconds)
    errors = {name: (m.predict(problem.X_test) != problem.y_test).mean().item() for name, m in models.items()}
    for name, error in errors.items():
        print(f"{name:<44}test error {100 * error:.2f} %")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print the results."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    path_against_search(200 if quick else 10**9, 20 if quick else 500, 1 if quick else 5)


if __name__ == "__main__":
    main()
