"""The table of golden runs. They enter by what is public: estimators, files, commands, servers and shards."""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from sklearn.datasets import dump_svmlight_file

import tunefree
from tests.golden.data import TABLES, Data, sparse_rows
from tests.serving.model import Server
from tests.waiting import until
from tunefree.core.parameters import option

os.environ["SOURCE_DATE_EPOCH"] = "1700000000"  # the date of reports
HIDDEN = ("seconds", "bytes", "processors", "MiB", "rows/s", "compiling code")  # words of lines that machines decide
NO_TEXT = re.compile(r"(?s)<(style|script|svg)\b.*?</\1>|<[^>]*>")  # of a page
PUBLISHED = re.compile(r'"rows": (\d+),\s"rows_published": \1,')  # in the state of a served model
Results = dict[str, Any]


class Run(NamedTuple):
    """A function that returns results by their names; slow ones are left to ``make test-all``."""

    name: str
    function: Callable[[], Results]
    is_slow: bool = False


# Doors of a table in memory


def results(model: Any, X: Any) -> Results:
    """What a model predicts of rows, and its loss so far."""
    predicted = model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)
    return {"predicted": predicted, "loss": [model.progressive_loss_]}


def pool(data: Data, **parameters: Any) -> Any:
    """A model that has learned nothing."""
    kind = tunefree.TuneFreeClassifier if data.task == "classification" else tunefree.TuneFreeRegressor
    loss = {name: value for name, value in data.options.items() if name == "loss"}
    return kind(**{"n_jobs": 1, **loss, **parameters})


@cache
def fitted(name: str) -> Any:
    """A model that runs share; they do not change it."""
    data = TABLES[name]()
    return pool(data, random_state=0).fit(data.rows, data.y, **data.extra)


def fit_in_order(data: Data) -> Results:
    return results(pool(data, shuffle=False, n_jobs=2).fit(data.rows, data.y, **data.extra), data.new_rows)


def in_blocks(data: Data, size: int, stop: int = 10**6, is_saved: bool = False, n_jobs: int = 1) -> Results:
    """Predict blocks of rows and learn them. Classes that come late are not known before."""
    model, before, stop = pool(data, n_jobs=n_jobs), [np.empty(0)], min(stop, len(data.y))
    is_closed = data.task == "classification" and data.y.dtype.kind != "f"
    classes = {"classes": np.unique(data.y)} if is_closed else {}
    for start in range(0, stop, size):
        block, rows = data.rows.slice(start, min(size, stop - start)), slice(start, min(start + size, stop))
        before += [results(model, block)["predicted"].ravel()] if start else []
        model.partial_fit(block, data.y[rows], **classes, **{role: part[rows] for role, part in data.extra.items()})
        model = saved(model) if is_saved else model
    return results(model, data.new_rows) | {"before": np.concatenate(before)}


def river(data: Data, n: int, family: str) -> Results:
    """Predict rows as dictionaries, and learn them."""
    from tunefree import river as rivers

    model = getattr(rivers, family + ("Classifier" if data.task == "classification" else "Regressor"))()
    rows = json.loads(json.dumps(data.rows.to_pylist() + data.new_rows.to_pylist(), default=str))  # dates are texts
    predicted: list[float] = []
    for i, row in enumerate(rows):
        predicted += [model.predict_one(row)] if data.task == "regression" else model.predict_proba_one(row).values()
        if i < n:
            model.learn_one(row, data.y[i].item())
    return {"predicted": predicted}


def train(data: Data, file: str = "", **options: Any) -> Results:
    """What is learned of a table, or of a file of it."""
    plan = {"task": data.task, **data.columns, **data.options, **options}
    with folder(data):
        return results(tunefree.train(file or data.learned, **plan), data.new_rows)


def saved(model: Any, **options: Any) -> Any:
    """A model that was written to a file and read again."""
    with tempfile.TemporaryDirectory() as place:
        model.save(Path(place) / "model", **options)
        return tunefree.load(Path(place) / "model")


