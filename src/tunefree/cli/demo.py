"""`tunefree demo`: commands on the Adult census data, beside logistic regression tuned by cross-validation."""

from __future__ import annotations

import shlex
import time
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np

TARGET = "income"


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files it writes.")] = Path("demo"),
) -> None:
    """Learn the Adult census data in one pass, beside logistic regression tuned by cross-validation."""
    from tunefree.cli.app import COMMANDS, command_of
    from tunefree.cli.display import show
    from tunefree.core.console import plain_console
    from tunefree.report.document import Fact, Facts
    from tunefree.report.formats import FIGURES, PERCENT

    console = plain_console()
    train_file, test_file = map(str, write_data(output))
    model, predictions, report = (str(output / name) for name in ("adult.model", "predictions.csv", "report.html"))
    for words in (
        ["train", train_file, "--target", TARGET, "-o", model],
        ["evaluate", model, test_file],
        ["predict", model, test_file, "-o", predictions],
        ["report", model, test_file, "-o", report],
    ):
        console.print(f"$ tunefree {shlex.join(words)}", style="bold")
        command_of(words[0], COMMANDS[words[0]]).main(words[1:], standalone_mode=False)
    console.print("\nscikit-learn: scale, one-hot, logistic regression with C by 3-fold cross-validation", style="bold")
    began = time.perf_counter()
    log_loss, error = _cross_validated(Path(train_file), Path(test_file))
    facts = [Fact("log-loss", log_loss, FIGURES), Fact("error", error, PERCENT)]
    show([Facts([*facts, Fact("seconds of 16 fits", time.perf_counter() - began, "{:.1f}".format)])])


def write_data(folder: Path) -> tuple[Path, Path]:
    """Write the packaged data to two files, of training rows (shuffled, as they are a stream) and of test rows."""
    import numpy as np
    from pyarrow import compute, parquet

    from tunefree.core.storage import make_folder

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


def _cross_validated(train_file: Path, test_file: Path) -> tuple[float, float]:
    """What a careful user of scikit-learn does today: C from 5 values by 3-fold cross-validation."""
    import numpy as np
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
    import numpy as np
    from pyarrow import parquet

    table = parquet.read_table(path)
    names = [name for name in table.column_names if name != TARGET]
    columns = [table[name].to_numpy() for name in names]
    numeric = np.array([column.dtype != object for column in columns])
    X = np.column_stack([column.astype(object) for column in columns])
    X[X == None] = "?"  # noqa: E711 - elementwise: a missing category is a category
    return X, table[TARGET].to_numpy().astype(str), numeric
