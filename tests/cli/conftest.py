"""A file of people, whose classes are learned."""

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.workflows.test_training import people


@pytest.fixture
def data(tmp_path):
    csv.write_csv(pa.table(people()).drop_columns("pay"), tmp_path / "people.csv")
    return tmp_path / "people.csv"
