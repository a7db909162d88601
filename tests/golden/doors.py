"""The ways into the package: estimators, files, commands, servers and shards. Only what is public is used."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

import tunefree
from tests.golden.data import TABLES, Data

ROLES = ("sample_weight", "groups", "exposure")
LIMIT = 300.0  # seconds, after which another process is taken for dead
HIDDEN = ("seconds", "bytes", "processors", "MiB", "kB")  # words of lines that depend on the machine or on its load


def results(model: Any, X: Any, **exposure: Any) -> dict[str, Any]:
    """What a model predicts of rows, and its losses so far."""
    is_classifier = hasattr(model, "classes_")
    predicted = {"probabilities": model.predict_proba(X)} if is_classifier else {"numbers": model.predict(X)}
    labels = {"classes": model.classes_} if is_classifier else {}
    return predicted | labels | {"loss": model.progressive_loss_}


def estimator(data: Data, **parameters: Any) -> Any:
    kind = tunefree.TuneFreeClassifier if data.task == "classification" else tunefree.TuneFreeRegressor
    options = {name: value for name, value in data.options.items() if name == "loss"}
    return kind(**{"n_jobs": 1, **options, **parameters})


@cache
def fitted(name: str) -> Any:
    """A model of a table, which runs share that do not change it."""
    data = TABLES[name]()
    return estimator(data, random_state=0).fit(data.X, data.y, **data.extra)


def blocks(data: Data, model: Any, size: int, stop: int | None = None) -> dict[str, Any]:
    """Predict and learn blocks of rows; the classes are known as in most streams, unless they come late."""
    X, y, n = data.X, data.y, len(data.y) if stop is None else stop
    is_late = data is TABLES["late"]()
    classes = {"classes": np.unique(y)} if data.task == "classification" and not is_late else {}
    before = []
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        block = X.slice(start, rows.stop - start)
        if start:
            before.append(np.ravel(model.predict_proba(block) if hasattr(model, "classes_") else model.predict(block)))
        model.partial_fit(block, y[rows], **classes, **{role: part[rows] for role, part in data.extra.items()})
    return results(model, data.X_new) | {"before": np.concatenate([*before, []])}


def river(data: Data, stop: int = 60, kind: str = "TuneFree") -> dict[str, Any]:
    """Predict and learn rows as dictionaries, one by one."""
    from tunefree import river as doors

    model = getattr(doors, kind + ("Classifier" if data.task == "classification" else "Regressor"))()

    def predicted(row: dict[str, Any]) -> list[float]:
        row = {name: str(value) if hasattr(value, "isoformat") else value for name, value in row.items()}
        return [*model.predict_proba_one(row).values()] if data.task == "classification" else [model.predict_one(row)]

    before: list[float] = []
    for row, target in zip(data.X.slice(0, stop).to_pylist(), data.y[:stop].tolist(), strict=True):
        row = {name: str(value) if hasattr(value, "isoformat") else value for name, value in row.items()}
        before += predicted(row)
        model.learn_one(row, target)
    return {"before": before, "after": [number for row in data.X_new.to_pylist() for number in predicted(row)]}


def trained(data: Data, source: Any = None, **options: Any) -> dict[str, Any]:
    """What ``train`` makes of a table in memory, or of a source of it."""
    whole = {"task": data.task, **data.columns, **data.options, **options}
    return results(tunefree.train(data.learned if source is None else source, **whole), data.X_new)


def write(table: pa.Table, path: Path) -> Path:
    """Write a table in the format that the file's extension says."""
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        rows = [json.dumps({k: v for k, v in row.items() if v is not None}, default=str) for row in table.to_pylist()]
        path.write_text("".join(f"{row}\n" for row in rows))
    return path


