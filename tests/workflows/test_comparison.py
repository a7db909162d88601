"""Learners compared on one pass: the figures are those of `train`, whatever the batches."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.workflows.test_training import people
from tunefree.model_files.plan import POOL, Plan
from tunefree.pool.model import Model
from tunefree.stream.source import open_source
from tunefree.training.one_pass import blank
from tunefree.training.training import train
from tunefree.workflows.comparison import Contestant, compare

FEW = ["scinol2", "adagrad", POOL]


def three_classes(n=900):
    """The third class comes late."""
    table = people(n)
    table["rich"][n // 2 :] = np.random.default_rng(1).choice(["no", "yes", "very"], n - n // 2).tolist()
    return table


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "people.parquet"
    parquet.write_table(pa.table(people()), path)
    return path


CLASSES = Plan(target="rich", ignore=("pay",))


def test_a_late_class_and_bad_rows_as_in_train(monkeypatch):
    monkeypatch.setattr("tunefree.stream.frames.rows_of_a_chunk", lambda *_: 100)
    table = three_classes()
    table["rich"][5] = table["rich"][500] = None
    plan = Plan(target="rich", ignore=("pay",), on_bad_row="skip")
    compared = compare(open_source(table), plan, FEW)
    assert (compared.rows, compared.skipped) == (898, 2)
    for contestant in compared.contestants:
        alone = Plan(target="rich", ignore=("pay",), on_bad_row="skip", learner=contestant.name)
        assert contestant.metrics == train(open_source(table), alone).progress.progressive[0]


def test_curves_do_not_depend_on_where_batches_are_cut():
    rng = np.random.default_rng(0)
    weight, row_losses, errors = rng.random(1000), 1e3 ** rng.normal(size=1000), rng.random(1000)
    contestants = []
    for cuts in ([], [1, 63, 64, 65, 500, 999], list(range(1000))):
        contestant = Contestant("scinol2", blank(Model("classification", "scinol2")))
        for piece in zip(*(np.split(array, cuts) for array in (weight, row_losses, errors)), strict=True):
            contestant.trained.progress.add(*piece)
        contestants.append(contestant)
    assert contestants[0].curve == contestants[1].curve == contestants[2].curve
    assert contestants[0].metrics == contestants[1].metrics == contestants[2].metrics
    rows = [point.rows for point in contestants[0].curve]
    assert (rows[:9], rows[-1]) == ([64, 70, 76, 83, 91, 99, 108, 117, 128], 1000)
    so_far, before = contestants[0].curve[-1], contestants[0].curve[-2]
    assert so_far.loss == pytest.approx(np.average(row_losses, weights=weight))
    assert so_far.recent == pytest.approx(np.average(row_losses[before.rows :], weights=weight[before.rows :]))
