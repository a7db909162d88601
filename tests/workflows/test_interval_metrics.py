"""What evaluation measures of intervals: coverage, width and the interval score."""

import numpy as np
import pytest

from tunefree import Plan, open_source, train
from tunefree.pool.quantiles import target_intervals
from tunefree.stream.batch import BadRows
from tunefree.workflows.calibration import ASKED, COVERAGE, SCORE, WIDTH, tenths_of
from tunefree.workflows.evaluation import evaluate

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
