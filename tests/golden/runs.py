"""The table of golden runs: a name, a function of nothing that returns named results, and whether it is slow."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import dump_svmlight_file

import tunefree
from tests.golden.data import TABLES, sparse_rows, stream
from tests.golden.doors import (
    blocks,
    cluster,
    command,
    dialogue,
    estimator,
    fitted,
    folder_of,
    killed,
    of_file,
    options_of,
    results,
    river,
    rows_of,
    saved,
    served,
    trained,
    write,
)


class Run(NamedTuple):
    name: str
    function: Callable[[], dict[str, Any]]
    is_slow: bool


QUICK = {"seven", "prices", "people", "late"}  # tables whose doors are all tried by `make test`
SINGLE = ("scinol1", "scinol2", "pistol", "coordinate-pistol", "nag", "cocob", "cocob-original", "newton", "adagrad")
PAPERS = ("adam", "averaged-sgd", "coordinate-ogd", "kotlowski", "ogd", "sfmd")
KERNELS = ("kernel-pistol", "kernel-sgd", "kernel-regularized-sgd", "kernel-online-regularized")
VIEWS = ("raw", "centred", "steady", "level")
LOSSES = ("square", "absolute", "absolute-power:1.5", "epsilon-insensitive:0.1:1", "huber:1", "quantile:0.9")
COUNT_LOSSES = ("poisson", "tweedie:1.5")
MARGIN_LOSSES = ("logistic", "hinge", "smoothed-hinge", "squared-hinge", "exponential", "square")


# Doors of a table.


def fit(name: str) -> dict[str, Any]:
    return results(fitted(name), TABLES[name]().X_new)


def fit_in_order(name: str, **parameters: Any) -> dict[str, Any]:
    data = TABLES[name]()
    return results(estimator(data, shuffle=False, **parameters).fit(data.X, data.y, **data.extra), data.X_new)


def in_blocks(name: str, size: int = 37, stop: int | None = None) -> dict[str, Any]:
    return blocks(TABLES[name](), estimator(TABLES[name]()), size, stop)


def as_files(name: str, extension: str) -> dict[str, Any]:
    return of_file(TABLES[name](), extension)


def from_file(name: str) -> dict[str, Any]:
    """A model that was saved, what it predicts, and how it goes on."""
    data, model = TABLES[name](), saved(fitted(name))
    before = results(model, data.X_new)
    model.partial_fit(data.X.slice(0, 50), data.y[:50], **{role: part[:50] for role, part in data.extra.items()})
    return before | {f"{key} after": value for key, value in results(model, data.X_new).items()}


def small(name: str) -> dict[str, Any]:
    """A model that was saved only for prediction."""
    data = TABLES[name]()
    model = saved(fitted(name), only_for_prediction=True)
    if data.task == "regression":
        return {"numbers": model.predict(data.X_new), "alone": [model.predict(data.X_new.slice(i, 1)) for i in (0, 7)]}
    return {
        "probabilities": model.predict_proba(data.X_new),
        "alone": [model.predict_proba(data.X_new.slice(i, 1)) for i in (0, 7)],
    }


def sureness(name: str) -> dict[str, Any]:
    """Intervals, quantiles and sets."""
    model, X = fitted(name), TABLES[name]().X_new
    if hasattr(model, "classes_"):
        return {"sets": model.predict_set(X, [0.5, 0.8]), "one": model.predict_set(X, 0.7)}
    return {"intervals": model.predict_interval(X, [0.5, 0.8]), "quantiles": model.predict(X, quantiles=[0.2, 0.5])}


def explained(name: str) -> dict[str, Any]:
    """Contributions of columns, and their importances."""
    model = fitted(name)
    names, parts = model.explain(TABLES[name]().X_new.slice(0, 20))
    return {"columns": "\n".join(map(str, names)), "parts": parts, "importances": model.feature_importances_}


def judged(name: str) -> dict[str, Any]:
    """Members, the loss that is expected, and the history."""
    model = fitted(name)
    estimate = {"estimate": [*model.estimated_loss_]} if name not in ("texts", "one_row") else {}
    members = {f"members' {key}": value for key, value in model.selection_.items()}
    return members | estimate | {"history": str(model.history())}


DOORS: dict[str, Callable[[str], dict[str, Any]]] = {
    "fit": fit,
    "fit in order": fit_in_order,
    "fit with two threads": partial(fit_in_order, n_jobs=2),
    "blocks of 37": in_blocks,
    "rows one by one": partial(in_blocks, size=1, stop=70),
    "river": lambda name: river(TABLES[name]()),
    "train": lambda name: trained(TABLES[name]()),
    "csv": partial(as_files, extension=".csv"),
    "json lines": partial(as_files, extension=".jsonl"),
    "parquet": partial(as_files, extension=".parquet"),
    "saved": from_file,
    "only for prediction": small,
    "sureness": sureness,
    "explained": explained,
    "judged": judged,
}
WITHOUT = {
    "one_row": {
        "rows one by one",
        "fit in order",
        "fit with two threads",
        "sureness",
        "csv",
        "json lines",
        "parquet",
        "judged",
    },
    "wide": {"rows one by one", "river", "csv", "json lines", "judged", "sureness", "fit with two threads"},
    "counts": {"river"},  # has no exposures
}


# Options of a training.


def single(name: str, learner: str, **options: Any) -> dict[str, Any]:
    data = TABLES[name]()
    kind = tunefree.OnlineClassifier if data.task == "classification" else tunefree.OnlineRegressor
    X, X_new = (table.select(["area", "age"] if name == "prices" else ["x0", "x1"]) for table in (data.X, data.X_new))
    model = kind(learner, random_state=0, n_jobs=1, **options).fit(X, data.y)
    return results(model, X_new) | ({} if "view" in options else {"weights": model.coef_})


def with_options(name: str, **options: Any) -> dict[str, Any]:
    return trained(TABLES[name](), **options)


def from_table(name: str, **options: Any) -> dict[str, Any]:
    """A learner of the command line: what it predicts."""
    data = TABLES[name]()
    model = tunefree.train(data.learned, **{"task": data.task, **data.columns, **options})
    return {"predicted": model.predict(data.X_new)} | (
        {"margins": model.decision_function(data.X_new)} if data.task == "classification" else {}
    )


def weighted() -> dict[str, Any]:
    """Classes that weigh the same, with rows that weigh too, by warm start."""
    data = TABLES["seven"]()
    model = estimator(data, class_weight="balanced", random_state=1, warm_start=True)
    weight = np.arange(len(data.y)) % 3 * 0.5
    model.fit(data.X, data.y, sample_weight=weight)
    before = results(model, data.X_new)["probabilities"]
    return results(model.fit(data.X, data.y), data.X_new) | {"before": before}


def missing() -> dict[str, Any]:
    """An array with missing values."""
    data = TABLES["binary"]()
    X, X_new = (np.column_stack([column.to_numpy() for column in table.columns]) for table in (data.X, data.X_new))
    X[::7, 1] = X[3::5, 0] = X_new[::4, 2] = np.nan
    return results(estimator(data, random_state=0).fit(X, data.y), X_new)


def new_columns() -> dict[str, Any]:
    """Columns and values that come later, in rows without labels and in rows that cannot be used."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        rows = rows_of(TABLES["late"]().learned)
        for i, row in enumerate(rows):
            row.update({"later": i % 5} if i > 150 else {})
            row.update({"said": f"so {i % 3} it"} if i > 200 else {})
            row.pop("y" if i % 50 == 7 else "none", None)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        model = tunefree.train(str(path), target="y", task="classification", unlabelled="skip")
        new = {"a": [0.1, 0.2], "b": [1.0, -1.0], "town": ["Ely", "Rome"], "later": [3, None], "said": ["so 2", None]}
        return results(model, pa.table(new))


