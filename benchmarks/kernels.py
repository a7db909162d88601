"""Test error and time of kernels with default settings against a support vector machine with a grid search.

The targets are 1.1 times its error or 0.3 points more, in a fiftieth of the time of the search (a tenth on few rows);
docs/results.md states where they are met.

There are seven binary tasks: letters A to M, three kinds of soil, spam, the most frequent state of the shuttle,
incomes, odd digits (10,000 of them, pixels / 255) and madelon. Other numbers are standardised for both sides. C and
gamma of the support vector machine are selected by 5-fold cross-validation over 5 x 5 values on all processors (on
20,000 rows of the shuttle and 4,000 digits), with a final fit to all training rows. A second search selects C alone, at
the gamma of the median heuristic. ``fit`` of kernel PiSTOL and one pass of it (``partial_fit``) run with their
default settings. Early stopping has the smoothed hinge loss and at most 500 iterations and 20,000 rows; held-out rows
select the iteration and the bandwidth. Times of ``fit`` and of one pass are medians of 5 after a warm-up; the others
are of one run.
``--sets a,b`` selects tasks, ``--show`` prints stored results, ``--skip-search`` omits the support vector machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from common import SHARED, keep, kept, names_in, parser_of
from pyarrow import parquet

from tunefree import IterativeRegularizationClassifier, KernelPiSTOLClassifier
from tunefree.papers.kernel.kernels import median_gamma

STRENGTHS = (0.5, 2.0, 8.0, 32.0, 128.0)  # C
WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # multiples of the gamma of the median heuristic
FOLDS = 5
REPEATS = 5
EARLY_ROWS = 20_000  # of early stopping, which stores their Gram matrix
RESULTS = "kernels"
FEW = 300  # rows with --quick


class Task(NamedTuple):
    """The file of a task, and its positive class."""

    name: str
    file: str
    target: str
    positive: Callable[[Any], Any]
    most: int | None = None  # maximum number of training rows
    divisor: float | None = None  # divides all numbers, which are then not standardised
    searched: int | None = None  # number of training rows of the grid search


def first_half(labels: Any) -> Any:
    """Whether letters are in the first half of the alphabet."""
    return labels <= "M"


SOILS = ("red soil", "cotton crop", "grey soil")
TASKS = (
    Task("letter A-M/N-Z", "letter_recognition", "lettr", first_half),
    Task("satellite 1-3/rest", "satellite", "classes", lambda labels: labels.isin(SOILS)),
    Task("spambase", "spambase", "type", lambda labels: labels == labels.min()),
    Task("shuttle majority/rest", "shuttle", "Class", lambda labels: labels == labels.mode()[0], searched=20_000),
    Task("a9a (10,000)", "a9a", "y", lambda labels: labels > 0, 10_000),
    Task("mnist odd/even (10,000)", "mnist", "label", lambda labels: labels.astype(int) % 2 == 1, 10_000, 255.0, 4000),
    Task("madelon", "madelon", "Class", lambda labels: labels == labels.min()),
)


class Split(NamedTuple):
    """Training and test rows of both sides."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load(task: Task) -> Split:
    """Read the rows of a task and split them as in :mod:`datasets`."""
    table = parquet.read_table(SHARED / f"{task.file}.parquet").to_pandas()
    random = np.random.default_rng(0)
    if "split" in table:
        train, test = (table[mask].drop(columns="split") for mask in (table.split == "train", table.split != "train"))
        train = train.iloc[random.permutation(len(train))]
    else:
        table = table.iloc[random.permutation(len(table))]
        train, test = table.iloc[: 2 * len(table) // 3], table.iloc[2 * len(table) // 3 :]
    train = train.iloc[: task.most]
    X, X_test = (part.drop(columns=task.target).to_numpy(np.float64) for part in (train, test))
    y, y_test = (np.asarray(task.positive(part[task.target])).astype(np.int64) for part in (train, test))
    if task.divisor:
        return Split(X / task.divisor, y, X_test / task.divisor, y_test)
    centre, size = X.mean(axis=0), X.std(axis=0)
    size[size == 0.0] = 1.0
    return Split((X - centre) / size, y, (X_test - centre) / size, y_test)


def searched(split: Split, widths: tuple[float, ...], rows: int | None) -> dict[str, Any]:
    """A support vector machine, with C and gamma selected on some rows and a final fit to all of them."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    gamma = median_gamma(split.X, split.y)
    grid = {"C": STRENGTHS, "gamma": [gamma * width for width in widths]}
    start = time.perf_counter()
    search = GridSearchCV(SVC(cache_size=1000), grid, cv=FOLDS, n_jobs=-1, refit=False)
    best = search.fit(split.X[:rows], split.y[:rows]).best_params_
    fitting = time.perf_counter()
    machine = SVC(cache_size=1000, **best).fit(split.X, split.y)
    end = time.perf_counter()
    error = float((machine.predict(split.X_test) != split.y_test).mean())
    chosen = {"C": best["C"], "width": best["gamma"] / gamma}
    return {"error": error, "search": end - start, "fit": end - fitting, **chosen}


def timed(learn: Callable[[], Any], split: Split, repeats: int) -> dict[str, Any]:
    """Test error and median training time, after one run that compiles the code."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        model = learn()
        seconds.append(time.perf_counter() - start)
    odds = model.predict_proba(split.X_test)
    right = np.maximum(odds[np.arange(len(odds)), split.y_test], np.finfo(np.float64).tiny)
    error = float((model.predict(split.X_test) != split.y_test).mean())
    return {"error": error, "log_loss": float(-np.log(right).mean()), "seconds": statistics.median(seconds[1:])}


def early_stopping(task: Task) -> IterativeRegularizationClassifier:
    """Early stopping with the smoothed hinge loss; rows are standardised as for the other methods."""
    return IterativeRegularizationClassifier(loss="smoothed-hinge", kernel="rbf", standardize=task.divisor is None)


def measure(task: Task, with_search: bool, before: dict[str, Any], repeats: int) -> dict[str, Any]:
    """All results of a task."""
    split, some = load(task), slice(0, EARLY_ROWS)
    result: dict[str, Any] = {"task": task.name, "rows": len(split.X), "columns": split.X.shape[1]}
    result["fit"] = timed(lambda: KernelPiSTOLClassifier().fit(split.X, split.y), split, repeats)
    result["one_pass"] = timed(
        lambda: KernelPiSTOLClassifier().partial_fit(split.X, split.y, classes=[0, 1]), split, repeats
    )
    result["early"] = timed(lambda: early_stopping(task).fit(split.X[some], split.y[some]), split, repeats=1)
    for name, widths in (("svm", WIDTHS), ("svm_at_median", (1.0,))):
        result[name] = searched(split, widths, task.searched) if with_search else before.get(name)
    return result


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    ours, once, early, svm, median = (result.get(name) for name in ("fit", "one_pass", "early", "svm", "svm_at_median"))
    cells = [result["task"], f"{result['rows']} x {result['columns']}"]
    cells += [f"{100 * part['error']:.2f}" if part else "-" for part in (svm, median, ours, once, early)]
    cells += [f"{part['seconds']:.2f}" if part else "-" for part in (ours, once, early)]
    if svm and ours:
        cells += [f"{svm['search']:.0f}", f"{svm['fit']:.2f}", f"1/{svm['search'] / ours['seconds']:.0f}"]
        cells += [f"1/{svm['search'] / early['seconds']:.0f}" if early else "-"]
    return f"| {' | '.join(cells)} |"


HEADER = (
    "| task | rows | SVM, C and gamma searched, error % | SVM with median gamma, C searched | fit, error % "
    "| one pass, error % | early stopping, error % | fit, s | one pass, s | early stopping, s | search, s | one SVM, s "
    "| fit / search | early stopping / search |\n|" + " --- |" * 14
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, store and print the results."""
    parser = parser_of(__doc__)
    parser.add_argument("--sets", type=names_in, help="files of tasks, such as letter_recognition,spambase")
    parser.add_argument("--skip-search", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args(arguments)
    results = {} if options.quick else kept(RESULTS)
    tasks = [task for task in TASKS if not options.sets or task.file in options.sets]
    if options.quick:
        tasks = [task._replace(most=FEW, searched=FEW) for task in tasks[:1]]
    for task in tasks if not options.show else ():
        if (SHARED / f"{task.file}.parquet").exists():
            before, repeats = results.get(task.name, {}), 1 if options.quick else REPEATS
            results[task.name] = measure(task, not options.skip_search, before, repeats)
            print(line(results[task.name]), flush=True)
            if not options.quick:
                keep(RESULTS, task.name, results[task.name])
    print(HEADER)
    for task in TASKS:
        if task.name in results:
            print(line(results[task.name]))


if __name__ == "__main__":
    main()
