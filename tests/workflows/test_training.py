"""From sources to models: tasks, classes along the stream, checkpoints."""

import math
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from tests.interruptions import assert_resumed
from tests.stream.tabular import write
from tunefree.core.errors import DataError, ModelError, TunefreeError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.source import open_source
from tunefree.stream.tables import read_tables
from tunefree.stream.text import read_lines
from tunefree.training.targets import labels_of
from tunefree.training.training import train


def people(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(18, 80, n).astype(float), rng.choice(["clerk", "cook", "pilot"], n)
    margin = (age - 45) / 10 + np.where(job == "pilot", 2.0, -1.0)
    rich = np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), "yes", "no")
    return {"age": age.tolist(), "job": job.tolist(), "rich": rich.tolist(), "pay": (1e5 * margin + 7e5).tolist()}


def model_bytes(trained, path):
    trained.save(path)
    return path.read_bytes()


def test_labels_keep_the_order_of_appearance_and_drop_labels_without_rows():
    labels = labels_of(pa.DictionaryArray.from_arrays(pa.array([2, 0, 2]), pa.array(["a", "b", "c"])))
    assert [labels.values[code] for code in labels.codes] == ["c", "a", "c"]
    assert set(labels.values) == {"a", "c"}
    assert labels_of(pa.array([2.0, 1.0])).values == [2, 1]
    twice = labels_of(pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "b", "a"])))
    assert (twice.values, twice.codes.tolist()) == (["a", "b"], [0, 1, 0])


def written(table, path):
    """The table in the format of the path's name."""
    if path.suffix in (".csv", ".jsonl", ".parquet"):
        write(path, table, **{"row_group_size": 500} if path.suffix == ".parquet" else {})
    else:
        bar = "|" if path.suffix == ".vw" else ""
        rows = enumerate(zip(*table.select(["rich", "age", "pay"]).to_pydict().values(), strict=True))
        lines = (f"{1 if rich == 'yes' else -1} {bar} {i % 999 + 9}:1 3:{age}\n" for i, (rich, age, _) in rows)
        path.write_text("".join(lines))
    return path