def more_rows(save_every: int) -> dict[str, Any]:
    """A training that an error ends is resumed when the row is corrected; another file is learned from there."""
    with folder_of("seven") as folder:
        rows = (folder / "rows.csv").read_text().splitlines()
        arguments = ["train", "rows.csv", "-t", "y", "-o", "m", f"--save-every={save_every}", "--resume"]
        bad = [*rows[:250], rows[250].rpartition(",")[0] + ',"', *rows[251:]]
        (folder / "rows.csv").write_text("\n".join(bad) + "\n")
        failed = command(*arguments).splitlines()[0]
        (folder / "rows.csv").write_text("\n".join(rows) + "\n")
        resumed = command(*arguments)
        model, X = tunefree.load("m"), TABLES["seven"]().X_new
        further = command("train", "new.csv", "--from", "m", "-o", "n", "--json")
        texts = {"failed": failed, "resumed": resumed, "further": further}
        return results(model, X) | texts | {"after": tunefree.load("n").predict_proba(X)}


# Sparse rows and the long stream.


def sparse_fit(**parameters: Any) -> dict[str, Any]:
    X, y, new = sparse_rows()
    return results(tunefree.TuneFreeClassifier(random_state=0, **parameters).fit(X, y), new)


def sparse_blocks(size: int) -> dict[str, Any]:
    X, y, new = sparse_rows()
    model = tunefree.TuneFreeClassifier(n_jobs=1)
    for start in range(0, 300, size):
        model.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1, 2])
    return results(model, new)


