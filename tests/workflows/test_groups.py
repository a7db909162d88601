"""Rows of one group: read but not learned, handed over together, kept together over checkpoints."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.interruptions import resumed
from tests.workflows.test_training import model_bytes, people
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.plan import Plan
from tunefree.pool.model import Model
from tunefree.pool.pool import Pool
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.stream.tables import read_tables
from tunefree.training import batches
from tunefree.training.training import learn_more, train
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.findings import findings, of_order
from tunefree.workflows.prediction import predict

PLAN = Plan(target="rich", ignore=("pay",), groups="home")
N = 600


def homes(n=N, of_each=7, seed=0):
    return people(n, seed) | {"home": [f"h{row // of_each}" for row in range(n)]}


@pytest.fixture
def handed(monkeypatch):
    """The groups of the rows of each call of ``learn``."""
    calls, learn = [], Model.learn

    def spied(self, X, y, weight, evaluation_weight=None, **of_rows):
        calls.append(of_rows["groups"].tolist() if "groups" in of_rows else None)
        return learn(self, X, y, weight, evaluation_weight, **of_rows)

    monkeypatch.setattr(Model, "learn", spied)
    return calls


def blocks(monkeypatch, size):
    """Sources are read in chunks of so many bytes of text, or so many rows."""
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", size // 20)
    monkeypatch.setattr("tunefree.stream.tables.read_tables", partial(read_tables, block_size=size))


@pytest.mark.parametrize("change", [{}, {"holdout": 0.1}, {"class_weight": {"no": 0.0}}, {"on_bad_row": "skip"}])
def test_a_model_does_not_depend_on_where_batches_are_cut(tmp_path, monkeypatch, change):
    rng = np.random.default_rng(0)
    table = people(1500, 1) | {"home": np.repeat(rng.permutation(1500), rng.integers(1, 4, 1500))[:1500].tolist()}
    table["rich"] = [label if row != 1100 else "perhaps" for row, label in enumerate(table["rich"])]  # within a run
    table["home"] = ["h"] * 40 + [f"h{home}" if row % 97 else "" for row, home in enumerate(table["home"])][40:]
    if "on_bad_row" not in change:
        table["home"] = [home or "none" for home in table["home"]]
    csv.write_csv(pa.table(table), tmp_path / "homes.csv")
    made, plan = [], replace(PLAN, **change)
    for size in (30_000, 17_000, 9_000):  # of which the first does not have the third class
        blocks(monkeypatch, size)
        made.append(model_bytes(train(open_source(str(tmp_path / "homes.csv")), plan), tmp_path / "m"))
    assert made[0] == made[1] == made[2]


def test_runs_end_after_many_rows_wherever_batches_are_cut(tmp_path, monkeypatch, handed):
    monkeypatch.setattr(batches, "MOST_OF_RUN", 50)
    csv.write_csv(pa.table(homes() | {"home": ["h0"] * 5 + ["h1"] * 400 + ["h2"] * 195}), tmp_path / "homes.csv")
    made = []
    for size in (1 << 21, 9_000):
        blocks(monkeypatch, size)
        made.append(model_bytes(train(open_source(str(tmp_path / "homes.csv")), PLAN), tmp_path / "m"))
    assert made[0] == made[1] and max(map(len, handed)) > 50


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_runs_are_handed_over_whole_and_not_learned(tmp_path, monkeypatch, handed, suffix):
    blocks(monkeypatch, 2000)
    path = tmp_path / f"homes.{suffix}"
    write = csv.write_csv if suffix == "csv" else partial(parquet.write_table, row_group_size=100)
    write(pa.table(homes()), path)
    trained = train(open_source(str(path)), PLAN)
    assert len(handed) > 3
    of_rows = [group for call in handed for group in call]
    assert len(of_rows) == N and len(set(of_rows)) == len(set(homes()["home"]))
    assert not any({*one} & {*other} for place, one in enumerate(handed) for other in handed[:place])
    assert not any("home" in name for name in trained.encoder.names())
    unknown = {name: values for name, values in homes().items() if name != "home"}
    assert sum(len(part.predictions) for part in predict(trained, open_source(unknown), BadRows())) == N
    assert evaluate(trained, open_source(unknown), BadRows()).metrics.rows == N


def test_a_resumed_model_is_the_same_to_the_byte(tmp_path, monkeypatch):
    blocks(monkeypatch, 2000)
    csv.write_csv(pa.table(homes(of_each=90)), tmp_path / "homes.csv")
    source = open_source(str(tmp_path / "homes.csv"))
    whole = model_bytes(train(source, PLAN), tmp_path / "whole")

    trained, held = resumed(source, PLAN, tmp_path / "kept", 150)
    assert len(held) > 1 and any(rows is not None for rows in held)
    assert model_bytes(trained, tmp_path / "resumed") == whole


def test_a_model_goes_on_with_further_groups(handed):
    trained = train(open_source(homes()), PLAN)
    more = learn_more(trained, open_source(homes(60, 60)))  # one single group
    assert more.progress.first_rows == N + 60 and len(set(handed[-1])) == 1


BAD = [
    ({"home": ["h1"] * N}, PLAN, "column 'home': all rows are of one group, 'h1'; name a column of several groups"),
    ({"home": [None, *homes()["home"][1:]]}, PLAN, "row 1, column 'home': the group is missing"),
    ({}, replace(PLAN, groups="hom"), "there is no group column 'hom'; did you mean 'home'"),
    ({"home": [[1]] * N}, PLAN, "column 'home': groups cannot be of type list"),
]


@pytest.mark.parametrize(("change", "plan", "problem"), BAD, ids=[problem for _, _, problem in BAD])
def test_groups_that_cannot_be_used(change, plan, problem):
    with pytest.raises(DataError, match=problem):
        train(open_source(homes() | change), plan)


def test_one_group_is_noticed_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(batches, "MOST_OF_RUN", 500)
    with pytest.raises(DataError, match="the first 500 rows are of one group"):
        train(open_source(homes() | {"home": ["h1"] * N}), PLAN)


def test_text_without_columns_has_no_groups(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    with pytest.raises(DataError, match="svmlight text has no columns to name a group; leave `groups` out"):
        train(open_source(str(tmp_path / "rows.svm")), Plan(groups="home"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"learner": "scinol2"}, "`groups` is for the pool"),
        ({"shuffle": True}, "`groups` keeps the rows of a group together, and `shuffle` parts them"),
        ({"target": "home"}, "`target` and `groups` name the same column, 'home'"),
    ],
)
def test_plans_in_which_groups_have_no_effect(options, problem):
    with pytest.raises(ModelError, match=problem):
        replace(PLAN, **options)


def test_groups_that_come_again_and_known_rows_are_reported(monkeypatch):
    monkeypatch.setattr(Pool, "known_rows", (70, 600))
    monkeypatch.setattr(Pool, "known_share", 70 / 600)
    told = findings(train(open_source(homes()), PLAN))
    assert "70 of 600 rows are of groups that came before; sort the rows by home" in map(str, told)
    told = findings(train(open_source(homes()), replace(PLAN, groups=None, ignore=("home", "pay"))))
    assert re.search(
        "12% of the latest rows have the columns of earlier ones; .* by `groups`", " ".join(map(str, told))
    )


def test_rows_that_depend_on_their_order_are_not_advised_to_be_shuffled_where_groups_are():
    labels = np.repeat(np.random.default_rng(0).integers(0, 2, 100), 12)
    table = pa.table({"x": np.arange(1200.0), "group": np.repeat(np.arange(100), 12), "y": labels})
    plain, grouped = (
        of_order(train(open_source(table), plan))[0].evidence for plan in (Plan("y"), Plan("y", groups="group"))
    )
    assert "`shuffle=True`" in plain
    assert "next group" in grouped and "shuffle" not in grouped