def details(data: Data) -> Results:
    """What a model tells beside its predictions, and what it predicts where it was saved only for that."""
    model, small, X = fitted(data.name), saved(fitted(data.name), only_for_prediction=True), data.new_rows
    explained = model.explain(X.slice(0, 20))
    names = [name for name in explained.column_names if name != "(class)"]
    parts = np.column_stack([explained.column(name).to_numpy() for name in names])
    if "(class)" in explained.column_names:
        parts = parts.reshape(20, -1, len(names)).transpose(0, 2, 1)
    told = {"columns": np.array(names, object)[:20], "parts": parts, "importances": model.feature_importances_}
    told |= {f"members: {name}": column.to_numpy() for name, column in model.selection_.to_pandas().items()}
    if data.task == "classification":
        told |= {"sets": model.predict_set(X, [0.5, 0.8])} if data.name != "wide" else {}
        return told | {"small": small.predict_proba(X), "one": small.predict_proba(X.slice(7, 1))}
    told |= {"intervals": model.predict_interval(X, [0.5, 0.8]), "quantiles": model.predict(X, quantiles=[0.2, 0.5])}
    return told | {"small": small.predict(X), "one": small.predict(X.slice(7, 1))}


DOORS: dict[str, Callable[[Data], Results]] = {
    "fit": lambda data: results(fitted(data.name), data.new_rows),
    "fit in order, two threads": fit_in_order,
    "blocks": partial(in_blocks, size=37),
    "row by row": partial(in_blocks, size=1, stop=70),
    "river": partial(river, n=60, family="TuneFree"),
    "train": train,
    "CSV": partial(train, file="rows.csv"),
    "JSON lines": partial(train, file="rows.jsonl"),
    "Parquet": partial(train, file="rows.parquet"),
    "blocks, saved": partial(in_blocks, size=113, is_saved=True),
    "details": details,
}
FILES = {"CSV", "JSON lines", "Parquet"}
# Tables whose doors `make test` tries, but for doors that give what others of the table do; of other tables `fit` only.
QUICK = {"seven": FILES, "prices": FILES, "people": {"train", "Parquet"}, "late": set[str]()}
WITHOUT = {  # doors that are closed to a table, or too slow
    "one_row": DOORS.keys() - {"fit", "blocks", "train"},
    "wide": {"row by row", "river", "CSV", "JSON lines"},
    "counts": {"river"},
    "stream": {"blocks", "blocks, saved", "CSV", "JSON lines", "Parquet", "river"},
}


# Options


def single(data: Data, learner: str, **options: Any) -> Results:
    kind = tunefree.OnlineClassifier if data.task == "classification" else tunefree.OnlineRegressor
    numbers = [name for name in data.rows.column_names if pa.types.is_floating(data.rows[name].type)]
    model = kind(learner, random_state=0, n_jobs=1, **options).fit(data.rows.select(numbers), data.y)
    return results(model, data.new_rows.select(numbers)) | ({} if "view" in options else {"weights": model.coef_})


def from_table(data: Data, **options: Any) -> Results:
    """What a learner predicts of which there may be no probabilities."""
    model = tunefree.train(data.learned, **{"task": data.task, **data.columns, **options})
    return {"predicted": (model.decision_function if data.task == "classification" else model.predict)(data.new_rows)}


def weighted(data: Data) -> Results:
    """Classes that weigh the same, rows that weigh more or less, and a second pass over numbers, some missing."""
    X, X_new = (np.column_stack(table.columns) for table in (data.rows, data.new_rows))
    X[::7, 1] = X[3::5, 0] = X_new[::4, 2] = np.nan
    model = pool(data, class_weight="balanced", random_state=1, warm_start=True)
    before = results(model.fit(X, data.y, sample_weight=np.arange(len(X)) % 3 / 2), X_new)["predicted"]
    return results(model.fit(X, data.y), X_new) | {"before": before}


