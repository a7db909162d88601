"""Rows of one group: read but not learned, handed over together, kept together over checkpoints."""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import tunefree
from tests.interruptions import assert_resumed
from tests.pool.rows import differences
from tests.workflows.test_training import model_bytes, people
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.report.guarantees import certificates
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.stream.tables import read_tables
from tunefree.training import one_pass
from tunefree.training.training import train
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.prediction import predict

PLAN = Plan(target="rich", ignore=("pay",), groups="home")
N = 400


def homes(n=N, of_each=7, seed=0):
    return people(n, seed) | {"home": [f"h{row // of_each}" for row in range(n)]}


def blocks(monkeypatch, size):
    """Sources are read in chunks of so many bytes of text, or so many rows."""
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", size // 20)
    monkeypatch.setattr("tunefree.stream.tables.read_tables", partial(read_tables, block_size=size))


@pytest.mark.parametrize(
    "change",
    [{"on_bad_row": "skip"}, {"class_weight": {"no": 0.0}}, pytest.param({}, marks=pytest.mark.slow)],
)
def test_a_model_does_not_depend_on_where_batches_are_cut(tmp_path, monkeypatch, change):
    rng = np.random.default_rng(0)
    table = people(300, 1) | {"home": np.repeat(rng.permutation(300), rng.integers(1, 4, 300))[:300].tolist()}
    table["rich"] = [label if row != 220 else "perhaps" for row, label in enumerate(table["rich"])]  # within a run
    named = [row % 47 and not 60 <= row < 200 for row in range(300)]  # the rest is more than a block of 2,000 bytes
    table["home"] = ["h"] * 20 + [f"h{home}" if named[row] else "" for row, home in enumerate(table["home"])][20:]
    if "on_bad_row" not in change:
        table["home"] = [home or "none" for home in table["home"]]
    csv.write_csv(pa.table(table), tmp_path / "homes.csv")
    made, plan = [], replace(PLAN, **change)
    for size in (6_000, 3_500, 2_000):  # of which the first does not have the third class
        blocks(monkeypatch, size)
        made.append(model_bytes(train(open_source(str(tmp_path / "homes.csv")), plan), tmp_path / "m"))
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_runs_are_handed_over_whole_and_not_learned(tmp_path, monkeypatch, learned_groups, suffix):
    blocks(monkeypatch, 2000)
    path = tmp_path / f"homes.{suffix}"
    write = csv.write_csv if suffix == "csv" else partial(parquet.write_table, row_group_size=100)
    write(pa.table(homes()), path)
    trained = train(open_source(str(path)), PLAN)
    assert len(learned_groups) > 3
    of_rows = np.concatenate(learned_groups).tolist()
    assert len(of_rows) == N and len(set(of_rows)) == len(set(homes()["home"]))
    assert not any({*one} & {*other} for one, other in combinations(learned_groups, 2))
    assert not any("home" in name for name in trained.encoder.names())
    unknown = {name: values for name, values in homes().items() if name != "home"}
    assert sum(len(part.predictions) for part in predict(trained, open_source(unknown), BadRows())) == N
    assert evaluate(trained, open_source(unknown), BadRows()).rows == N
    last = certificates(trained)[-1]
    assert last.tone == "warning" and "Rows of a group depend on each other" in last.text


def test_rows_that_wait_for_their_group_end_with_their_file(tmp_path):
    rows, models = pa.table(homes(280)), []
    for parts in ((280,), (70, 210)):
        for number, part in enumerate(parts):
            csv.write_csv(rows.slice(sum(parts[:number]), part), tmp_path / f"{number}.csv")
        trained = train(open_source([str(tmp_path / f"{number}.csv") for number in range(len(parts))]), PLAN)
        assert trained.progress.progressive[0].rows == 280 and trained.held is None
        models.append(trained.model)
    assert differences(*models) == []


def test_groups_that_come_again_are_told():
    scattered = homes() | {"home": [f"h{row % 50}" for row in range(N)]}
    with pytest.warns(UserWarning, match="350 of 400 rows are of groups that came before; sort the rows by home"):
        tunefree.train(scattered, target="rich", ignore="pay", groups="home")


def test_a_resumed_model_is_the_same_to_the_byte(tmp_path, monkeypatch):
    blocks(monkeypatch, 2000)
    csv.write_csv(pa.table(homes(of_each=90)), tmp_path / "homes.csv")
    _, held = assert_resumed(open_source(str(tmp_path / "homes.csv")), PLAN, tmp_path, 150)
    assert any(rows is not None for rows in held)


def test_one_group_is_noticed_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(one_pass, "MOST_OF_RUN", 300)
    with pytest.raises(DataError, match="the first 300 rows are of one group"):
        train(open_source(homes() | {"home": ["h1"] * N}), PLAN)
