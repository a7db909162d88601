"""The demo: `tunefree train` on the Adult census data, beside logistic regression tuned by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import compute, parquet

from tunefree.cli.display import show
from tunefree.cli.display.training import TrainingDisplay
from tunefree.core.console import plain_console
from tunefree.core.storage import make_folder
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.report import page
from tunefree.report.document import Column, Table
from tunefree.report.formats import DECIMALS, PERCENT
from tunefree.report.learned import summary
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training import training
from tunefree.workflows import evaluation, prediction

TARGET = "income"
REPORT = "report.html"
COMPILED_BY = 2**11  # rows, which all parts of a model learn


def run(folder: Path) -> None:
    """Write the data, a model and predictions to a folder, and print the test errors of both methods.

    ``folder``: it is created if it does not exist.
    """
    console = plain_console()
    train_file, test_file = write_data(folder)
    console.print(f"Adult census data: {train_file} and {test_file}\n")
    _, seconds = _timed(lambda: _compiled(train_file))
    console.print(f"code compiled, or found on the disk, in {seconds:.1f} s: once for a machine\n")
    console.print(f"tunefree train {train_file} --target {TARGET} -o {folder / 'adult.model'}", style="bold")
    (trained, log_loss, error), seconds = _timed(lambda: _train_and_predict(folder, train_file, test_file))
    console.print("\nscikit-learn: scale, one-hot, logistic regression with C by 3-fold cross-validation", style="bold")
    rows = [["tunefree train", log_loss, error, seconds]]
    (log_loss, error), seconds = _timed(lambda: _cross_validated(train_file, test_file))
    rows.append(["logistic regression, 16 fits", log_loss, error, seconds])
    page.write(page.report(trained, test_file), folder / REPORT)
    columns = [
        Column("on the test set"),
        Column("log-loss (nats)", DECIMALS),
        Column("error", PERCENT),
        Column("seconds", "{:.2f}".format),
    ]
    show([Table("", columns, rows)])
    console.print(
        f"\nmodel: {folder / 'adult.model'}   predictions: {folder / 'predictions.csv'}   report: {folder / REPORT}\n"
        f"next:  tunefree inspect {folder / 'adult.model'}"
    )


def write_data(folder: Path) -> tuple[Path, Path]:
    """Write the packaged data to two files, of training rows (shuffled, as they are a stream) and of test rows."""
    make_folder(folder)
    with as_file(files("tunefree") / "data" / "adult.parquet") as path:
        table = parquet.read_table(path)
    paths = []
    for part in ("train", "test"):
        rows = table.filter(compute.equal(table["split"], part)).drop_columns("split")
        if part == "train":
            rows = rows.take(np.random.default_rng(0).permutation(len(rows)))
        paths.append(folder / f"adult-{part}.parquet")
        parquet.write_table(rows, paths[-1])
    return paths[0], paths[1]


def _compiled(train_file: Path) -> None:
    """Learn and evaluate some rows, so that the time measured later does not include compilation."""
    few = parquet.read_table(train_file).slice(0, COMPILED_BY)
    trained = training.train(open_source(few), Plan(target=TARGET))
    evaluation.evaluate(trained, open_source(few), BadRows())


def _train_and_predict(folder: Path, train_file: Path, test_file: Path) -> tuple[Trained, float, float]:
    """What `tunefree train`, `predict` and `evaluate` do."""
    plan = Plan(target=TARGET)
    display = TrainingDisplay()
    trained = training.train(open_source(train_file), plan, [display], tell=display.tell)
    trained.save(folder / "adult.model")
    prediction.write(trained, open_source(test_file), str(folder / "predictions.csv"), BadRows())
    metrics = evaluation.evaluate(trained, open_source(test_file), BadRows()).metrics
    show(summary(trained, folder / "adult.model"))
    return trained, metrics.mean_loss(), metrics.mean_error()


def _cross_validated(train_file: Path, test_file: Path) -> tuple[float, float]:
    """What a careful user of scikit-learn does today: C from 5 values by 3-fold cross-validation."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.metrics import log_loss
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y, numeric = _columns(train_file)
    X_test, y_test, _ = _columns(test_file)
    prepare = make_column_transformer(
        (StandardScaler(), np.flatnonzero(numeric)),
        (OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(~numeric)),
    )
    search = LogisticRegressionCV(
        Cs=np.logspace(-2, 2, 5),
        cv=3,
        scoring="neg_log_loss",
        max_iter=300,
        use_legacy_attributes=False,
        l1_ratios=(0,),
    )
    model = make_pipeline(prepare, search).fit(X, y)
    probabilities = model.predict_proba(X_test)
    wrong = model.classes_[probabilities.argmax(axis=1)] != y_test
    return float(log_loss(y_test, probabilities, labels=model.classes_)), float(np.mean(wrong))


def _columns(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The features as objects, the target, and which features are numbers."""
    table = parquet.read_table(path)
    names = [name for name in table.column_names if name != TARGET]
    columns = [table[name].to_numpy() for name in names]
    numeric = np.array([column.dtype != object for column in columns])
    X = np.column_stack([column.astype(object) for column in columns])
    X[X == None] = "?"  # noqa: E711 - elementwise: a missing category is a category
    return X, table[TARGET].to_numpy().astype(str), numeric


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
