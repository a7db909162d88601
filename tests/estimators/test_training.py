"""Model files in Python and back: what the command line trains, Python predicts, and the other way round."""

import numpy as np
import pandas as pd
import pytest
from pyarrow import csv
from scipy import sparse
from typer.testing import CliRunner

import tunefree
from tests.estimators.test_tables import arrow, people
from tunefree.cli.app import app
from tunefree.core.errors import DataError

SCINOL = {"learner": "scinol2"}


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def files(tmp_path):
    table, y = people()
    csv.write_csv(arrow(table.assign(label=y)), tmp_path / "people.csv")
    return tmp_path


def read(path):
    return pd.read_csv(path)


def test_a_model_of_the_command_line_predicts_in_python(files):
    table, y = people()
    command("train", files / "people.csv", "--target", "label", "--learner", "scinol2", "-o", files / "m", "-q")
    command("predict", files / "m", files / "people.csv", "-o", files / "p.csv")
    written, model = read(files / "p.csv"), tunefree.load(files / "m")
    assert model.classes_.tolist() == ["poor", "rich"]
    assert model.feature_names_in_.tolist() == list(table)
    frame = pd.read_csv(files / "people.csv")
    np.testing.assert_array_equal(model.predict(frame), written["prediction"])
    np.testing.assert_allclose(model.predict_proba(frame[list(table)[::-1]])[:, 1], written["probability[rich]"])
    np.testing.assert_array_equal(model.predict_log_proba(frame), np.log(model.predict_proba(frame)))
    with pytest.raises(DataError, match="column 'job' missing"):
        model.predict(frame.drop(columns="job"))
    with pytest.raises(DataError, match="fitted on a table, this is of type ndarray; pass a table with the"):
        model.predict(np.zeros((300, 7)))
    model.save(files / "again")
    command("predict", files / "again", files / "people.csv", "-o", files / "q.csv")
    assert (files / "q.csv").read_bytes() == (files / "p.csv").read_bytes()


def test_models_of_text_predict_its_lines(tmp_path):
    (tmp_path / "rows.vw").write_text("1 |f a b\n-1 |f c\n" * 20)
    model = tunefree.train(tmp_path / "rows.vw", **SCINOL)
    lines = ["|f a b", "1 'tag |f c new:2\n"]
    assert model.predict(lines).tolist() == [1, -1] and model.predict_proba(np.array(lines)).shape == (2, 2)
    (tmp_path / "rows.svm").write_text("1 1:2 3:1\n-1 2:1\n" * 20)
    numbered = tunefree.train(tmp_path / "rows.svm", **SCINOL)
    assert numbered.predict(["0 1:2 3:1", "0 2:1"]).tolist() == numbered.predict([[2, 0, 1], [0, 1, 0]]).tolist()
    wider = sparse.csr_array([[2.0, 0.0, 1.0, 7.0], [0.0, 1.0, 0.0, 0.0]])
    assert numbered.predict(wider).tolist() == [1, -1] and numbered.n_features_in_ == 3
    for more, rows in ((model, ["|f d e"] * 30), (numbered, sparse.csr_array([[0.0, 0.0, 0.0, 1.0]] * 30))):
        assert more.partial_fit(rows, [2] * 30).predict(rows).tolist() == [2] * 30
        more.save(tmp_path / "m")
        again = tunefree.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict_proba(rows), more.predict_proba(rows))
        assert again.n_features_in_ == more.n_features_in_ and again.classes_.tolist() == [-1, 1, 2]
    assert numbered.n_features_in_ == 4 and numbered.coef_.shape == (3, 4)
    with pytest.raises(DataError, match="the model reads lines of text; pass them as strings"):
        model.predict([[1.0]])
    for wrong in (["|f a", ""], ["|f a\n|f b"]):
        with pytest.raises(DataError, match="X, row [12]: each string must be one line of text"):
            model.predict(wrong)