# Each format; the pool quickly with a table.
@pytest.mark.parametrize(
    ("suffix", "passes", "learner"),
    [
        ("parquet", 1, "scinol2"),
        ("parquet", 2, "nag"),
        ("csv", 1, "scinol2"),
        ("jsonl", 1, "scinol2"),
        ("vw", 2, "scinol2"),
        ("svm", 1, "scinol2"),
        ("parquet", 1, "pool"),
        *(pytest.param(suffix, 1, "pool", marks=pytest.mark.slow) for suffix in ("csv", "jsonl", "svm", "vw")),
    ],
)
def test_a_resumed_model_is_the_same_to_the_byte(tmp_path, monkeypatch, suffix, passes, learner):
    n = 600 if learner == "pool" else 3000
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", n // 12)
    monkeypatch.setattr("tunefree.stream.tables.read_tables", partial(read_tables, block_size=n * 2))
    monkeypatch.setattr("tunefree.stream.source.read_lines", partial(read_lines, block_size=n * 2))
    stream = written(pa.table(people(n)), tmp_path / f"people.{suffix}")
    named = {"target": "rich", "ignore": ("pay",)} if suffix not in ("vw", "svm") else {}
    single = {"learner": learner, "passes": passes, "average": learner == "scinol2"} if learner != "pool" else {}
    plan = Plan(**named, **single)
    _, saves = assert_resumed(open_source(stream), plan, tmp_path, n // 6, each=2)
    assert len(saves) >= (2 if learner == "pool" else 4 * passes)


def test_a_checkpoint_of_another_plan_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", 100)
    stream, checkpoint = written(pa.table(people(400)), tmp_path / "people.parquet"), tmp_path / "model.checkpoint"
    train(open_source(stream), Plan(target="rich"), None, checkpoint, 150)
    assert not Trained.load(checkpoint).progress.complete
    with pytest.raises(ModelError, match="other options"):
        train(open_source(stream), Plan(target="job"), None, checkpoint, 150, resume=True)


RICH, PAY = {"target": "rich", "ignore": ("pay",)}, {"target": "pay", "ignore": ("rich",)}
WEIGHTED, COUNTS = RICH | {"sample_weight": "h"}, {"target": "pay", "loss": "poisson"}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"rich": ["yes"] * 2000}, RICH, "one class only, 'yes'; give data with at least two classes$"),
        ({"rich": [1] * 2000}, RICH, "one class only, 1; .*, or pass `task='regression'`"),
        ({"rich": [None, *people()["rich"][1:]]}, RICH, "row 1, column 'rich': .*missing"),
        ({"rich": [None] * 2000}, RICH | {"unlabelled": "skip"}, "no row has a label"),
        ({"h": [-1.0] * 2000}, WEIGHTED, "row 1, column 'h'"),
        ({"h": [math.nan] * 2000}, WEIGHTED, "row 1, column 'h'"),
        ({"h": [-1.0] * 2000}, WEIGHTED | {"on_bad_row": "skip"}, r"no row could be used: column 'h': .* \(2,000 rows"),
        ({"home": ["h1"] * 2000}, RICH | {"groups": "home", "learner": "pool"}, "all rows are of one group, 'h1'"),
        ({"pay": [math.inf] * 2000}, PAY, "row 1, column 'pay'"),
        ({"pay": [0] * 2000}, COUNTS, "column 'pay': all targets are 0, and the poisson loss takes means above 0"),
        ({"pay": [1, -1] * 1000}, COUNTS, "row 2, column 'pay': the target is -1, and counts"),
        ({}, {"target": "ritch"}, "ritch.*rich"),
        ({}, {}, "no target is named"),
        ({}, {"target": "job", "task": "regression"}, "`task='classification'`|not.*number"),
        ({"pay": [f"{k},33" for k in range(2000)]}, PAY | {"decimal": "."}, "`decimal` and `thousands` say how"),
        ({"pay": ["1,33", "2"] * 1000}, PAY | {"decimal": ".", "task": "regression"}, "`decimal` and `thousands` say"),
        ({}, PAY | {"task": "regression", "classes": ("1", "2")}, "`classes` is for classes"),
        ({"rich": [True, False] * 1000}, RICH | {"classes": ("true", "no")}, "'no' is not .* holds truth values"),
        ({"rich": [1.0, 2.0] * 1000}, RICH | {"classes": ("1", "1.0")}, "name each label once"),
        ({}, PAY | {"task": "regression", "class_weight": ("1=2",)}, "`class_weight` is for classes"),
        ({}, RICH | {"class_weight": ("maybe=2",)}, "there is no class 'maybe'"),
        ({}, RICH | {"class_weight": ("yess=2",), "learner": "pool"}, "there is no class 'yess'; did you mean 'yes'"),
        ({}, RICH | {"class_weight": ("no=0", "yes=0")}, "all rows have a weight of 0.*leave `class_weight` out"),
        ({}, RICH | {"class_weight": ("balanced", "yes=2")}, "either balanced or given label by label"),
        *(({}, RICH | {"class_weight": (text,)}, "or LABEL=WEIGHT") for text in ("yes", "yes=-1", "yes=nan", "=x")),
    ],
)
def test_data_and_options_that_cannot_be_used(change, options, message):
    with pytest.raises(TunefreeError, match=message):
        train(open_source(people() | change), Plan(**{"learner": "scinol2"} | options))


@pytest.mark.parametrize(
    ("name", "rows", "problem"),
    [
        ("t.csv", "x,y\n1,no\n2,{}\n", "row 2: the label has 100,000 letters, more than 65,536"),
        ("t.jsonl", '{{"x": 1, "y": "no"}}\n{{"x": 2, "y": "{}"}}\n', "row 2: the label has 100,000 letters"),
        ("t.svm", "0 1:1\n{} 1:2\n", r"row 2: a number of '1{37}\.\.\.' is too large"),
        ("t.vw", "1 |f a\n{} |f b\n", r"row 2: a number of '1{37}\.\.\.' is too large"),
    ],
)
def test_endless_labels_of_files_are_refused_with_their_row(tmp_path, name, rows, problem):
    (tmp_path / name).write_text(rows.format("1" * 100_000))
    plan = Plan(target=None if "{{" not in rows and "," not in rows else "y", learner="scinol2", task="classification")
    with pytest.raises(DataError, match=problem) as caught:
        train(open_source(str(tmp_path / name)), plan)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))