def sparse_single(learner: str) -> dict[str, Any]:
    X, y, new = sparse_rows()
    model = tunefree.OnlineClassifier(learner, random_state=0, n_jobs=1).fit(X, y)
    return results(model, new) | {"weights": model.coef_}


def of_lines(extension: str, **options: Any) -> dict[str, Any]:
    """Sparse rows as svmlight or Vowpal Wabbit text; predictions are made by the command."""
    X, y, new = sparse_rows()
    with folder_of("binary") as folder:
        for name, rows, labels in (("rows", X, y), ("new", new, np.zeros(new.shape[0], int))):
            path = folder / f"{name}{extension}"
            if extension == ".svmlight":
                dump_svmlight_file(rows, labels, str(path), zero_based=False)
            else:
                lines = [
                    f"{label + 1} |a " + " ".join(f"f{j}:{value:g}" for j, value in zip(row.indices, row.data))
                    for label, row in zip(labels, (rows[[i]] for i in range(rows.shape[0])))
                ]
                path.write_text("\n".join(lines) + "\n")
        said = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        task = ["--task=classification"]
        told = {"train": command("train", f"rows{extension}", "-o", "m", *task, *said)}
        command("predict", "m", f"new{extension}", "-o", "out.parquet")
        table = pq.read_table("out.parquet")
        return told | {name: np.array(table[name].to_pylist()) for name in table.column_names}


def long_stream(size: int, n_jobs: int = 1, is_saved: bool = False) -> dict[str, Any]:
    X, y, new = stream()
    model = tunefree.TuneFreeClassifier(n_jobs=n_jobs)
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1])
        if is_saved:
            model = saved(model)
    return results(model, new) | {"sets": model.predict_set(new, 0.9)}


def long_training() -> dict[str, Any]:
    """A training in the order of the rows, which notices where the stream changed."""
    X, y, new = stream()
    model = tunefree.train(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}), target="y", shuffle=False)
    drifts = json.dumps(model.drifts_, default=str, indent=1)
    return results(model, {"a": new[:, 0], "b": new[:, 1], "c": new[:, 2]}) | {"drifts": drifts}


def long_fit(**parameters: Any) -> dict[str, Any]:
    X, y, new = stream()
    model = tunefree.TuneFreeClassifier(**{"n_jobs": 1, "random_state": 0, **parameters}).fit(X, y)
    return results(model, new) | {"estimate": [*model.estimated_loss_], "weights": model.selection_["weight"]}


# Servers and shards.


