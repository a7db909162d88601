"""Model files that lie: small models of every kind, and changes of their headers and arrays with a right checksum."""

import copy
import hashlib
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.papers.kernel.contracts import frozen_after
from tunefree import IterativeRegularizationClassifier, ScInOLClassifier, load
from tunefree.core import storage
from tunefree.core.errors import TunefreeError
from tunefree.model_files import trained as model_files
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import train

N = 300
TABLE_PLANS = {
    "linear": {"learner": "scinol2"},
    "averaged": {"learner": "scinol2", "average": True, "hash_bits": 5},
    "steady": {"learner": "newton", "view": "steady"},
    "calibrated": {"learner": "scinol2", "loss": "hinge"},
    "pool": {},
    "prediction": {},
    "regression": {"task": "regression", "learner": "nag", "view": "steady"},
}
LINES = {
    "svmlight": "\n".join(f"{i % 3} {1 + i % 7}:{i / 7:.3f} {10 + i % 5}:1" for i in range(N)),
    "vw": "\n".join(f"{1 if i % 2 else -1} |f a:{i / 7:.3f} b{i % 7} |g c{i % 3}" for i in range(N)),
}
KINDS = (*TABLE_PLANS, *LINES, "array", "groups", "kernel", "path")


def columns() -> dict[str, Any]:
    """A table with a column of every kind."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    return {
        "x": x,
        "z": [None if i % 9 == 0 else float(i % 13) for i in range(N)],
        "c": [f"v{i % 5}" for i in range(N)],
        "t": [f"some words number {i % 40} here" for i in range(N)],
        "d": [f"2020-01-{1 + i % 28:02d}" for i in range(N)],
        "y": [i % 3 if a > 0 else 0 for i, a in enumerate(x)],
    }


@cache
def saved(kind: str, folder: str) -> tuple[dict[str, np.ndarray], dict[str, Any], Any]:
    """Arrays and header of a model file of a kind, and rows to predict."""
    file, data = Path(folder) / kind, columns()
    if kind in LINES:
        data = str(Path(folder) / f"rows.{'svm' if kind == 'svmlight' else 'vw'}")
        Path(data).write_text(LINES[kind])
        made = train(open_source(data), Plan(learner="scinol2", task="classification"))
    elif kind == "groups":
        data |= {"g": [i // 5 for i in range(N)]}
        made = train(open_source(data), Plan(target="y", task="classification", groups="g"))
    elif kind == "path":
        rows = {name: values for name, values in data.items() if name != "y"}
        made = IterativeRegularizationClassifier(max_iter=20).fit(rows, data["y"])
    elif kind == "array":
        data = {name: data["x"] * (1 + k) for k, name in enumerate(("x0", "x1"))} | {"y": data["y"]}
        estimator = ScInOLClassifier(passes=1, class_weight={0: 2.0})
        made = estimator.fit(np.column_stack([data["x0"], data["x1"]]), data["y"])
    elif kind == "kernel":
        data = {name: data[name] for name in ("x", "z", "y")}
        with frozen_after(200):
            made = train(open_source(data), Plan(target="y", learner="kernel-pistol"))
    else:
        made = train(open_source(data), Plan(**{"target": "y", "task": "classification", **TABLE_PLANS[kind]}))
    made.save(file, **{"only_for_prediction": True} if kind == "prediction" else {})
    arrays, header = storage.load(file)
    return arrays, header, data


def write(path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a header, which may hold NaN; nothing is checked but the checksum, which is right."""
    data = b"".join(storage._chunks_of_file(arrays, json.dumps(header)))
    path.write_bytes(data + hashlib.sha256(data).digest())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all values of a header."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, own in inner for place in places(own, (*path, name)))]


LIES = [
    None, True, -1, 0, 1, 2, 3, 2**31, 2**40, -(2**63), 10**400, 0.5, -0.5, 1e308, -1e308, float("nan"), float("inf"),
    "", "x", "table", "svmlight", "Sparse", "\ud800", [], [[]], {}, {"x": 1}, [0] * 2000,
]  # fmt: skip


def lie(arrays: dict[str, np.ndarray], header: dict[str, Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """A change or two of a header or an array."""
    arrays, header = dict(arrays), copy.deepcopy(header)
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.5:
            _lie_in_header(header, rng)
        else:
            name = sorted(arrays)[rng.integers(len(arrays))]
            changed = _changed(arrays[name], rng)
            arrays[name] = changed
            if changed is None:
                del arrays[name]
    return arrays, header


def _lie_in_header(header: dict[str, Any], rng: np.random.Generator) -> None:
    every = places(header)[1:]
    *path, last = every[rng.integers(len(every))]
    holder: Any = header
    for name in path:
        holder = holder[name]
    how, old = rng.integers(4), holder[last]
    if how == 0 and isinstance(holder, dict):
        del holder[last]
    elif how == 1 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[last] = old + int(rng.integers(-3, 4))
    elif how == 2 and isinstance(old, list) and old:
        holder[last] = old[:-1] if rng.random() < 0.5 else [*old, old[-1]]
    else:
        holder[last] = LIES[rng.integers(len(LIES))]


def _changed(array: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Another array in place of one; None for none."""
    array, how = array.copy(), rng.integers(8)
    if how == 0:
        return None
    if how == 1:
        return array.astype(rng.choice(["float32", "float64", "int64", "int32", "uint8", "bool"]))
    if how == 2:
        return array.reshape(-1) if array.ndim != 1 else array[None]
    if how == 3 and array.ndim:
        axis = int(rng.integers(array.ndim))
        return np.delete(array, -1, axis) if array.shape[axis] else array
    if how == 4 and array.ndim:
        return np.concatenate([array, array[-1:]])
    if array.size:
        extremes = [np.nan, np.inf, -1e308, 1e308] if array.dtype.kind == "f" else []
        extremes += [-1, 0, 1, 7, 2**31 - 1, -(2**31)] if array.dtype.kind != "u" else [0, 1, 127, 255]
        with warnings.catch_warnings(action="ignore"):
            value = np.array(extremes[rng.integers(len(extremes))]).astype(array.dtype)
        array.reshape(-1)[rng.integers(array.size)] = value
    return array


def outcome(path: Path, data: Any) -> str:
    """Load a model and predict with it: ``"refused"`` or ``"predicts"``; everything else is raised."""
    try:
        model, estimator = model_files.load(path), load(path)
    except TunefreeError as error:
        return "refused" if len(str(error)) < 2000 else "refused at length"
    source, encoder = open_source(data), model.encoder
    try:
        with warnings.catch_warnings(action="ignore"):
            for chunk in source.chunks(types=encoder.types() if hasattr(encoder, "types") else {}):
                model.model.predict(encoder.encode(chunk, False, BadRows(skip=True), False).rows)
            predicted_by(estimator, data)
    except TunefreeError:
        return "refused"
    return "predicts"


def predicted_by(estimator: Any, data: Any) -> Any:
    """What an estimator predicts of the rows in the form that it takes."""
    if isinstance(data, str):
        return estimator.predict(Path(data).read_text().splitlines())
    rows = {name: values for name, values in data.items() if name != "y"}
    is_of_arrays = estimator._encoder is None
    try:
        return estimator.predict(np.column_stack([*rows.values()]) if is_of_arrays else rows)
    except ValueError as error:  # scikit-learn's: of other columns, of no jobs
        raise TunefreeError(str(error)) from None
