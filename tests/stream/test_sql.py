"""Rows of a query: SQLite through ADBC, and sources that fail on the way."""

from contextlib import closing

import adbc_driver_sqlite.dbapi as sqlite
import numpy as np
import pyarrow as pa
import pytest

import tunefree
from tunefree.core.errors import DataError

ROWS = 3000
QUERY = "SELECT * FROM people"


@pytest.fixture
def cursor(tmp_path):
    ages = np.random.default_rng(0).integers(18, 80, ROWS)
    people = {"age": ages, "job": np.where(ages % 3, "cook", "clerk"), "rich": np.where(ages > 45, "yes", "no")}
    with closing(sqlite.connect(str(tmp_path / "people.db"))) as connection, closing(connection.cursor()) as found:
        found.adbc_ingest("people", pa.table(people))
        yield found


def rows(cursor, query=QUERY):
    cursor.execute(query)
    return cursor.fetch_record_batch()


def test_a_model_learns_the_rows_of_a_query_and_predicts_others(cursor):
    model = tunefree.train(rows(cursor), target="rich", learner="scinol2")
    assert model.trained_.progress.progressive[0].rows == ROWS
    test = rows(cursor, "SELECT age, job FROM people LIMIT 50")
    assert model.predict(test).tolist() == model.predict(rows(cursor).read_all().slice(0, 50)).tolist()
    fitted = tunefree.ScInOLClassifier().fit(rows(cursor, "SELECT age, job FROM people LIMIT 200"), [0, 1] * 100)
    assert fitted.n_features_in_ == 2


def test_an_error_of_the_database_on_the_way_names_the_row_before(cursor):
    cursor.execute("INSERT INTO people VALUES ('unknown', 'cook', 'no')")
    with pytest.raises(DataError, match=r"the table: its source failed after row 2,\d{3} \(.*SQLite.*; correct"):
        tunefree.train(rows(cursor), target="rich", learner="scinol2")


@pytest.mark.parametrize("error", [RuntimeError("connection lost\nat line 1"), pa.ArrowInvalid("connection lost")])
@pytest.mark.parametrize("good", [0, 2])
def test_whatever_a_source_raises_becomes_one_error(error, good):
    def batches():
        for _ in range(good):
            yield pa.record_batch({"age": [39, 50], "rich": ["no", "yes"]})
        raise error

    stream = pa.RecordBatchReader.from_batches(pa.schema({"age": pa.int64(), "rich": pa.string()}), batches())
    with pytest.raises(DataError, match=f"its source failed after row {2 * good} .*connection lost") as caught:
        tunefree.train(stream, target="rich", learner="scinol2")
    assert "at line 1" not in str(caught.value)
