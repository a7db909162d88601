"""Files of people, and models of them."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import tunefree
from tests.workflows.test_training import people


@pytest.fixture
def data(tmp_path):
    csv.write_csv(pa.table(people()).drop_columns("pay"), tmp_path / "people.csv")
    return tmp_path / "people.csv"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Files of people, models of them, and rows in other formats."""
    folder, random = tmp_path_factory.mktemp("compared"), np.random.default_rng(0)
    age, n = random.normal(40, 10, 500).round(1), 500
    job, who = random.choice(["cook", "clerk", ""], n), np.arange(n) // 2
    rich = np.where(random.random(n) < 1 / (1 + np.exp(-(age - 42) / 4 - (job == "clerk"))), ">50K", "<=50K")
    for name, rows in (("train", range(300)), ("test", range(300, n))):
        lines = [f"{age[i]},{job[i]},p{who[i]},{'abc'[i % 3]},{rich[i]}\n" for i in rows]
        (folder / f"{name}.csv").write_text("age,job,who,kind,rich\n" + "".join(lines))
    for name, options in (
        ("good", {"target": "rich", "ignore": ["who", "kind"]}),
        ("bad", {"target": "rich", "ignore": ["who", "kind", "age"]}),
        ("kind", {"target": "kind", "ignore": "who"}),
        ("age", {"target": "age", "ignore": "who"}),
    ):
        tunefree.train(str(folder / "train.csv"), learner="scinol2", **options).save(folder / f"{name}.model")
    parquet.write_table(csv.read_csv(folder / "train.csv"), folder / "train.parquet")
    (folder / "rows.jsonl").write_text('{"age": 1, "rich": "no"}\n{"age": 2, "rich": "yes"}\n' * 10)
    (folder / "rows.svm").write_text("1 1:2\n-1 2:3\n" * 20)
    tunefree.train(str(folder / "rows.svm"), learner="scinol2").save(folder / "svm.model")
    return folder


@pytest.fixture
def at(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return run
