"""Columns as features, what figures are made of, against some NumPy, and what must come out at quick sizes."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests import naive
from tests.stream.tabular import raw_rows
from tunefree.core.errors import DataError
from tunefree.core.rows import n_rows
from tunefree.papers.experiments import data, descents, path_fig1, path_fig2, pistol_fig2, scinol_fig1, sgd_fig2
from tunefree.papers.experiments.experiment import Request, compute, files_of
from tunefree.papers.kernel.usual import LINEAR


def test_paths_equal_algorithm_1():
    random = np.random.default_rng(0)
    train, test = path_fig1.gaussians(50, random), path_fig1.gaussians(40, random)
    descent = descents.path_of(LINEAR, train, test, 1.0, 0.5, 30)
    y, etas = train.y[:, None], np.arange(1.0, 31.0) ** -0.5
    iterates = naive.subgradient(train.x @ train.x.T, lambda margins: np.where(y * margins <= 1.0, -y, 0.0) / 50, etas)
    weights = train.x.T @ np.hstack(iterates)
    for sample, kind in ((train, "training"), (test, "test")):
        wrong = (sample.x @ weights > 0) != (sample.y[:, None] > 0)
        np.testing.assert_allclose(descents.errors_of(descent)[kind], wrong.mean(axis=0))
    np.testing.assert_allclose(train.x.T @ descent.last(30)[:, 0], weights[:, -1])


def results_of(experiment, folder):
    """The results of a quick run; the test is skipped where the data files are missing."""
    request = Request(folder, quick=True)
    try:
        files_of(experiment, request)
    except DataError as error:
        pytest.skip(str(error))
    return compute(experiment, request)


def test_pistol_fig2_has_two_regimes():
    settings = pistol_fig2.EXPERIMENT.quick
    rounds, bounds = pistol_fig2.bounds_of(settings)

    def slope(values, where):
        return np.polyfit(np.log(rounds[where]), np.log(values[where]), 1)[0]

    for risk, values in zip(settings.optimal_risks, bounds, strict=True):
        crossing = pistol_fig2.crossing_of(rounds, values, 0.5)
        assert (np.diff(values) < 0).all()
        if risk < 0.01:
            assert slope(values, (rounds > 2.0) & (rounds < crossing / 30.0)) == pytest.approx(-2 / 3, abs=1e-3)
        if risk > 0:
            assert slope(values, rounds > 30.0 * crossing) == pytest.approx(-1 / 2, abs=2e-3)
            assert 0.4 < crossing / risk**-1.5 < 1.5
        else:
            assert crossing == np.inf


@pytest.mark.slow
def test_scinol_fig1_orders_learners_as_the_paper_does(tmp_path):
    experiment = scinol_fig1.EXPERIMENT
    results = results_of(experiment, tmp_path)
    lines = scinol_fig1.lines_of(experiment.quick, results)
    least, zero = scinol_fig1.reference_losses(experiment.quick)
    ends = {title: scinol_fig1.best_of(lines, title).end for title in {line.method.title for line in lines}}
    not_invariant = [line.end > zero for line in lines if line.method.title in scinol_fig1.NOT_INVARIANT]
    assert np.mean(not_invariant) > 0.75
    assert least < max(ends["NAG"], ends["SFMD"]) < ends["ScInOL2"] < min(ends["SGD"], ends["AdaGrad"], ends["Adam"])
    assert ends["ScInOL2"] - least < 0.1 * (zero - least)
    assert ends["ScInOL2"] + 0.2 < ends["ScInOL1"] < zero
    assert ends["pool (ours)"] < min(ends["NAG"], ends["SFMD"])


@pytest.mark.slow
def test_sgd_fig2_has_errors_that_fall_faster_than_losses(tmp_path):
    settings = sgd_fig2.EXPERIMENT.quick
    curves = sgd_fig2.curves_of(settings, results_of(sgd_fig2.EXPERIMENT, tmp_path))
    for c in curves:
        ratio = c.excess_error / c.excess_risk
        assert (ratio[:, -1] < 0.5 * ratio[:, 0]).all(), c.delta
        for bar in sgd_fig2.BARS:
            rounds = c.rounds_below(bar)
            assert rounds[1] <= rounds[0], c.delta  # averaging is never later
    by_delta = [c.rounds_below(0.01)[1] for c in curves]  # one bar for all of them
    assert by_delta[0] > max(by_delta[1:])  # the noisiest is slowest; among the others none is always first


@pytest.mark.slow
def test_path_fig1_has_training_errors_that_fall_faster_with_larger_steps(tmp_path):
    settings = path_fig1.EXPERIMENT.quick
    results = results_of(path_fig1.EXPERIMENT, tmp_path)
    lines = descents.lines_of(settings, results)
    for line in lines:
        mean = line.training.mean(axis=0)
        assert mean[-1] < 0.8 * mean[1], line.theta
    early = [float(line.training[:, 9].mean()) for line in lines]
    assert early == sorted(early) and early[0] < early[-1]
    exact = path_fig1.exact_errors(settings, results)
    assert (exact > path_fig1.bayes_error()).all()


@pytest.mark.slow
def test_path_fig2_has_a_minimum_that_is_sharper_for_larger_steps(tmp_path):
    settings = path_fig2.EXPERIMENT.quick
    lines = descents.lines_of(settings, results_of(path_fig2.EXPERIMENT, tmp_path))
    for line in lines:
        mean = line.training.mean(axis=0)
        assert mean[-1] < 0.6 * mean[1], line.theta
    assert lines[0].rise > lines[-1].rise + 0.002
    assert lines[0].best < settings.iterations / 2


def test_scinol_fig1_tests_on_other_rows_than_it_trains_on():
    test = scinol_fig1.draw_rows(50, None).rows.numbers
    for run in range(10):
        assert not np.isin(scinol_fig1.draw_rows(50, run).rows.numbers, test).any()


def features_of(X):
    """Each row as a dictionary without zeros."""
    return [dict(entries) for entries in raw_rows(X)]


def test_categories_and_missing_values_are_features(tmp_path, monkeypatch):
    table = pa.table(
        {
            "age": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "job": ["a", "b", None, "a", "b", "a"],
            "soil1": [1, 0, 0, 1, 0, 0],
            "soil2": [0, 1, 0, 0, 1, 1],
            "id": [7, 7, 7, 7, 7, 7],
            "y": ["no", "yes", "no", "yes", "no", "yes"],
            "split": ["train"] * 4 + ["test"] * 2,
        }
    )
    parquet.write_table(table, tmp_path / "small.parquet")
    small = data.DataSet("Small", "small.parquet", "y", "a test", drop=("id",), indicators=("soil",))
    monkeypatch.setitem(data.ALL, "Small", small)
    prepared = data.prepare("Small", tmp_path / "small.parquet")
    assert prepared.labels == ["no", "yes"]
    assert prepared.n_features == 1 + 1 + 3 + 2  # constant, age, a, b and missing, two soils
    by_age = {features[1]: features for features in features_of(prepared.train) + features_of(prepared.test)}
    missing, a, b = 2, 3, 4  # in the order of the alphabet: a bracket comes before letters
    assert by_age[1.0] == {0: 1.0, 1: 1.0, a: 1.0, 5: 1.0}
    assert by_age[2.0] == {0: 1.0, 1: 2.0, b: 1.0, 6: 1.0}
    assert by_age[3.0] == {0: 1.0, 1: 3.0, missing: 1.0}
    classes = dict(zip((f[1] for f in features_of(prepared.test)), prepared.test_classes, strict=True))
    assert classes == {5.0: 0, 6.0: 1}


def test_mostly_empty_numbers_are_stored_without_zeros(tmp_path, monkeypatch):
    values = np.zeros((9, 4))
    values[3, 2] = 5.0
    columns = {f"p{j}": values[:, j] for j in range(4)} | {"y": [0, 1, 2] * 3}
    parquet.write_table(pa.table(columns), tmp_path / "pixels.parquet")
    monkeypatch.setitem(data.ALL, "Pixels", data.DataSet("Pixels", "pixels.parquet", "y", "a test"))
    prepared = data.prepare("Pixels", tmp_path / "pixels.parquet")
    assert prepared.n_features == 5
    assert not prepared.train.is_table  # trees do not see words of tables
    assert len(prepared.train.values) + len(prepared.test.values) == 1
    assert {3: 5.0, 0: 1.0} in features_of(prepared.train) + features_of(prepared.test)
    assert (n_rows(prepared.train), n_rows(prepared.test)) == (6, 3)
