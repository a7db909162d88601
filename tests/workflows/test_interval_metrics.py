"""What evaluation measures of intervals: coverage, width and the interval score."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tunefree import Plan, open_source, train
from tunefree.core.errors import ModelError
from tunefree.pool.quantiles import target_intervals
from tunefree.report.page import report
from tunefree.report.performance import evaluation
from tunefree.report.rendering import record
from tunefree.stream.batch import BadRows
from tunefree.workflows.calibration import ASKED, COVERAGE, SCORE, WIDTH, tenths_of
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.metrics import Scored

N, N_NEW = 800, 600


def table(n, seed, is_count=False):
    rng = np.random.default_rng(seed)
    x, years = rng.normal(size=n), rng.uniform(0.2, 1.0, n)
    if is_count:
        y = rng.poisson(3.0 * np.exp(0.3 * x) * years).astype(float)
        return {"x": x, "years": years, "y": y}
    group = np.array(["a", "b"])[rng.integers(0, 2, n)]
    return {"x": x, "group": group, "weight": rng.integers(1, 4, n).astype(float), "y": x + rng.normal(size=n)}


@pytest.fixture(scope="module")
def of_numbers():
    return train(open_source(table(N, 0)), Plan(target="y", sample_weight="weight")).trained_


def test_coverage_width_and_score_are_those_of_the_intervals(of_numbers):
    new = table(N_NEW, 1)
    found = evaluate(of_numbers, open_source(new), BadRows(), "group", interval=0.8)
    rows = {name: new[name] for name in ("x", "group")}
    predicted = list(_intervals(of_numbers, rows, [0.8, *ASKED]))
    low, high = predicted[0]
    is_in, weight = (low <= new["y"]) & (new["y"] <= high), new["weight"]
    score = high - low + 10.0 * np.maximum(low - new["y"], 0.0) + 10.0 * np.maximum(new["y"] - high, 0.0)
    expected = {COVERAGE: is_in, WIDTH: high - low, SCORE: score}
    for name, values in expected.items():
        assert found.measures[name].value == pytest.approx(np.average(values, weights=weight))
        for part in found.slices:
            of_slice = new["group"] == part.value
            mean = np.average(values[of_slice], weights=weight[of_slice])
            assert part.measures[name].value == pytest.approx(mean)
    for part, (low, high) in zip(found.covered, predicted[1:], strict=True):
        inside = (low <= new["y"]) & (new["y"] <= high)
        assert part.covered == pytest.approx(np.average(inside, weights=weight))
        assert part.low <= part.asked <= part.high
    tenths = tenths_of(found.scored)
    assert sum(tenth.rows for tenth in tenths) == N_NEW and (np.diff([tenth.mean for tenth in tenths]) > 0.0).all()


def _intervals(trained, rows, coverages):
    batch = next(iter(trained.encoder.encode(chunk, False, BadRows(), False) for chunk in open_source(rows).chunks()))
    bounds = target_intervals(trained.model, batch.rows, trained.model.predict(batch.rows), np.array(coverages))
    return [bounds[:, k].T for k in range(len(coverages))]


def test_counts_are_compared_with_intervals_of_their_exposures():
    plan = Plan(target="y", loss="poisson", exposure="years")
    trained = train(open_source(table(N, 0, True)), plan).trained_
    found = evaluate(trained, open_source(table(N_NEW, 1, True)), BadRows(), interval=0.9)
    assert 0.88 < found.measures[COVERAGE].value <= 1.0
    assert found.measures[WIDTH].value > 0.0


def test_nothing_is_measured_unless_asked_for_and_reports_ask(of_numbers):
    new = open_source(table(N_NEW, 1))
    plain = evaluate(of_numbers, new, BadRows())
    assert not plain.covered and not {COVERAGE, WIDTH, SCORE} & set(plain.measures)
    titles = [block.title for block in evaluation(of_numbers, plain) if hasattr(block, "title")]
    assert "Coverage of intervals" not in titles
    sections = report(of_numbers, new).sections
    titles = [block.title for section in sections for block in section.blocks if hasattr(block, "title")]
    assert {"Coverage of intervals", "Intervals by width", "Coverage against what was asked for"} <= set(titles)
    written = record(evaluation(of_numbers, evaluate(of_numbers, new, BadRows(), interval=0.9)))
    assert json.loads(json.dumps(written))["coverage_of_intervals"][-1]["asked"] == 0.95


def test_what_cannot_be_measured_is_an_error(of_numbers):
    new = open_source(table(N_NEW, 1))
    for interval, message in ((90.0, "for 90 per cent pass 0.9"), ([0.5, 0.9], "pass one number")):
        with pytest.raises(ModelError, match=message):
            evaluate(of_numbers, new, BadRows(), interval=interval)
    with pytest.raises(ModelError, match="takes the evidence of"):
        evaluate(of_numbers, new, BadRows(), interval=0.9999)
    with pytest.raises(ModelError, match="leave `progressive` out"):
        evaluate(of_numbers, new, BadRows(), progressive=True, interval=0.9)
    single = train(open_source(table(N, 0)), Plan(target="y", learner="scinol2")).trained_
    with pytest.raises(ModelError, match="needs the evidence that the pool has"):
        evaluate(single, new, BadRows(), interval=0.9)
    classes = train(open_source(table(N, 0)), Plan(target="group")).trained_
    with pytest.raises(ModelError, match="is for numbers"):
        evaluate(classes, new, BadRows(), interval=0.9)


def test_intervals_of_one_width_are_one_part():
    tenths = tenths_of(Scored(np.ones(40), {WIDTH: np.ones(40), COVERAGE: np.tile([0.0, 1.0], 20)}))
    assert [(tenth.mean, tenth.rows, tenth.share) for tenth in tenths] == [(1.0, 40, 0.5)]
