"""Short tables are gone through again in the end, where that predicts better."""

from __future__ import annotations

import inspect

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tunefree import Plan, open_source
from tunefree.cli.train import train as command
from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.report.told import rows_of_expectation
from tunefree.stream.batch import BadRows
from tunefree.workflows import refit
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.refit import FEWEST_ROWS
from tunefree.workflows.training import Trained, learn_more, train
from tunefree.workflows.watching import SilentWatcher, Watcher


def rows(n, seed=0, task="classification", turn=0.0):
    """A table whose target depends on a product of two columns, and on a category; with ``turn`` the product changes
    its sign so many times."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=(2, n))
    kind = random.choice(["a", "b", "c"], n)
    sign = np.where(np.floor(np.arange(n) / n * (turn + 1)) % 2 == 0, 1.0, -1.0)
    margin = 2.0 * sign * first * second + np.where(kind == "a", 1.0, -0.5)
    y = (
        margin
        if task == "regression"
        else np.where(random.random(n) < 1.0 / (1.0 + np.exp(-2.0 * margin)), "yes", "no")
    )
    if task == "several":
        y = np.where(margin > 1.5, "high", y)
    return {"first": first, "second": second, "kind": kind.tolist(), "y": y.tolist()}


def loss_of(trained, table):
    return evaluate(trained, open_source(table), BadRows()).metrics.mean_loss()


def states(trained):
    arrays, header = trained.model.save_state()
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}, header


@pytest.mark.parametrize(("task", "gain"), [("classification", 0.98), ("several", 0.9), ("regression", 0.1)])
def test_going_through_the_rows_again_pays(task, gain, tmp_path):
    table, later = rows(4000, 0, task), rows(4000, 1, task)
    once, twice = (train(open_source(table), Plan(target="y", refit=most)) for most in (0, 4000))
    assert once.progress.refit is None and twice.progress.refit.pays and 400 <= twice.progress.refit.rows <= 700
    assert loss_of(twice, later) < gain * loss_of(once, later)
    assert twice.progress.progressive == once.progress.progressive  # of the one pass over the stream
    twice.save(tmp_path / "m")
    loaded = Trained.load(tmp_path / "m")
    assert states(loaded) == states(twice) and loaded.progress == twice.progress
    assert states(train(open_source(table), Plan(target="y", refit=4000))) == states(twice)


def test_the_rows_held_out_by_several_passes_tell():
    table, later = rows(4000, 0, "several"), rows(4000, 1, "several")
    without, ends = (train(open_source(table), Plan(target="y", passes=2, refit=most)) for most in (0, 4000))
    told = ends.progress.refit
    assert without.progress.refit is None and told.pays and told.rows == 400
    assert told.before == ends.progress.held_out[ends.progress.number - 1].mean_loss()
    assert ends.progress.held_out == without.progress.held_out
    assert loss_of(ends, later) < 0.98 * loss_of(without, later)
    told_of = rows_of_expectation(ends)
    assert "log-loss of 400 rows held out after the passes" in told_of


def test_the_model_goes_on_with_further_rows():
    table, later = rows(3000), rows(3000, 1)
    trained = train(open_source(table), Plan(target="y"))
    before = loss_of(trained, rows(3000, 2))
    more = learn_more(trained, open_source(later))
    assert more.progress.progressive[0].rows == 6000
    assert more.progress.refit is None  # its last rows are no longer the last ones
    assert loss_of(more, rows(3000, 2)) < 1.02 * before


@pytest.mark.parametrize(
    ("n", "plan"),
    [
        (FEWEST_ROWS - 1, {}),
        (3000, {"refit": 2999}),
        (3000, {"holdout": 0.1}),
        (3000, {"passes": 2, "holdout": 0.1}),
        (3000, {"passes": 2, "learner": "scinol2"}),
        (3000, {"learner": "scinol2"}),
        (3000, {"horizon": 500}),
    ],
)
def test_where_one_pass_is_all(n, plan):
    table = open_source(rows(n))
    trained = train(table, Plan(target="y", **plan))
    assert trained.progress.refit is None
    assert states(trained) == states(train(table, Plan(target="y", **plan | {"refit": 0})))


def test_many_classes_are_learned_once(monkeypatch):
    table = open_source(rows(3000, task="several"))  # three classes, and three columns
    for most, times in ((27_000, 2), (26_999, 1)):
        monkeypatch.setattr(refit, "MOST_WEIGHTS", most)
        assert (train(table, Plan(target="y")).progress.refit is not None) == (times == 2)


def test_losses_that_are_not_curved_have_no_batch_phase():
    plan = Plan(target="y", task="regression", loss="absolute")
    assert train(open_source(rows(3000, 0, "regression")), plan).progress.refit is None


def test_the_command_line_keeps_as_many_rows_as_a_plan():
    assert inspect.signature(command).parameters["refit"].default == Plan().refit


def test_sparse_rows_are_learned_once(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{k % 2} {1 + k % 5}:{k % 7}\n" for k in range(3000)))
    assert train(open_source(path), Plan()).progress.refit is None


@pytest.mark.parametrize("turn", [1, 7])
def test_where_weights_turn_the_model_of_the_pass_stays(turn):
    table = open_source(rows(6000, turn=turn))
    once, twice = (train(table, Plan(target="y", refit=most)) for most in (0, 6000))
    assert twice.progress.refit is None or not twice.progress.refit.pays
    assert states(once) == states(twice)


def test_what_does_not_fit_is_left_out_and_told():
    told = []

    class Told(Watcher):
        def tell(self, message):
            told.append(message)

    trained = train(open_source(rows(3000)), Plan(target="y"), Told(), memory_limit="250K")
    assert trained.progress.refit is None and any("features of all rows would take" in line for line in told)


@pytest.mark.parametrize(
    ("plan", "last_step"),
    [
        ({}, 3),
        ({}, None),
        ({"class_weight": ("yes=3",)}, 3),
        ({"shuffle": 3}, None),
        ({"passes": 2}, 3),
        ({"passes": 2}, 8),
        ({"passes": 2}, None),
    ],
)
def test_an_interrupted_training_ends_with_the_same_bytes(tmp_path, plan, last_step):
    """After a step, or when all rows were learned and are gone through again."""

    class Interrupts(SilentWatcher):
        steps = 0

        def step(self, trained, step):
            self.steps += 1
            if self.steps == last_step:
                raise KeyboardInterrupt

        def refits(self, trained):
            raise KeyboardInterrupt

    parquet.write_table(pa.table(rows(6000)), tmp_path / "rows.parquet", row_group_size=1000)
    plan, checkpoint = Plan(target="y", **plan), tmp_path / "checkpoint"

    def learned(watcher, resume=False):
        return train(open_source(tmp_path / "rows.parquet"), plan, watcher, checkpoint, 1000, resume)

    whole = train(open_source(tmp_path / "rows.parquet"), plan, SilentWatcher())
    assert whole.progress.refit.pays
    with pytest.raises(KeyboardInterrupt):
        learned(Interrupts())
    assert checkpoint.exists()
    resumed = learned(SilentWatcher(), resume=True)
    whole.save(tmp_path / "whole")
    resumed.save(tmp_path / "resumed")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "resumed").read_bytes()


def test_rows_of_weight_zero_and_missing_numbers_change_nothing_else():
    table = rows(3000)
    table["first"][::7] = np.nan
    table["weight"] = np.where(np.arange(3000) % 5 == 0, 0.0, 2.0)
    trained = train(open_source(table), Plan(target="y", weight="weight"))
    assert trained.progress.refit is not None and np.isfinite(loss_of(trained, rows(500, 3) | {"weight": [1.0] * 500}))


def test_the_last_rows_tell_nothing_if_they_have_no_weight():
    weight = np.where(np.arange(3000) < 2400, 1.0, 0.0)
    trained = train(open_source(rows(3000) | {"weight": weight}), Plan(target="y", weight="weight"))
    assert trained.progress.refit is None


@pytest.mark.parametrize(
    ("part", "lie"),
    [
        ("progress", {"rows": "400", "before": 0.5, "standing": 0.4}),
        ("progress", {"rows": 400, "before": 0.5}),
        ("progress", {"rows": 400, "before": None, "standing": 0.4}),
        ("progress", 0.4),
        ("plan", "0"),
        ("plan", -1),
    ],
)
def test_files_that_lie_of_it_are_refused(part, lie, tmp_path):
    trained = train(open_source(rows(2100)), Plan(target="y"))
    trained.save(tmp_path / "m")
    arrays, header = storage.load(tmp_path / "m")
    storage.save(tmp_path / "lies", arrays, header | {part: header[part] | {"refit": lie}})
    with pytest.raises(ModelError, match=rf"{part}\.refit"):
        Trained.load(tmp_path / "lies")


@pytest.mark.parametrize("scale", [1e-300, 1e290])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_numbers_of_any_size(scale, task, tmp_path):
    table = rows(2500, 0, task)
    table |= {"first": table["first"] * scale, "same": np.full(2500, scale)}
    if task == "regression":
        table["y"] = np.array(table["y"]) * scale
    trained = train(open_source(table), Plan(target="y", task=task))
    assert trained.progress.refit is not None and np.isfinite(loss_of(trained, table))
    trained.save(tmp_path / "m")
    assert Trained.load(tmp_path / "m").progress == trained.progress
