"""Tables of many rows: loss, processor time and memory at the peak, beside LightGBM with its defaults.

Each table is made, 30 columns in single precision, and written to Parquet. Both learn it in one process each, with one
thread: tunefree in one pass over the file, LightGBM from an array that holds it. The loss is that on 200,000 further
rows: the mean squared error of a target with noise of variance 1, or the log-loss of two classes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
from common import FOLDER, names_in, parser_of
from pyarrow import parquet

COLUMNS, PIECE, TEST = 30, 500_000, 200_000
RULES, CONDITIONS, WRONG = 40, 3, 0.05  # of a decision list, conditions of a rule, share of wrong labels
TARGET = "y"


def friedman(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Friedman's function (Annals of Statistics 1991) of five columns of thirty, with noise of variance 1."""
    y = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return y + random.normal(size=len(X))


def rules(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The label of the first rule of a list that holds, of which some are wrong; the same list for all rows."""
    of_list = np.random.default_rng(7)
    y, is_open = (X[:, 0] > 0.5).astype(np.float64), np.ones(len(X), bool)
    for _ in range(RULES):
        columns, edges = of_list.choice(COLUMNS, CONDITIONS, replace=False), of_list.uniform(0.2, 0.8, CONDITIONS)
        holds = is_open & ((X[:, columns] > edges) == (of_list.random(CONDITIONS) < 0.5)).all(axis=1)
        y[holds], is_open = float(of_list.integers(2)), is_open & ~holds
    return np.where(random.random(len(X)) < WRONG, 1.0 - y, y)


def linear(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A linear function of all columns, with noise of variance 1."""
    return (X - 0.5) @ np.random.default_rng(7).normal(size=COLUMNS) * 3.0 + random.normal(size=len(X))


TABLES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "friedman": friedman,
    "rules": rules,
    "linear": linear,
}


def piece(name: str, number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 30) of a table in single precision, and their targets."""
    random = np.random.default_rng(number)
    X = random.random((rows, COLUMNS), np.float32)
    return X, TABLES[name](X.astype(np.float64), random)


def test_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which the loss is taken."""
    return piece(name, 10**6, TEST)


def column_names() -> list[str]:
    """The columns' names."""
    return [f"x{j}" for j in range(COLUMNS)]


def write(name: str, rows: int) -> Path:
    """A file of a table."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}-{rows}.parquet"
    if path.exists():
        return path
    part = path.with_suffix(".part")
    schema = pa.schema([(column, pa.float32()) for column in column_names()] + [(TARGET, pa.float32())])
    with parquet.ParquetWriter(part, schema) as writer:
        for number, start in enumerate(range(0, rows, PIECE)):
            X, y = piece(name, number, min(PIECE, rows - start))
            arrays = [pa.array(column) for column in np.ascontiguousarray(X.T)]
            writer.write_table(pa.Table.from_arrays([*arrays, pa.array(y.astype(np.float32))], schema=schema))
    part.rename(path)
    return path


def tunefree_predicts(path: Path, X: np.ndarray, is_binary: bool) -> tuple[np.ndarray, float]:
    """What tunefree, which learned a file, predicts, and its seconds of the processor."""
    import tunefree

    start = time.process_time()
    model = tunefree.train(str(path), target=TARGET, task="classification" if is_binary else "regression")
    seconds = time.process_time() - start
    table = pa.table(dict(zip(column_names(), np.ascontiguousarray(X.T), strict=True)))
    return (model.predict_proba(table)[:, 1] if is_binary else model.predict(table)), seconds


def lightgbm_predicts(path: Path, X: np.ndarray, is_binary: bool) -> tuple[np.ndarray, float]:
    """What LightGBM predicts, likewise."""
    import lightgbm

    file = parquet.ParquetFile(path)
    table, at = np.empty((file.metadata.num_rows, COLUMNS + 1), np.float32), 0
    for batch in file.iter_batches():
        for j, column in enumerate(batch.columns):
            table[at : at + len(batch), j] = column.to_numpy()
        at += len(batch)
    model = (lightgbm.LGBMClassifier if is_binary else lightgbm.LGBMRegressor)(n_jobs=1, verbose=-1)
    start = time.process_time()
    model.fit(table[:, :-1], table[:, -1])
    seconds = time.process_time() - start
    predictions = np.asarray(model.predict_proba(X) if is_binary else model.predict(X))
    return (predictions[:, 1] if is_binary else predictions), seconds


LEARNERS = {"LightGBM": lightgbm_predicts, "tunefree": tunefree_predicts}


def learn(learner: str, name: str, rows: int) -> dict[str, float]:
    """Loss, seconds of the processor and MiB at the peak of a learner that learns a table, in this process."""
    X, y = test_rows(name)
    is_binary = name == "rules"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictions, seconds = LEARNERS[learner](write(name, rows), X, is_binary)
    if is_binary:
        of_truth = np.clip(np.where(y > 0.5, predictions, 1.0 - predictions), 1e-15, 1.0)
        loss = float(-np.log(of_truth).mean())
    else:
        loss = float(np.mean((predictions - y) ** 2))
    return {"loss": loss, "seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def apart(learner: str, name: str, rows: int) -> dict[str, float]:
    """What :func:`learn` returns, in a process of its own."""
    write(name, rows)
    command = [sys.executable, __file__, "--rows", str(rows), "--one", learner, name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of docs/results.md."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tables", type=names_in, default=tuple(TABLES), help="names with commas between them")
    parser.add_argument("--one", nargs=2, metavar=("LEARNER", "TABLE"), help="of one learner, in this process")
    options = parser.parse_args(arguments)
    rows = 2000 if options.quick else options.rows
    if options.one:
        learner, name = options.one
        print(json.dumps(learn(learner, name, rows)))
        return
    import_module("lightgbm")  # which may not be installed
    print("| table | rows | learner | loss | seconds of the processor | MiB at the peak |\n|---|---|---|---|---|---|")
    for name in options.tables:
        for learner in LEARNERS:
            figures = apart(learner, name, rows)
            cells = f"{figures['loss']:.5f} | {figures['seconds']:,.0f} | {figures['peak']:,.0f}"
            print(f"| {name} | {rows:,} | {learner} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
