"""Model files predict without Arrow, scikit-learn and all else but NumPy and llvmlite, to the bit as elsewhere."""

import json
import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import tunefree
from tests.frames import mixed_frame, strange_frame
from tunefree import DataError, ModelError, OnlineClassifier, TuneFreeClassifier, TuneFreeRegressor
from tunefree.prediction import load
from tunefree.stream.plain import PlainEncoder

pytestmark = pytest.mark.filterwarnings("ignore::tunefree.DataWarning")

ALONE = """
import json, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "llvmlite", "tunefree"}:
            raise ModuleNotFoundError(name + " is refused", name=name)

sys.meta_path.insert(0, Refusing())
from tunefree.prediction import load

model = load(sys.argv[1])
rows = json.load(open(sys.argv[2]))
columns = {name: [row[name] for row in rows] for name in rows[0]}
print(json.dumps([model.predict_proba(rows).tolist(), model.predict(columns).tolist(), model.classes_.tolist()]))
"""


def plain(rows):
    """A frame as a list of rows of plain values."""
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


X, NEW = mixed_frame(400, 0), strange_frame(60)
SCORE = np.nan_to_num(X["x"]) + (X["letter"] == "a") + np.random.default_rng(2).logistic(size=len(X))
MODELS = {
    "two": lambda: TuneFreeClassifier().fit(X, np.where(SCORE > 0, 2, 10)),
    "three": lambda: TuneFreeClassifier().fit(X, np.digitize(-SCORE, [-1, 0])),
    "nothing missing": lambda: TuneFreeClassifier().fit(X.fillna({"x": 0.5, "letter": "a"}), SCORE > 0),
    "numbers": lambda: TuneFreeRegressor().fit(X, SCORE),
    "linear": lambda: OnlineClassifier("scinol2", loss="hinge").fit(X, np.where(SCORE > 0, "yes", "no")),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_equal_the_estimator_to_the_bit(name, tmp_path):
    MODELS[name]().save(tmp_path / "a.model", only_for_prediction=name != "linear")
    expected, predictor = tunefree.load(tmp_path / "a.model"), load(tmp_path / "a.model")
    rows = plain(NEW)
    assert (predictor.predict(rows) == expected.predict(NEW)).all()
    if name != "numbers":
        assert predictor.classes_.tolist() == expected.classes_.tolist()
        np.testing.assert_array_equal(predictor.predict_proba(rows), expected.predict_proba(NEW))
        np.testing.assert_array_equal(predictor.predict_proba(rows[:1]), expected.predict_proba(NEW[:1]))
        assert predictor.predict_proba([]).shape == (0, len(expected.classes_))


def test_exposures_and_texts_of_a_file(tmp_path):
    exposure, counts = np.linspace(0.5, 2.0, len(X)), np.random.default_rng(3).poisson(np.exp(SCORE / 4))
    TuneFreeRegressor(loss="poisson").fit(X, counts, exposure=exposure).save(tmp_path / "counts.model")
    expected = tunefree.load(tmp_path / "counts.model").predict(NEW, exposure=exposure[: len(NEW)])
    assert (load(tmp_path / "counts.model").predict(plain(NEW), exposure[: len(NEW)]) == expected).all()
    for wrong in ([1.0], np.zeros(len(NEW)), np.full(len(NEW), np.inf)):
        with pytest.raises(DataError, match="exposures are not one finite number above 0 for each row"):
            load(tmp_path / "counts.model").predict(plain(NEW), wrong)
    with pytest.raises(AttributeError, match="a model of numbers has no probabilities"):
        load(tmp_path / "counts.model").predict_proba(plain(NEW))
    rows = X.assign(y=SCORE > 0, letter=X["letter"].fillna("n/a"), flag=np.where(X["flag"], "Yes", "no"))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = tunefree.train(tmp_path / "rows.csv", target="y")
    model.save(tmp_path / "text.model")
    new = NEW.assign(letter=NEW["letter"].fillna("NULL"), flag="YES")
    assert (load(tmp_path / "text.model").predict_proba(plain(new)) == model.predict_proba(new)).all()


VALUES = {  # that are read alike, or refused
    "x": [1.5, "1.5", " 1e3 ", "", "NA", "1_000", "\uff11", "nan", "NAN", None, True, np.float32(0.1), "0x10"],
    "price": [1234.5, "1.234", "1.234,50", None, "", 7, 10**400],
    "code": [1, "1", 1.0, np.float64(2.0), 2.5, 1e10, 1e-7, -0.0, np.int8(3), "01", True, None, b"1", pd.NA],
    "word": ["a", " a", "A", 1, 1.0, True, None, float("nan"), "NA", "new", b"a"],
}


def test_values_are_read_as_by_arrow_or_refused(tmp_path):
    random = np.random.default_rng(0)
    prices = [f"{k // 1000}.{k % 1000:03d},{k % 97:02d}" for k in random.integers(1000, 9999, 300)]
    columns = {"x": random.normal(size=300), "price": prices, "code": random.integers(0, 5, 300)}
    rows = pd.DataFrame(columns | {"word": random.choice(list("abc"), 300)})
    rows["y"] = rows["x"] + rows["code"] + (rows["price"] > "5") > 2
    rows.to_csv(tmp_path / "rows.csv", index=False, sep=";")
    tunefree.train(tmp_path / "rows.csv", target="y", categorical=["code"]).save(tmp_path / "a.model")
    expected, predictor = tunefree.load(tmp_path / "a.model"), load(tmp_path / "a.model")
    usual, refused = {"x": 0.5, "price": 2000.0, "code": 1, "word": "b"}, list[tuple[str, str]]()
    for name, values in VALUES.items():
        for value in values:
            row = usual | {name: value}
            try:
                probabilities = predictor.predict_proba([row])
            except DataError as error:
                assert value is not None and not (isinstance(value, float) and math.isnan(value))
                refused.append((f"row 1, column {name!r}", str(error)))
                continue
            frame = {column: [one] for column, one in row.items()}
            assert (probabilities == expected.predict_proba(frame)).all(), (name, value)
    assert 10 <= len(refused) <= 20 and all(place in error for place, error in refused)


def test_arrays(tmp_path):
    array, new = X[["x", "z"]].to_numpy(float), NEW[["x", "z"]].to_numpy(float)
    model = TuneFreeClassifier().fit(array, SCORE > 0)
    model.save(tmp_path / "array.model")
    assert (load(tmp_path / "array.model").predict_proba(new) == model.predict_proba(new)).all()


def test_numpy_and_llvmlite_are_enough(tmp_path):
    MODELS["two"]().save(tmp_path / "small.model", only_for_prediction=True)
    (tmp_path / "rows.json").write_text(json.dumps(plain(NEW)))
    command = [sys.executable, "-c", ALONE, tmp_path / "small.model", tmp_path / "rows.json"]
    source = os.path.dirname(os.path.dirname(tunefree.__file__))
    process = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": source})
    assert process.returncode == 0, process.stderr
    probabilities, labels, classes = json.loads(process.stdout)
    model = tunefree.load(tmp_path / "small.model")
    assert probabilities == model.predict_proba(NEW).tolist()
    assert labels == model.predict(NEW).tolist()
    assert classes == [2, 10]


def test_columns_that_came_later_may_be_missing(tmp_path):
    later = X.assign(colour=np.where(SCORE > 0, "red", "blue"))
    model = TuneFreeClassifier().partial_fit(X[:50], (SCORE > 0)[:50]).partial_fit(later[50:], (SCORE > 0)[50:])
    model.save(tmp_path / "late.model")
    predictor, new = load(tmp_path / "late.model"), NEW.assign(colour="red")
    assert (predictor.predict_proba(plain(NEW)) == model.predict_proba(NEW)).all()
    assert (predictor.predict_proba(plain(new)) == model.predict_proba(new)).all()
    model.partial_fit(later.assign(size=1.5), SCORE > 0).save(tmp_path / "number.model")
    with pytest.raises(ModelError, match="column 'size': .* numbers that came later need Arrow"):
        load(tmp_path / "number.model")


def test_columns_that_the_model_does_not_know_are_told(tmp_path):
    rows = X[["x", "z"]].assign(y=SCORE, name="a")
    tunefree.train(rows, target="y", ignore=["name"]).save(tmp_path / "a.model", only_for_prediction=True)
    predictor, row = load(tmp_path / "a.model"), {"x": 1.0, "z": 2, "y": 0.5, "name": "a"}
    with warnings.catch_warnings(action="error"):
        expected = predictor.predict([row])
    for strange in ([row | {"X": 1.0}], {name: [value] for name, value in row.items()} | {"X": [1.0]}):
        with pytest.warns(tunefree.DataWarning, match="the model does not know 'X': left out"):
            assert predictor.predict(strange) == expected


COLUMNS = [{"name": "x", "kind": "number"}]
OTHER_FORMS = [None, "abc", [[1.0, 2.0]], pd.DataFrame({"x": [1.0]}), {"x": 1.0, "z": 2}, {"x": "1"}]


def test_what_does_not_fit_is_one_clear_error(tmp_path):
    MODELS["two"]().save(tmp_path / "a.model")
    predictor, row = load(tmp_path / "a.model"), plain(NEW)[0]
    for rows, problem in [
        ([{"x": 1.0}], "column 'z': the column is missing"),
        ({name: [1, 2] if name == "x" else [1] for name in row}, "columns of 2 and of 1 values"),
        ([row, row | {"x": "old"}], "row 2, column 'x': 'old' is no finite number"),
        ([row | {"x": math.inf}], "row 1, column 'x': inf is no finite number"),
        ([row | {"letter": 3}], "row 1, column 'letter': 3 is a number"),
        ([row | {"flag": "perhaps"}], "row 1, column 'flag': 'perhaps' is neither true nor false"),
        (np.zeros((2, 3)), r"an array of shape \(2, 3\)"),
        *((rows, "pass a (dict of columns|list, also of one value)") for rows in OTHER_FORMS),
    ]:
        with pytest.raises(DataError, match=problem):
            predictor.predict(rows)
    TuneFreeClassifier().fit(X.assign(day=pd.Timestamp("2026-11-27")), SCORE > 0).save(tmp_path / "dates.model")
    (tmp_path / "rows.svm").write_text("0 1:2\n1 1:3\n" * 20)
    tunefree.train(tmp_path / "rows.svm").save(tmp_path / "lines.model")
    with pytest.raises(ModelError, match="lines of text and hashed features need Arrow"):
        load(tmp_path / "lines.model")
    with pytest.raises(ModelError, match="features of the encoder have not a column each"):
        PlainEncoder.restore({"keys": np.ones(1, np.uint64), "name_columns": np.zeros(0)}, {"columns": COLUMNS})
    with pytest.raises(ModelError, match=r"column 'day': texts, .* need Arrow; read the file by `tunefree.load`$"):
        load(tmp_path / "dates.model")