def of_file(data: Data, extension: str, **options: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return trained(data, str(write(data.learned, Path(folder) / f"rows{extension}")), **options)


def saved(model: Any, **options: Any) -> Any:
    """A model that was written to a file and read again."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model", **options)
        return tunefree.load(Path(folder) / "model")


def command(*arguments: Any) -> str:
    """What a command prints and how it ends, without what depends on the machine."""
    from tunefree.cli import app

    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    argv, status = sys.argv, 0
    try:
        sys.argv = ["tunefree", *map(str, arguments)]
        with redirect_stdout(output), redirect_stderr(errors):
            app.main()
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.argv = argv
    printed = [stream.buffer.getvalue().decode() for stream in (output, errors)]
    return normalised("\n".join([f"status {status}", *printed]))


def normalised(text: str) -> str:
    """A text without times and sizes; JSON on many lines, so that a difference can be found."""
    if '{"' in text:
        text = text.replace(', "', ',\n"').replace("}, {", "},\n{").replace("{", "{\n").replace("}", "\n}")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*", "(time)", text).replace(tunefree.__version__, "(version)")
    lines = [line.rstrip() for line in text.splitlines() if not any(word in line for word in HIDDEN)]
    return "\n".join(line for line in lines if line)


@contextmanager
def folder_of(name: str) -> Iterator[Path]:
    """A folder to work in, with the rows of a table as files."""
    data = TABLES[name]()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write(data.learned, Path("rows.csv"))
        write(data.new, Path("new.csv"))
        yield Path(folder)


def options_of(name: str) -> list[str]:
    """The options of a command that learns a table."""
    data = TABLES[name]()
    said = [f"--{role}={column}" for role, column in data.columns.items()]
    for option, value in data.options.items():
        said += [f"--{option}={one}" for one in ([value] if isinstance(value, str) else value)]
    return [*said, f"--task={data.task}"]


def dialogue(name: str, *commands: str) -> dict[str, Any]:
    """What commands print after the training of a table; they are told to write files named ``out.*``."""
    with folder_of(name) as folder:
        told = {"train": command("train", "rows.csv", "-o", "m", *options_of(name))}
        for line in commands:
            told[line] = command(*line.split())
        files = {path.name: path for path in sorted(folder.glob("out.*"))}
        return told | {part: value for file in files.values() for part, value in _of_file(file).items()}


def _of_file(path: Path) -> dict[str, Any]:
    if path.suffix == ".html":
        text = re.sub(r"(?s)<(style|script|svg)\b.*?</\1>", "", path.read_text())
        return {path.name: normalised(re.sub(r"\s*\n\s*", "\n", re.sub(r"<[^>]*>", "\n", text)))}
    table = csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    return {f"{path.name} {name}": np.array(table[name].to_pylist()) for name in table.column_names}


def environment() -> dict[str, str]:
    """Variables of another process, which imports the package that is imported here."""
    places = [str(Path(tunefree.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tunefree", *arguments]
    return subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def killed(save: str, until: int) -> dict[str, Any]:
    """A training that is killed after its first checkpoints, and resumed."""
    from tests.golden.data import stream

    X, y, new = stream()
    table = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y})
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write(table, Path("rows.csv"))
        arguments = ["train", "rows.csv", "-t", "y", "-q", "-o", "m", f"--save-every={save}", "--resume"]
        process, checkpoint, limit = started(*arguments), Path("m.checkpoint"), time.monotonic() + LIMIT
        seen: set[int] = set()
        while process.poll() is None and len(seen) < until and time.monotonic() < limit:
            if checkpoint.exists():
                seen.add(checkpoint.stat().st_mtime_ns)
            time.sleep(0.002)
        process.kill()
        process.communicate()
        command(*arguments)
        return results(tunefree.load("m"), pa.table({f"x{j}": new[:, j] for j in range(new.shape[1])}))


@contextmanager
def served(*arguments: str) -> Iterator[Any]:
    """A server of a model in a process of its own; yields a function that asks it."""
    process = started("serve", *arguments, "--port=0")
    assert process.stderr is not None
    log = (json.loads(line) for line in process.stderr)
    port = int(next(line["address"] for line in log if line["event"] == "started").rpartition(":")[2])

    def ask(method: str, path: str, body: Any = None) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        connection.request(method, path, json.dumps(body, default=str), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = f"{answer.status} {answer.read().decode()}"
        connection.close()
        return normalised(text)

    try:
        yield ask
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)


def rows_of(table: pa.Table, start: int = 0, n: int | None = None) -> list[dict[str, Any]]:
    """Rows as dictionaries without missing values."""
    return [{k: v for k, v in row.items() if v is not None} for row in table.slice(start, n).to_pylist()]


@cache
def cluster() -> Any:
    """A client of two workers in threads of this process."""
    import distributed

    warnings.filterwarnings("ignore", module="distributed")
    workers = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
    )
    return distributed.Client(workers)
