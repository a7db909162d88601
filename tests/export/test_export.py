"""A file of ONNX predicts in ONNX Runtime what the model predicts."""

import os
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

import tunefree
from tests.frames import mixed_frame, strange_frame
from tests.stream.tabular import chunk_of
from tunefree import ModelError, OnlineClassifier, OnlineRegressor, TuneFreeClassifier, TuneFreeRegressor
from tunefree.stream.batch import BadRows

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore::tunefree.DataWarning")

NEAR = 1e-5
X, NEW = mixed_frame(400, 0), strange_frame(60)
SCORE = np.nan_to_num(X["x"]) + 1.5 * (X["letter"] == "a") - (X["z"] > 25) + X["town"].str.len() / 4
NOISY = (SCORE + np.random.default_rng(2).logistic(size=len(X))).to_numpy()
YES, THREE = np.where(NOISY > 0.5, "yes", "no"), np.digitize(-NOISY, [-1, 0])
EXPOSURE = np.linspace(0.5, 2.0, len(X))
COUNTS = np.random.default_rng(3).poisson(np.exp(0.3 * SCORE) * EXPOSURE)
MODELS = {
    "two classes": lambda: TuneFreeClassifier().fit(X, YES),
    "three classes": lambda: TuneFreeClassifier().fit(X, THREE),
    "numbers": lambda: TuneFreeRegressor().fit(X, 1e3 * NOISY + 1e6),
    "counts": lambda: TuneFreeRegressor(loss="poisson").fit(X, COUNTS, exposure=EXPOSURE),
    "nothing missing": lambda: TuneFreeClassifier().fit(X.assign(x=X["x"].fillna(0.0) + 5.0, letter="a"), YES),
    "goes on": lambda: TuneFreeClassifier().fit(X[:300], YES[:300]).partial_fit(X[300:], YES[300:]),
    "numbers go on": lambda: TuneFreeRegressor().partial_fit(X, 1e3 * NOISY + 1e6),
    "monotone": lambda: TuneFreeClassifier(monotone={"x": 1, "z": -1}).fit(X, YES),
    "groups": lambda: TuneFreeClassifier().fit(X, YES, groups=np.arange(len(X)) // 3),
    "groups return": lambda: TuneFreeClassifier(shuffle=False).fit(X, YES, groups=np.arange(len(X)) % 90),
    "linear": lambda: OnlineClassifier("scinol2").fit(X.replace({"letter": {"a": "unknown"}}), THREE),
    "average": lambda: OnlineClassifier("scinol2", average=True).fit(X, YES),
    "calibrated": lambda: OnlineClassifier("nag", loss="hinge", view="steady").fit(X, THREE),
    "steady": lambda: OnlineRegressor("scinol2", view="steady").fit(X, NOISY),
}


FEW, FEW_YES = X[:60], YES[:60]


@cache
def model_of(name):
    """A model that tests share, and do not change."""
    return MODELS[name]()


@pytest.fixture
def session_of(tmp_path):
    def session(model, path=tmp_path / "exported.onnx"):
        with warnings.catch_warnings(action="ignore", category=tunefree.DataWarning):
            model.export(path)
        onnx.checker.check_model(path, full_check=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    return session


def inputs_of(session, rows):
    """The columns of a frame as inputs, in an order of their own."""
    return {
        column.name: rows[column.name].to_numpy(float)[:, None]
        if column.type == "tensor(double)"
        else np.array([["" if pd.isna(value) else str(value)] for value in rows[column.name]], object).reshape(-1, 1)
        for column in reversed(session.get_inputs())
    }


def check_same(session, model, rows, **options):
    """Compare labels and probabilities, or numbers, of rows of the kind that the file is for."""
    inputs = inputs_of(session, rows.assign(**options))
    are_same = contexts_of(model, rows)
    assert are_same.sum() > len(rows) / 2
    if hasattr(model, "classes_"):
        label, probabilities = session.run(None, inputs)
        expected = model.predict_proba(rows)[are_same]
        np.testing.assert_allclose(probabilities[are_same], expected, rtol=0, atol=NEAR)
        assert (label.astype(str) == model.predict(rows).astype(str))[are_same].all()
    else:
        (numbers,) = session.run(None, inputs)
        expected = model.predict(rows, **options)[are_same]
        spread = np.median(np.abs(expected - np.median(expected)))
        np.testing.assert_allclose(numbers[are_same, 0], expected, rtol=1e-9, atol=NEAR * spread)


def contexts_of(model, rows):
    """Whether rows are known or new as those are that the file is for."""
    trained = model.trained_
    pool = trained.model.pool
    if pool is None:
        return np.ones(len(rows), bool)
    chunk = chunk_of(pa.RecordBatch.from_pandas(rows, preserve_index=False))
    block = trained.encoder.encode(chunk, False, BadRows()).rows
    return pool.recognised(block, pool.members.matrix(block))[1] == pool.contexts.index(pool.context)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_predicts_like_the_model(name, session_of, tmp_path):
    model = model_of(name)
    options = {"exposure": np.linspace(0.5, 3.0, len(NEW))} if name == "counts" else {}
    check_same(session_of(model), model, NEW, **options)
    if isinstance(model, (TuneFreeClassifier, TuneFreeRegressor)):
        model.save(tmp_path / "small.model", only_for_prediction=True)
        small = tunefree.load(tmp_path / "small.model")
        check_same(session_of(small), small, NEW, **options)
        assert (tmp_path / "exported.onnx").stat().st_size < 1.5 * (tmp_path / "small.model").stat().st_size


def test_columns_of_any_name_and_number(session_of):
    for columns in (["x"], ["letter"], ["town", "flag"]):
        model = TuneFreeClassifier().fit(X[columns], YES)
        check_same(session_of(model), model, NEW[columns])
    names = {"x": "label", "letter": "probabilities", "z": "12", "town": "é\"'"}
    model = TuneFreeClassifier().fit(X.rename(columns=names), YES)
    session = session_of(model)
    assert [output.name for output in session.get_outputs()] == ["label_", "probabilities_"]
    check_same(session, model, NEW.rename(columns=names))


def test_batches_of_any_size(session_of):
    session = session_of(model_of("two classes"))
    assert [output.shape for output in session.run(None, inputs_of(session, NEW[:0]))] == [(0,), (0, 2)]
    together, alone = (session.run(None, inputs_of(session, NEW[:n]))[1] for n in (2, 1))
    np.testing.assert_allclose(together[:1], alone, rtol=1e-12)


def test_texts_of_a_file_stand_for_missing_values_as_in_training(session_of, tmp_path):
    rows = X.assign(income=YES, flag=np.where(X["flag"], "Yes", "no"), letter=X["letter"].fillna("n/a"))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = tunefree.train(tmp_path / "rows.csv", target="income", na_values=("gone",))
    for missing in ("NULL", "gone"):
        new = NEW.assign(flag=np.where(NEW["flag"], "YES", "no"), letter=NEW["letter"].fillna(missing))
        check_same(session_of(model), model, new)


def test_rows_that_were_learned_are_told(tmp_path):
    many = pd.concat([X[["x", "letter"]]] * 2)
    model = TuneFreeClassifier(shuffle=False).fit(many, np.tile(YES, 2))
    with pytest.warns(tunefree.DataWarning, match="predicts all rows as known ones") as told:
        model.export(tmp_path / "known.onnx")
    assert "without white space around them" in onnx.load(tmp_path / "known.onnx").doc_string
    properties = {entry.key: entry.value for entry in onnx.load(tmp_path / "known.onnx").metadata_props}
    assert properties == {"tunefree": tunefree.__version__, "note 1": str(told[0].message)}


def test_rows_that_were_learned_are_told_where_none_came_twice(session_of, tmp_path):
    model = model_of("two classes")
    note = "as new ones; predictions of the model differ for rows learned before$"
    with pytest.warns(tunefree.DataWarning, match=note):
        model.export(tmp_path / "new.onnx")
    session = session_of(model)
    _, probabilities = session.run(None, inputs_of(session, X[:50]))
    assert np.abs(probabilities - model.predict_proba(X[:50])).max() > NEAR
    with warnings.catch_warnings(action="error"):
        TuneFreeClassifier(monotone={"x": 1}).fit(X, YES).export(tmp_path / "monotone.onnx")


REFUSED = {
    "'day' holds dates, which are not exported; leave it out, or train on numbers": lambda: TuneFreeClassifier().fit(
        FEW.assign(day=pd.Timestamp("2026-11-27")), FEW_YES
    ),
    "'said' holds texts": lambda: TuneFreeClassifier(text=["said"]).fit(FEW.assign(said="some words"), FEW_YES),
    "'tags' holds lists of words": lambda: TuneFreeClassifier().fit(FEW.assign(tags=[["a", "b"]] * 60), FEW_YES),
    "models of sparse matrices or svmlight text": lambda: TuneFreeClassifier().fit(
        scipy.sparse.csr_matrix(FEW[["z"]].to_numpy(float)), FEW_YES
    ),
    "learner 'kernel-pistol'": lambda: OnlineClassifier("kernel-pistol").fit(FEW[["z"]], FEW_YES),
    "hashed categories": lambda: tunefree.train(FEW.assign(y=FEW_YES), target="y", learner="nag", hash_bits=8),
    "a class came after": lambda: TuneFreeClassifier().partial_fit(FEW, FEW_YES).partial_fit(FEW[:9], ["perhaps"] * 9),
    "a model of one class": lambda: TuneFreeClassifier().partial_fit(FEW, ["yes"] * 60),
    "a column has no name": lambda: TuneFreeClassifier().fit(FEW.rename(columns={"x": ""}), FEW_YES),
    "has no number before row 61, which is not exported": lambda: (
        OnlineRegressor().partial_fit(FEW[["z"]], NOISY[:60]).partial_fit(FEW, NOISY[:60])
    ),
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_is_not_exported_is_one_clear_error(problem, tmp_path):
    with pytest.raises(ModelError, match=problem):
        REFUSED[problem]().export(tmp_path / "refused.onnx")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_the_same_file_for_any_seed_of_hashes(done, tmp_path):
    model = model_of("two classes")
    model.save(tmp_path / "people.model")
    model.export(tmp_path / "python.onnx")
    command = [sys.executable, "-m", "tunefree", "export", "people.model", "-o", "people.onnx"]
    seed = str(hash("views") % 2**32)  # another one than here, so that views in a set have another order
    options = {"cwd": tmp_path, "capture_output": True, "env": os.environ | {"PYTHONHASHSEED": seed}}
    ended = subprocess.run(command, check=True, text=True, **options)
    assert ended.stdout == "" and f"{(tmp_path / 'people.onnx').stat().st_size:,} bytes" in ended.stderr
    assert (tmp_path / "people.onnx").read_bytes() == (tmp_path / "python.onnx").read_bytes()
    _, err = done("export", tmp_path / "people.model", "-o", tmp_path / "people.model", status=2)
    assert "name another output" in err


@pytest.mark.slow
def test_a_model_of_the_census_is_small(session_of, tmp_path):
    census = Path(tunefree.__file__).parent / "data" / "adult.parquet"
    tunefree.train(census, target="income", ignore=["split"]).save(tmp_path / "small.model", only_for_prediction=True)
    session_of(tunefree.load(tmp_path / "small.model"))
    assert (tmp_path / "exported.onnx").stat().st_size < 1.5 * (tmp_path / "small.model").stat().st_size


def test_without_onnx_the_extra_is_named(monkeypatch, tmp_path):
    model = model_of("linear")
    for name in [name for name in sys.modules if name.startswith("tunefree.export")]:
        monkeypatch.delitem(sys.modules, name)
    missing = {"tunefree.export.graph": (ModuleNotFoundError, "graph"), "onnx": (ModelError, r"tunefree\[onnx\]")}
    for module, (kind, message) in missing.items():
        with monkeypatch.context() as here:
            here.setitem(sys.modules, module, None)
            with pytest.raises(kind, match=message):
                model.export(tmp_path / "model.onnx")
