"""Early stopping: time of a regularization path against a grid search, and of kernel steps against memory bandwidth."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import datasets
import numpy as np
from common import interleaved, parser_of, report

from tunefree import IterativeRegularizationClassifier
from tunefree.core.threads import one_for_products
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.kernel.gaussian import Gaussian

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # values of C in the grid search
FOLDS = 5
COLUMNS = 100  # number of columns of the rows of the Gram matrix


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


def bandwidth(size: int) -> float:
    """Memory bandwidth in bytes per second: a dot product of a long array, best of five."""
    array = np.ones(size // 4, np.float32)
    return max(_rate(lambda: float(array @ array), array.nbytes) for _ in range(5))


def _rate(work: Any, size: int) -> float:
    start = time.perf_counter()
    work()
    return size / (time.perf_counter() - start)


def gram_steps(n: int, budget: int, steps: int) -> float:
    """Median time of a product with the Gram matrix of n rows, without the first, in seconds."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(n, COLUMNS)).astype(np.float32)
    matrix = Gram(Gaussian(0.5 / COLUMNS), rows, rows[:0], budget)
    coefficients = random.normal(size=(n, 1)) / n
    seconds = []
    with one_for_products():
        for _ in range(steps + (budget > 0)):
            start = time.perf_counter()
            matrix.times(coefficients)
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:] if budget else seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print the results."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    path_against_search(200 if quick else 10**9, 20 if quick else 500, 1 if quick else 5)

    n = 500 if quick else 20_000
    reads = bandwidth(2**20 if quick else 2**30)
    seconds = gram_steps(n, 2**31, 5 if quick else 15)
    share = 4.0 * n * n / seconds / reads
    print(f"a dot product reads {reads / 1e9:.1f} GB/s")
    print(f"n = {n}: a kernel step takes {seconds:.3f} s, {100 * share:.0f} % of that for the whole float32 matrix")

    n = 500 if quick else 60_000
    seconds = gram_steps(n, 0, 1 if quick else 3)
    print(f"n = {n}: a step that recomputes the Gram matrix, tile by tile, takes {seconds:.2f} s")


if __name__ == "__main__":
    main()