def serving(name: str, *options: str) -> dict[str, Any]:
    """A server predicts, explains and learns rows; after its end another one goes on from its store."""
    data = TABLES[name]()
    new, learned = rows_of(data.X_new, 0, 12), rows_of(data.learned, 0, 12)
    with folder_of(name):
        command("train", "rows.csv", "-o", "m", *options_of(name), *options)
        with served("m", "-o", "store") as ask:
            told = {
                "one": ask("POST", "/predict", new[0]),
                "many": ask("POST", "/predict", new),
                "explained": ask("POST", "/explain", new[:2]),
                "learned": ask("POST", "/learn", learned),
                "waits": ask("POST", "/predict", {**new[0], "id": "7"}),
                "label": ask("POST", "/labels", {"id": "7", "y": learned[0]["y"]}),
                "wrong": ask("POST", "/predict", {"nothing": 1}),
                "saved": ask("POST", "/versions", {"save": True}),
            }
        with served("store") as ask:
            return told | {"again": ask("POST", "/predict", new), "model": ask("GET", "/model")}


def shards(name: str, sample: int, **options: Any) -> dict[str, Any]:
    """A Parquet file in five shards; the common start learns few rows (there is no option for that)."""
    from tunefree.distributed import phases, train

    data = TABLES[name]()
    table = pa.concat_tables([data.learned, data.learned.take(np.arange(len(data.learned))[::-1])])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(phases, "SAMPLE", sample)
        for i in range(5):
            write(table.slice(i * len(table) // 5, len(table) // 5), Path(folder) / f"part{i}.parquet")
        whole = {"task": data.task, "target": "y", **options}
        model = train(cluster(), str(Path(folder) / "part*.parquet"), shard_rows=1, **whole)
        return results(model, data.X_new)


# Commands.

READ = (
    "predict m new.csv -o out.csv",
    "predict m new.csv -o out.parquet --json",
    "evaluate m new.csv",
    "evaluate m new.csv --json",
    "evaluate m new.csv --progressive",
    "explain m new.csv -o out.x.csv",
    "certify m",
    "certify m --json",
    "inspect m",
    "inspect m --json",
    "columns rows.csv -t y",
    "columns rows.csv -t y --json",
)
DIALOGUES: dict[str, tuple[str, ...]] = {
    "people": (*READ, "predict m new.csv --set .5,.8 --top 1 -o out.y.csv", "evaluate m new.csv --by town"),
    "prices": (*READ, "predict m new.csv --interval .5,.8 --quantiles .3 -o out.y.csv", "evaluate m new.csv --by town"),
    "counts": READ[:4] + READ[5:10],
    "seven": (*READ, "explain m new.csv --class a --top 2 --json -o out.y.csv", "predict m nothing.csv"),
    "texts": READ[:10],
    "adult": READ,
}
COMPARED = "compare rows.csv -t y -q --json --learner pool --learner scinol2 --learner adagrad"


def reported(name: str) -> dict[str, Any]:
    return dialogue(name, "report m new.csv -o out.html")


def small_by_command(name: str) -> dict[str, Any]:
    return dialogue(name, "train rows.csv -t y -o m --only-for-prediction", "predict m new.csv -o out.csv", "inspect m")


def of_tables() -> Iterator[Run]:
    """Each table by each door."""
    for name in TABLES:
        for door, function in DOORS.items():
            if door not in WITHOUT.get(name, ()):
                yield Run(f"{name}, {door}", partial(function, name), name not in QUICK and door != "fit")


def of_options() -> Iterator[Run]:
    """Single learners, views, losses, and other options of a training."""
    for learner in (*SINGLE, *PAPERS):
        for task, name in (("classes", "seven"), ("numbers", "prices")):
            yield Run(f"{task}, {learner}", partial(single, name, learner), learner in PAPERS)
    for learner in ("perceptron", "kernel-perceptron"):
        yield Run(f"classes, {learner}", partial(from_table, "binary", learner=learner), True)
    for view in VIEWS:
        options = {"view": view, "average": view != "raw", "passes": 2}
        yield Run(f"view {view}, two passes", partial(single, "binary", "nag", **options), False)
    for loss in MARGIN_LOSSES:
        yield Run(f"classes, loss {loss}", partial(from_table, "adult", learner="scinol2", loss=loss), False)
    for loss in LOSSES:
        yield Run(f"numbers, loss {loss}", partial(with_options, "prices", loss=loss), loss != "quantile:0.9")
        yield Run(f"numbers, cocob, loss {loss}", partial(single, "prices", "cocob", loss=loss), False)
    for loss in COUNT_LOSSES:
        yield Run(f"counts, loss {loss}", partial(with_options, "counts", loss=loss), True)
    for learner in KERNELS:
        yield Run(f"kernel, {learner}", partial(from_table, "binary", learner=learner, kernel="rbf"), True)
    yield Run("kernel, early stopping", partial(from_table, "binary", learner="early-stopping"), True)
    yield Run("weights of classes and rows, warm start", weighted, False)
    yield Run("an array with missing values", missing, False)
    yield Run("columns that come late", new_columns, False)
    yield Run("hashed", partial(with_options, "levels", hash_bits=6), False)
    yield Run("held out", partial(with_options, "adult", holdout=0.2, shuffle=False), False)
    yield Run("little memory", partial(with_options, "levels", memory_limit="300k"), False)
    yield Run("river, ScInOL, classes", lambda: river(TABLES["seven"](), 200, "ScInOL"), False)
    yield Run("river, ScInOL, numbers", lambda: river(TABLES["prices"](), 200, "ScInOL"), False)


def of_sparse_rows() -> Iterator[Run]:
    yield Run("sparse, fit", partial(sparse_fit, n_jobs=1), False)
    yield Run("sparse, two threads", partial(sparse_fit, n_jobs=2), True)
    for size in (300, 41, 1):
        yield Run(f"sparse, blocks of {size}", partial(sparse_blocks, size), size != 41)
    for learner in SINGLE[:-2]:
        yield Run(f"sparse, {learner}", partial(sparse_single, learner), learner != "scinol2")
    for extension in (".svmlight", ".vw"):
        yield Run(f"sparse, {extension}", partial(of_lines, extension), extension == ".vw")
        yield Run(f"sparse, {extension}, hashed", partial(of_lines, extension, hash_bits=8), True)


def of_the_stream() -> Iterator[Run]:
    """A stream of 4,700 rows, as a whole, in blocks, in two threads, saved and killed on the way."""
    yield Run("stream, whole", partial(long_stream, 4700), False)
    yield Run("stream, blocks of 500", partial(long_stream, 500), True)
    yield Run("stream, two threads", partial(long_stream, 4700, n_jobs=2), True)
    for size in (2896, 4097, 4353):  # around births and where generations take over
        yield Run(f"stream, saved at {size}", partial(long_stream, size, is_saved=True), True)
    yield Run("stream, trained", long_training, True)
    yield Run("stream, fit", long_fit, True)
    yield Run("stream, fit in two threads", partial(long_fit, n_jobs=2), True)
    yield Run("stream, killed at the first checkpoint", partial(killed, "300", 1), True)
    yield Run("stream, killed at a later checkpoint", partial(killed, "300", 4), True)
    yield Run("an error, corrected, and more rows", partial(more_rows, 100), False)


def of_processes() -> Iterator[Run]:
    """Commands, servers and shards."""
    for name, lines in DIALOGUES.items():
        yield Run(f"commands, {name}", partial(dialogue, name, *lines), name not in ("people", "prices"))
    for name in ("people", "prices"):
        yield Run(f"commands, {name}, comparison", partial(dialogue, name, COMPARED), True)
        yield Run(f"commands, {name}, report", partial(reported, name), True)
        yield Run(f"commands, {name}, only for prediction", partial(small_by_command, name), False)
    for name, options in (("late", ()), ("prices", ("--learner=scinol2",)), ("people", ())):
        yield Run(f"server, {name}", partial(serving, name, *options), name != "late")
    for name in ("seven", "prices", "levels"):
        yield Run(f"shards, {name}", partial(shards, name, 200), name != "seven")


def runs() -> list[Run]:
    """All runs."""
    return [*of_tables(), *of_options(), *of_sparse_rows(), *of_the_stream(), *of_processes()]
