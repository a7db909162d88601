"""Learners compared on one pass: the figures are those of `train`, whatever the batches."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.workflows.test_training import people
from tunefree.cli import display
from tunefree.core.errors import DataError, ModelError
from tunefree.learners import ALL
from tunefree.model_files.plan import POOL, Plan
from tunefree.pool.model import Model
from tunefree.stream.source import open_source
from tunefree.training.one_pass import blank
from tunefree.training.training import train
from tunefree.workflows import comparison
from tunefree.workflows.comparison import RATES, Contestant, compare, has_rate

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
NUMBERS = Plan(target="pay", ignore=("rich",))
WEIGHTED = Plan(target="job", loss="hinge", sample_weight="age")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "learners"),
    [
        pytest.param(CLASSES, None, id="classes"),
        pytest.param(NUMBERS, FEW, id="regression"),
        pytest.param(WEIGHTED, FEW, id="hinge, weighted"),
        pytest.param(NUMBERS, None, id="regression, all", marks=pytest.mark.slow),
        pytest.param(WEIGHTED, None, id="hinge, weighted, all", marks=pytest.mark.slow),
    ],
)
def test_figures_are_those_of_train_to_the_last_bit(plan, learners):
    compared = compare(open_source(people(600)), plan, learners)
    assert {contestant.name for contestant in compared.contestants} | set(compared.left_out) == {
        *(learners or [*ALL, POOL])
    }
    for contestant in compared.contestants:
        options = {name: getattr(plan, name) for name in ("target", "ignore", "loss", "weight")}
        alone = train(open_source(people(600)), Plan(**options, learner=contestant.name)).progress.progressive[0]
        assert contestant.metrics == alone, contestant.name
        assert (contestant.curve[-1].rows, contestant.curve[-1].loss) == (600, alone.mean_loss())


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


def test_a_sweep_costs_what_its_passes_cost():
    compared = compare(open_source(people(300)), Plan(target="rich", ignore=("pay",)), FEW)
    seconds = {contestant.name: contestant.seconds for contestant in compared.contestants}
    sweeps = compared.sweeps()
    assert all(figure > 0.0 for figure in seconds.values())
    assert sweeps["learners"] == (2, seconds["scinol2"] + seconds["adagrad"])
    assert sweeps["learners_and_rates"] == (1 + RATES, seconds["scinol2"] + RATES * seconds["adagrad"])
    assert sweeps[POOL] == (1, seconds[POOL])
    assert {name for name in ALL if has_rate(name)} >= {"adagrad", "nag"} and has_rate("ogd") and has_rate("adam")
    assert not any(has_rate(name) for name in ("scinol1", "scinol2", "pistol", "kotlowski", "newton"))


def test_the_clock_does_not_run_while_code_is_prepared(monkeypatch):
    """Each learner rehearses before the first batch."""
    monkeypatch.setattr("tunefree.stream.frames.rows_of_a_chunk", lambda *_: 100)
    told, rehearse = [], comparison._rehearse

    def noted(compared, contestant, *arguments):
        told.append((contestant.name, compared.rows))
        rehearse(compared, contestant, *arguments)

    monkeypatch.setattr(comparison, "_rehearse", noted)
    compare(open_source(three_classes()), Plan(target="rich", ignore=("pay",)), FEW)
    assert told == [(name, 0) for name in FEW]


def test_who_cannot_take_part_is_left_out(for_classes_only):
    compared = compare(open_source(people(100)), Plan(target="pay", ignore=("rich",)), [for_classes_only, "scinol2"])
    assert ([contestant.name for contestant in compared.contestants], list(compared.left_out)) == (
        ["scinol2"],
        [for_classes_only],
    )
    assert "classes only" in compared.left_out[for_classes_only]
    assert compared.leaders() == {}
    hinge = compare(open_source(people(100)), Plan(target="rich", loss="hinge"), FEW)
    assert "logistic" in hinge.left_out[POOL]
    with pytest.raises(ModelError, match="no learner is left.*classes only"):
        compare(open_source(people(100)), Plan(target="pay"), [for_classes_only])


@pytest.mark.parametrize(
    ("change", "plan", "learners", "message"),
    [
        ({}, Plan(target="rich"), ["scinol3"], "unknown learner 'scinol3'.*scinol2"),
        ({}, Plan(target="rich", loss="cubic"), None, "unknown loss 'cubic'"),
        ({}, Plan(target="ritch"), None, "ritch.*rich"),
        ({}, Plan(), None, "no target is named"),
        ({"rich": ["yes"] * 2000}, Plan(target="rich"), ["scinol2"], "one class only"),
        ({"age": [float("inf")] * 2000}, Plan(target="rich"), ["scinol2"], "row 1, column 'age'"),
        ({"rich": [None] * 2000}, Plan(target="rich", on_bad_row="skip"), ["scinol2"], "no row"),
    ],
)
def test_what_cannot_be_compared(change, plan, learners, message):
    with pytest.raises((DataError, ModelError), match=message):
        compare(open_source(people() | change), plan, learners)


def test_json_on_the_command_line(run, data):
    status, out, err = run("compare", data, "-t", "rich", "--ignore", "pay", "--json", "-q")
    figures = json.loads(out)
    assert (status, err) == (0, "")
    assert (figures["rows"], figures["loss"], figures["left_out"]) == (2000, "logistic", [])
    losses = [learner["log_loss"] for learner in figures["learners"]]
    assert losses == sorted(losses)
    assert {learner["learner"] for learner in figures["learners"]} == {*ALL, POOL}
    for learner in figures["learners"]:
        last = figures["curves"][learner["learner"]][-1]
        assert last == {**last, "rows": 2000, "loss": learner["log_loss"]}
    assert sum(figures["pool"].values()) == pytest.approx(1.0)
    assert figures["sweep"][0] == {**figures["sweep"][0], "way": "learners", "passes": len(ALL)}


def test_table_on_the_command_line(run, data, for_classes_only):
    few = [word for name in FEW for word in ("--learner", name)]
    status, out, err = run("compare", data, "-t", "pay", "--ignore", "rich", *few, "--learner", for_classes_only)
    assert status == 0, err
    assert "regression of 'pay'" in err
    assert " ".join(out.splitlines()[1].split()) == "learner progressive square loss absolute error seconds"
    assert {line.split()[0] for line in out.splitlines()[2:5]} == set(FEW)
    for words in (
        "Left out",
        for_classes_only,
        "2,000",
        "weights in the pool at the end",
        "each learner once",
        "9 rates for the 1 ",
    ):
        assert words in out


def test_every_option_of_compare(run, tmp_path):
    words = ["a plain note", "rich and rich again", "nothing"]
    table = people(300) | {"note": [words[i % 3] for i in range(300)], "h": [1.0 + i % 2 for i in range(300)]}
    parquet.write_table(pa.table(table), tmp_path / "d.parquet")
    few = ["--learner", "scinol2", "--learner", POOL]
    options = ["--task", "classification", "--loss", "logistic", "--weight", "h", "--ignore", "pay", "--text", "note"]
    options += ["--hash-bits", "10", "--format", "parquet", "--on-bad-row", "skip", "--json"]
    status, out, err = run("compare", tmp_path / "d.parquet", "-t", "rich", *few, *options)
    assert status == 0, err
    assert [learner["log_loss"] < 0.75 for learner in json.loads(out)["learners"]] == [True, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--learner", "x"], "unknown learner 'x'"),
        (["--plot", "plot.xlsx"], "name the file so"),
        (["--plot", "no/such/folder/plot.png"], "directory"),
        (["--on-bad-row", "x"], "--on-bad-row must be"),
        (["--loss", "x"], "unknown loss"),
    ],
)
def test_wrong_options(run, data, options, message):
    status, out, err = run("compare", data, "-t", "rich", *options)
    assert (status, out) == (2, "")
    assert message in err


def test_progress_is_told_where_there_is_no_terminal(monkeypatch, capfd):
    monkeypatch.setattr("tunefree.core.console.LINE_SECONDS", 0.0)
    compare(open_source(people(300)), Plan(target="rich"), FEW, display.ComparisonDisplay())
    err = capfd.readouterr().err
    assert "classification of 'rich'" in err
    assert "preparing the learners" in err
    assert "300 rows" in err


def test_models_that_are_large_are_announced(monkeypatch, capfd):
    plan = Plan(target="rich", hash_bits=10)
    for limit, told in ((2**30, False), (2**10, True)):
        monkeypatch.setattr(display, "MUCH_MEMORY", limit)
        compared = compare(open_source(people(50)), plan, FEW, display.ComparisonDisplay())
        assert ("--hash-bits" in capfd.readouterr().err) == told
    states = [member.state for contestant in compared.contestants for member in contestant.model.members]
    (pool,) = (one.model for one in compared.contestants if one.name == POOL)
    assert compared.bytes >= pool.pool.nbytes + sum(state.coordinates.nbytes for state in states) > 14 * 2**10 * 8


def test_the_command_has_an_example_in_its_help(run):
    assert "tunefree compare" in run("compare", "--help")[1]