def new_columns(data: Data) -> Results:
    """A number and a text that come late, and rows without a label."""
    rows = data.learned.to_pylist()
    for i, row in enumerate(rows):
        row |= {"later": i % 5} if i > 150 else {}
        row |= {"said": f"so {i % 3} it"} if i > 200 else {}
        row |= {"y": None} if i % 50 == 7 else {}
    with folder(data):
        Path("late.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        model = tunefree.train("late.jsonl", target="y", task="classification", unlabelled="skip")
    new = {"x0": [0.1, 0.2], "x1": [1.0, -1.0], "town": ["Ely", "Rome"], "later": [3, None], "said": ["so 2", None]}
    return results(model, pa.table(new))


def rises(data: Data) -> Results:
    model = tunefree.train(data.learned, target="y", shuffle=False)
    return results(model, data.new_rows) | {"drifts": json.dumps(model.drifts_, default=str, indent=1)}


def sparse(size: int | None = None, learner: str | None = None, n_jobs: int = 1) -> Results:
    """Sparse rows, by ``fit`` or in blocks."""
    X, y, new = sparse_rows()
    model = tunefree.OnlineClassifier(learner) if learner else tunefree.TuneFreeClassifier(random_state=0)
    model.set_params(n_jobs=n_jobs)
    for start in range(0, len(y), size or len(y)):
        rows = slice(start, start + (size or len(y)))
        model = model.partial_fit(X[rows], y[rows], classes=[0, 1, 2]) if size else model.fit(X, y)
    return results(model, new) | ({"weights": model.coef_} if learner else {})


# Files, commands and other processes


def write_groups(table: pa.Table) -> None:
    """Write groups of rows, which are read, learned, and saved one after the other."""
    pq.write_table(table, "rows.parquet", row_group_size=100)


@contextmanager
def folder(data: Data) -> Iterator[None]:
    """Work in a folder that has the rows of a table."""
    with tempfile.TemporaryDirectory() as place, chdir(place):
        csv.write_csv(data.learned, "rows.csv")
        csv.write_csv(data.new, "new.csv")
        write_groups(data.learned)
        rows = [{name: value for name, value in row.items() if value is not None} for row in data.learned.to_pylist()]
        Path("rows.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
        yield


def command(line: str) -> str:
    """What a command prints and how it ends."""
    from tunefree.cli import app

    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.setenv("COLUMNS", "120")  # whatever the terminal
        patch.setattr(sys, "argv", ["tunefree", *line.split()])
        try:
            app.main()
        except SystemExit as end:
            status = int(end.code or 0)
    printed = [stream.buffer.getvalue().decode() for stream in (output, errors)]
    return normalised("\n".join([f"status {status}", *printed]))


def normalised(text: str) -> str:
    """A text without times and sizes; JSON on many lines, so that a difference can be found."""
    text = text.replace(', "', ',\n"').replace("}, {", "},\n{") if '{"' in text else text
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*", "(time)", text).replace(tunefree.__version__, "(version)")
    lines = [line.rstrip() for line in text.splitlines() if not any(word in line for word in HIDDEN)]
    return "\n".join(line for line in lines if line)


def options_of(data: Data) -> str:
    """The options of a command that learns a table."""
    listed = {name: [value] if isinstance(value, str) else value for name, value in data.options.items()}
    said = [f"--{name}={value}" for name, values in listed.items() for value in values]
    return " ".join([f"--task={data.task}", *said, *(f"{option(role)}={name}" for role, name in data.columns.items())])


def dialogue(data: Data, lines: Sequence[str]) -> Results:
    """What commands print after a training, and what they write to files that are named ``out.*``."""
    with folder(data):
        told: Results = {"train": command(f"train rows.csv -o m {options_of(data)}")}
        told |= {line: command(line) for line in lines}
        for path in sorted(Path().glob("out.*")):
            if path.suffix == ".html":  # what can be read, without the figures
                told[path.name] = normalised(re.sub(NO_TEXT, "\n", path.read_text()))
            else:
                table = csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
                told |= {f"{path.name} {name}": np.array(table[name].to_pylist()) for name in table.column_names}
        return told


def of_lines(extension: str, options: str) -> Results:
    """Sparse rows as svmlight or Vowpal Wabbit text."""
    X, y, new = sparse_rows()
    with folder(TABLES["one_row"]()):
        for name, rows, labels in (("rows", X, y), ("new", new, np.zeros(new.shape[0], int))):
            dump_svmlight_file(rows, labels + 1, name + extension, zero_based=False)
            if extension == ".vw":
                text = Path(name + extension).read_text()
                Path(name + extension).write_text(re.sub(r"(?m)^(\d+)", r"\1 |a", text))
        told = {"train": command(f"train rows{extension} -o m --task=classification {options}")}
        told |= {"predict": command(f"predict m new{extension} -o out.csv")}
        table = csv.read_csv("out.csv")
        return told | {name: table[name].to_numpy() for name in table.column_names}


def interrupted(data: Data) -> Results:
    """A row without a label ends a training. The rows after those that were saved are learned from there."""
    with folder(data):
        labels = pa.array(data.y, mask=np.arange(len(data.y)) == 250)
        write_groups(data.learned.set_column(data.learned.column_names.index("y"), "y", labels))
        told: Results = {"failed": command("train rows.parquet -t y -o m --save-every=100")}
        write_groups(data.learned.slice(200))
        told |= {"rest": command("train rows.parquet --from m.checkpoint -o m --json")}
        return results(tunefree.load("m"), data.new_rows) | told


def killed(data: Data, saves: int) -> Results:
    """A training that is killed after some checkpoints, wherever it is by then, and resumed."""
    with folder(data):
        learn = "train rows.parquet -t y -q -o m --save-every=300 --resume"
        checkpoint, seen = Path("m.checkpoint"), set[int]()
        process = subprocess.Popen([sys.executable, "-m", "tunefree", *learn.split()])

        def is_due() -> bool:
            seen.update(file.stat().st_mtime_ns for file in [checkpoint] if file.exists())
            return len(seen) >= saves or process.poll() is not None

        until(is_due)
        process.kill()
        process.wait()
        command(learn)
        return results(tunefree.load("m"), data.new_rows)


@contextmanager
def server(*arguments: str) -> Iterator[Callable[..., str]]:
    """A server in a process of its own; yields a function that asks it."""

    def ask(path: str, body: Any = None) -> str:
        method, sent = "GET" if body is None else "POST", json.dumps(body, default=str).encode()
        status, answer = server.ask(method, path, sent)
        return normalised(f"{status} {json.dumps(answer)}")

    server = Server(*arguments)
    try:
        yield ask
        assert server.end() == 0
    finally:
        server.kill()


def serving(data: Data, options: str) -> Results:
    """A server predicts, explains and learns rows; another one goes on from what it kept."""
    new, (first, *rows) = data.new_rows.slice(0, 9).to_pylist(), data.learned.slice(0, 12).to_pylist()
    label = first.pop("y")
    with folder(data):
        command(f"train rows.csv -o m {options_of(data)} {options}")
        requests = [
            ("/predict", new[0]),
            ("/predict", new),
            ("/explain", new[:2]),
            ("/learn", rows),
            ("/predict", {**new[0], "id": "7"}),
            ("/labels", {"id": "7", "y": label}),
            ("/predict", {"nothing": 1}),
            ("/versions", {"save": True}),
        ]
        with server("m", "-o", "store") as ask:
            told: Results = {}
            for i, (path, body) in enumerate(requests):
                told[f"{path} {i}"] = ask(path, body)
                until(lambda: PUBLISHED.search(ask("/model")))
        with server("store") as ask:
            return told | {"again": ask("/predict", new), "model": ask("/model")}


@cache
def cluster() -> Any:
    """A client of two workers, in threads."""
    import distributed

    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    return distributed.Client(distributed.LocalCluster(n_workers=2, **options))


def shards(data: Data) -> Results:
    """Row groups are shards; the common start learns few rows, for which there is no option."""
    from tunefree.distributed import train as learn
    from tunefree.distributed import training

    with folder(data), pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "SAMPLE", 100)
        model = learn(cluster(), str(Path("rows.parquet").resolve()), target="y", task=data.task, shard_rows=1)
        return results(model, data.new_rows)


READ = (
    "predict m new.csv -o out.csv",
    "predict m new.csv -o out.parquet --json",
    "evaluate m new.csv",
    "evaluate m new.csv --json",
    "explain m new.csv -o out.x.csv",
    "inspect m",
    "inspect m --json",
    "certify m",
    "certify m --json",
    "columns rows.csv -t y",
)
LEARNERS = "learners rows.csv -t y -q --json --learner pool --learner scinol2 --learner adagrad"
SMALL = ("train rows.csv -t y -o m --only-for-prediction", *READ[:3], *READ[4:6])
DIALOGUES = {
    "people": (*READ, "predict m new.csv --set .5,.8 --top 1 -o out.y.csv", "evaluate m new.csv --by town"),
    "prices": (*READ, "predict m new.csv --interval .5,.8 --quantiles .3 -o out.y.csv", "evaluate m new.csv --by town"),
    "seven": (*READ, "explain m new.csv --class a --top 2 -o out.y.csv", "evaluate m new.csv --progressive"),
    "counts": READ[:7],
    "texts": READ,
    "adult": (LEARNERS, "predict m nothing.csv", "predict m rows.csv --interval .5", "report m new.csv -o out.html"),
    "few_values": (LEARNERS, "report m new.csv -o out.html"),
    "levels": SMALL,
    "late": SMALL,
}

# The table

SINGLE = ("scinol1", "scinol2", "pistol", "coordinate-pistol", "nag", "cocob", "cocob-original", "newton", "adagrad")
PAPERS = ("adam", "kotlowski", "ogd")
LOSSES = ("absolute", "absolute-power:1.5", "epsilon-insensitive:0.1:1", "huber:1", "quantile:0.9")
MARGIN_LOSSES = ("hinge", "smoothed-hinge", "squared-hinge", "exponential", "square")


def of_tables() -> Iterator[Run]:
    """Each table by each door, and its options."""
    for name, table in TABLES.items():
        for door, function in DOORS.items():
            if door not in WITHOUT.get(name, ()):
                is_slow = door != "fit" and door in QUICK.get(name, DOORS)
                yield Run(f"{name}, {door}", lambda f=function, t=table: f(t()), is_slow)


def of_options() -> Iterator[tuple[str, str, bool, Callable[..., Results], dict[str, Any]]]:
    """A name, a table, whether it is slow, a function of the table, and its parameters."""
    for name in ("seven", "prices"):
        for learner in (*SINGLE, *PAPERS):
            yield learner, name, learner in PAPERS, single, {"learner": learner}
        yield "river, ScInOL", name, False, river, {"n": 200, "family": "ScInOL"}
    for view in ("raw", "steady"):
        options = {"view": view, "average": view != "raw", "passes": 2}
        yield f"nag, {view}, two passes", "seven", False, single, {"learner": "nag", **options}
    for loss in MARGIN_LOSSES:
        yield f"scinol2, {loss}", "adult", False, from_table, {"learner": "scinol2", "loss": loss}
    for loss in LOSSES:
        yield loss, "prices", loss != "quantile:0.9", train, {"loss": loss}
        yield f"cocob, {loss}", "prices", False, single, {"learner": "cocob", "loss": loss}
    yield "tweedie", "counts", False, train, {"loss": "tweedie:1.5"}
    yield "kernel-pistol", "seven", True, from_table, {"learner": "kernel-pistol", "kernel": "rbf"}
    yield "weights and missing values", "wide", False, weighted, {}
    yield "new columns", "late", False, new_columns, {}
    yield "hashed", "levels", False, train, {"hash_bits": 6}
    yield "little memory", "levels", False, train, {"memory_limit": "300k"}
    for size in (2896, 4097, 4353):  # around births, and where generations take over
        yield f"saved at {size}", "stream", size != 4097, in_blocks, {"size": size, "is_saved": True}
    yield "blocks of 500, two threads", "stream", True, in_blocks, {"size": 500, "n_jobs": 2}
    yield "rises of the loss", "stream", True, rises, {}
    yield "killed at the first checkpoint", "stream", True, killed, {"saves": 1}
    yield "killed at the fifth checkpoint", "stream", True, killed, {"saves": 5}
    yield "interrupted by an error", "seven", False, interrupted, {}
    for name, lines in DIALOGUES.items():
        yield "commands", name, name not in ("people", "prices"), dialogue, {"lines": lines}
    for name, options in (("late", ""), ("prices", "--learner=scinol2"), ("people", "")):
        yield "server", name, name != "late", serving, {"options": options}
    for name in ("seven", "prices", "levels"):
        yield "shards", name, name != "seven", shards, {}


def of_sparse_rows() -> Iterator[Run]:
    yield Run("sparse, fit", sparse)
    yield Run("sparse, fit in two threads", partial(sparse, n_jobs=2), True)
    for size in (300, 41, 1):
        yield Run(f"sparse, blocks of {size}", partial(sparse, size), size != 41)
    for learner in SINGLE:
        yield Run(f"sparse, {learner}", partial(sparse, learner=learner), learner != "scinol2")
    for extension in (".svmlight", ".vw"):
        for options in ("", "--hash-bits=8"):
            yield Run(f"sparse, {extension} {options}", partial(of_lines, extension, options), options != "")


RUNS = [*of_tables(), *of_sparse_rows()] + [
    Run(f"{table}, {name}", partial(lambda f, t, p: f(TABLES[t](), **p), function, table, parameters), is_slow)
    for name, table, is_slow, function, parameters in of_options()
]
