"""Rows of one group: read but not learned, handed over together, kept together over checkpoints."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.interruptions import resumed
from tests.workflows.test_training import model_bytes, people
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.plan import Plan
from tunefree.pool.model import PoolModel
from tunefree.report.words import order_warning
from tunefree.stream import whole_groups
from tunefree.stream.batch import BadRows, Columns, Position
from tunefree.stream.source import open_source
from tunefree.stream.tables import read_tables
from tunefree.training.training import learn_more, train
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.prediction import predict

PLAN = Plan(target="rich", ignore=("pay",), group="home")
N = 600


def homes(n=N, of_each=7, seed=0):
    return people(n, seed) | {"home": [f"h{row // of_each}" for row in range(n)]}


@pytest.fixture
def handed(monkeypatch):
    """The groups of the rows of each call of ``learn``."""
    calls, learn = [], PoolModel.learn

    def spied(self, X, y, weight, evaluation_weight=None, groups=None):
        calls.append(None if groups is None else groups.tolist())
        return learn(self, X, y, weight, evaluation_weight, groups=groups)

    monkeypatch.setattr(PoolModel, "learn", spied)
    return calls


def chunk_of(names, row=1, file="visits"):
    return Columns(
        pa.record_batch({"g": pa.array(names, pa.string())}), file, row, Position(0, 0, row + len(names) - 1)
    )


@pytest.mark.parametrize("seed", range(20))
def test_chunks_end_where_runs_end_and_hold_all_rows_in_their_order(seed):
    rng = np.random.default_rng(seed)
    names = np.repeat(rng.choice(list("abc"), 30), rng.integers(1, 6, 30)).tolist()
    cuts = [0, *sorted(rng.choice(len(names), 8, replace=False).tolist()), len(names)]
    pieces = [chunk_of(names[a:b], a + 1) for a, b in zip(cuts, cuts[1:], strict=False) if b > a]
    got = list(whole_groups.whole_groups(iter(pieces), "g"))
    assert [name for chunk in got for name in chunk.table["g"].to_pylist()] == names
    ends = np.cumsum([chunk.table.num_rows for chunk in got])[:-1]
    runs = np.cumsum([len(list(run)) for _, run in groupby(names)])
    assert set(ends.tolist()) <= set(runs.tolist())
    numbers = [whole_groups.row_numbers(chunk).tolist() for chunk in got]
    assert [number for part in numbers for number in part] == list(range(1, len(names) + 1))


def test_rows_that_wait_are_restored():
    chunks = list(whole_groups.whole_groups(iter([chunk_of(["a", "b", None]), chunk_of([None, "c"], 4)]), "g"))
    restored = whole_groups.restored(*whole_groups.save_state(chunks[0].held))
    assert restored.table == chunks[0].held.table and restored[1:] == chunks[0].held[1:]


def test_runs_end_with_files_and_after_many_rows(monkeypatch):
    monkeypatch.setattr(whole_groups, "MOST", 5)
    several = [chunk_of(["a", "b"]), chunk_of(["b", "b"], 1, "others")]
    assert [len(c.table) for c in whole_groups.whole_groups(iter(several), "g")] == [1, 1, 2]
    long = [chunk_of(["a", "b", "b"]), chunk_of(["b"] * 4, 4), chunk_of(["b"], 8)]
    assert [len(c.table) for c in whole_groups.whole_groups(iter(long), "g")] == [1, 6, 1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_runs_are_handed_over_whole_and_not_learned(tmp_path, monkeypatch, handed, suffix):
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", 100)
    monkeypatch.setattr("tunefree.stream.tables.read_tables", partial(read_tables, block_size=2000))
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
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", 100)
    monkeypatch.setattr("tunefree.stream.tables.read_tables", partial(read_tables, block_size=2000))
    csv.write_csv(pa.table(homes(of_each=90)), tmp_path / "homes.csv")
    source = open_source(str(tmp_path / "homes.csv"))
    whole = model_bytes(train(source, PLAN), tmp_path / "whole")

    trained, saves = resumed(source, PLAN, tmp_path / "kept", 150)
    assert len(saves) > 1 and any(arguments[2] is not None for arguments in saves)
    assert model_bytes(trained, tmp_path / "resumed") == whole


def test_a_model_goes_on_with_further_groups(handed):
    trained = train(open_source(homes()), PLAN)
    more = learn_more(trained, open_source(homes(60, 60)))  # one single group
    assert more.progress.first_rows == N + 60 and len(set(handed[-1])) == 1


BAD = [
    ({"home": ["h1"] * N}, PLAN, "column 'home': all rows are of one group, 'h1'; name a column of several groups"),
    ({"home": [None, *homes()["home"][1:]]}, PLAN, "row 1, column 'home': the group is missing"),
    ({}, replace(PLAN, group="hom"), "there is no group column 'hom'; did you mean 'home'"),
    ({"home": [[1]] * N}, PLAN, "column 'home': groups cannot be of type list"),
]


@pytest.mark.parametrize(("change", "plan", "problem"), BAD, ids=[problem for _, _, problem in BAD])
def test_groups_that_cannot_be_used(change, plan, problem):
    with pytest.raises(DataError, match=problem):
        train(open_source(homes() | change), plan)


def test_one_group_is_noticed_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(whole_groups, "MOST", 500)
    with pytest.raises(DataError, match="the first 500 rows are of one group"):
        train(open_source(homes() | {"home": ["h1"] * N}), PLAN)


def test_text_without_columns_has_no_groups(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    with pytest.raises(DataError, match="svmlight text has no columns to name a group; leave `group` out"):
        train(open_source(str(tmp_path / "rows.svm")), Plan(group="home"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"learner": "scinol2"}, "`group` is for the pool"),
        ({"shuffle": True}, "`group` keeps the rows of a group together, and `shuffle` parts them"),
        ({"target": "home"}, "`target` and `group` name the same column, 'home'"),
    ],
)
def test_plans_in_which_groups_have_no_effect(options, problem):
    with pytest.raises(ModelError, match=problem):
        replace(PLAN, **options)


def test_groups_that_come_again_and_copies_are_told(monkeypatch):
    monkeypatch.setattr(PoolModel, "repeats", lambda self: (70, 600))
    with pytest.warns(UserWarning, match=r"70 of 600 rows are of groups that came before, .* sort the rows by home"):
        train(open_source(homes()), PLAN)
    with pytest.warns(UserWarning, match="70 of 600 rows repeat earlier ones and are no evidence; .* by `group`"):
        train(open_source(homes()), replace(PLAN, group=None, ignore=("home", "pay")))


def test_rows_that_depend_on_their_order_are_not_advised_to_be_shuffled_where_groups_are():
    labels = np.repeat(np.random.default_rng(0).integers(0, 2, 100), 12)
    table = pa.table({"x": np.arange(1200.0), "group": np.repeat(np.arange(100), 12), "y": labels})
    warnings = [order_warning(train(open_source(table), plan)) for plan in (Plan("y"), Plan("y", group="group"))]
    assert warnings[0] is not None and "`shuffle=True`" in warnings[0]
    assert warnings[1] is not None and "next group" in warnings[1] and "shuffle" not in warnings[1]
