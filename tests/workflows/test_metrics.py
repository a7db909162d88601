"""Metrics are scikit-learn's, calibration is that of all rows, and intervals hold the truth as often as they say."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from tunefree import Plan, open_source, train
from tunefree.core.errors import DataError, ModelError
from tunefree.pool.model import Model
from tunefree.stream.batch import BadRows
from tunefree.workflows.evaluation import COVERAGE, MOST_SLICES, OTHERS, SCORE, WIDTH, evaluate, slices_of
from tunefree.workflows.metrics import BINS, Scored, calibration_error, class_reliability, equal_parts, lift, measures
from tunefree.workflows.output_columns import OutputColumns


def of_classes(probabilities, codes, weight):
    """Scored rows of classes with these probabilities."""
    n_classes = probabilities.shape[1]
    chosen = probabilities.argmax(axis=1)
    scores = probabilities[:, 1:] if n_classes == 2 else probabilities
    return Scored(weight, {"error": (codes != chosen) * 1.0}, codes, chosen, scores, n_classes=n_classes)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 5]), st.booleans(), st.booleans())
def test_metrics_of_classes_are_scikit_learns(seed, n_classes, weighted, tied):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(n_classes), 150)
    if tied:
        probabilities = np.round(probabilities, 1)
    codes = (probabilities + rng.gumbel(size=probabilities.shape) / 4).argmax(axis=1)
    weight = rng.exponential(size=150) if weighted else np.ones(150)
    found = of_classes(probabilities, codes, weight).metrics(weight)
    chosen, own = probabilities.argmax(axis=1), {"sample_weight": weight}
    assert found["error"] == pytest.approx(1 - sk.accuracy_score(codes, chosen, **own))
    assert found["balanced_error"] == pytest.approx(1 - sk.balanced_accuracy_score(codes, chosen, **own))
    average = "binary" if n_classes == 2 else "macro"
    assert found["f1"] == pytest.approx(sk.f1_score(codes, chosen, average=average, **own))
    areas = [
        (sk.roc_auc_score(codes == k, probabilities[:, k], **own), sk.average_precision_score(codes == k, p, **own))
        for k, p in enumerate(probabilities.T)
        if 0 < (codes == k).sum() < 150 and (n_classes > 2 or k == 1)
    ]
    assert (found["auc"], found["average_precision"]) == pytest.approx(np.mean(areas, axis=0))
    confusion = of_classes(probabilities, codes, weight).confusion(weight)
    expected = sk.confusion_matrix(codes, chosen, labels=range(n_classes), **own)
    np.testing.assert_allclose(confusion[:-1], expected)
    assert not confusion[-1].any()


def test_numbers_have_r2_and_rows_of_one_class_no_area():
    rng = np.random.default_rng(0)
    y, p, weight = rng.normal(size=50), rng.normal(size=50), rng.exponential(size=50)
    scored = Scored(weight, {"mean_absolute_error": np.abs(y - p)}, targets=y)
    found = scored.metrics(weight)
    assert found["r2"] == pytest.approx(sk.r2_score(y, p, sample_weight=weight))
    assert found["root_mean_squared_error"] == pytest.approx(sk.root_mean_squared_error(y, p, sample_weight=weight))
    alone = of_classes(np.full((50, 2), 0.5), np.zeros(50, int), weight)
    assert np.isnan(measures(alone)["auc"].value)
    assert measures(alone)["auc"].low is None


def test_intervals_hold_the_truth_nineteen_times_out_of_twenty():
    rng, hits, n, times = np.random.default_rng(0), {}, 400, 150

    def sample(size):
        y = rng.random(size) < 0.3
        p = 1 / (1 + np.exp(-rng.normal(2.0 * y - 1.5, 1.5)))
        numbers, weight = np.column_stack([1 - p, p]), np.ones(size)
        classes = of_classes(numbers, y.astype(int), weight)
        target = rng.normal(size=size)
        errors = rng.exponential(0.5, size) * rng.choice([-1, 1], size)
        return classes, Scored(weight, {"mean_absolute_error": np.abs(errors), "loss": np.abs(errors)}, targets=target)

    truths = [scored.metrics(scored.weight) for scored in sample(400_000)]
    for _ in range(times):
        for truth, scored in zip(truths, sample(n), strict=True):
            for name, own in measures(scored).items():
                hits[name] = hits.get(name, 0) + (own.low <= truth[name] <= own.high)
    of_classes_and_numbers = "error balanced_error f1 auc average_precision", "loss root_mean_squared_error r2"
    assert set(hits) == {"mean_absolute_error", *" ".join(of_classes_and_numbers).split()}
    for name, count in hits.items():
        assert 0.89 * times <= count <= 0.995 * times, name


def test_slices_of_categories_numbers_and_missing_values():
    many = [str(k) for k in range(MOST_SLICES + 5)]
    found = slices_of("id", pa.array(["a", *("n" + name for name in many), None, "a"]))
    assert [name for name, _ in found][-2:] == [OTHERS, None]
    assert found[0][0] == "a" and found[0][1].tolist() == [0, len(many) + 2]
    assert sorted(np.concatenate([rows for _, rows in found]).tolist()) == list(range(len(many) + 3))
    for values in (np.arange(100.0), [str(k) for k in range(100)]):
        names = [name for name, _ in slices_of("age", pa.array(values))]
        assert names == ["0 to 19", "20 to 39", "40 to 59", "60 to 79", "80 to 99"]
    assert [name for name, _ in slices_of("age", pa.array(np.arange(101.0)))][::4] == ["0 to 19", "80 to 100"]
    coded = pa.array(["b", "a", "b"]).dictionary_encode()
    assert [(name, rows.tolist()) for name, rows in slices_of("c", coded)] == [("b", [0, 2]), ("a", [1])]
    with pytest.raises(DataError, match="list"):
        slices_of("words", pa.array([["a"]]))


def expected_error(probabilities, right, weight):
    """The expected calibration error row by row: sorted, and cut where rows of one probability do not part."""
    mass, bins = weight.sum(), {}
    for p in np.unique(probabilities):
        rows = np.flatnonzero(probabilities == p)
        middle = weight[probabilities < p].sum() + weight[rows].sum() / 2
        bins.setdefault(min(int(middle / mass * BINS), BINS - 1), []).extend(rows)
    off = right - probabilities
    return sum(weight[rows].sum() / mass * abs(np.average(off[rows], weights=weight[rows])) for rows in bins.values())


@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.1, 0.0]), st.booleans())
def test_the_error_is_computed_of_rows_in_their_order(n, seed, spread, weighted):
    rng = np.random.default_rng(seed)
    probabilities = np.round(np.clip(0.75 + spread * (rng.random(n) - 0.5), 0.5, 1.0), 2)
    right = rng.random(n) < probabilities - 0.1
    weight = rng.exponential(size=n) if weighted else np.ones(n)
    scored = Scored(weight, {}, 1 - right, np.zeros(n, int), probability=probabilities)
    assert calibration_error(scored) == pytest.approx(expected_error(probabilities, right, weight), abs=1e-9)


N_NEW = 600


def table(n, seed):
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=n), np.array(["a", "b"])[rng.integers(0, 2, n)]
    return {"x": x, "group": group, "weight": rng.integers(1, 4, n).astype(float), "y": x + rng.normal(size=n)}


def test_coverage_width_and_score_equal_the_intervals():
    model, new = train(open_source(table(800, 0)), Plan(target="y", sample_weight="weight")), table(N_NEW, 1)
    found = evaluate(model.trained_, open_source(new), BadRows(), "group", interval=0.8)
    low, high = model.predict_interval({name: new[name] for name in ("x", "group")}, 0.8).T
    is_in, weight = (low <= new["y"]) & (new["y"] <= high), new["weight"]
    score = high - low + 10.0 * np.maximum(low - new["y"], 0.0) + 10.0 * np.maximum(new["y"] - high, 0.0)
    expected = {COVERAGE: is_in, WIDTH: high - low, SCORE: score}
    for name, values in expected.items():
        assert found.measures[name].value == pytest.approx(np.average(values, weights=weight))
        for part in found.slices:
            of_slice = new["group"] == part.value
            mean = np.average(values[of_slice], weights=weight[of_slice])
            assert part.measures[name].value == pytest.approx(mean)
    parts = equal_parts(found.scored, found.scored.means[WIDTH], found.scored.means[COVERAGE])
    assert sum(part.rows for part in parts) == N_NEW and (np.diff([part.mean for part in parts]) > 0.0).all()


def test_rows_of_a_group_count_as_one_where_they_agree():
    rng = np.random.default_rng(2)
    p, copies = rng.random(400), np.repeat(np.arange(400), 5)
    codes = (rng.random(400) < p).astype(int)

    def scored(rows, groups):
        fields = {"scores": p[rows, None], "n_classes": 2, "groups": groups}
        means = {"error": (codes != (p >= 0.5))[rows] * 1.0, "interval_width": np.ones(len(rows))}
        return Scored(np.ones(len(rows)), means, codes[rows], (p[rows] >= 0.5).astype(int), **fields)

    single, whole = scored(np.arange(400), None), scored(copies, copies)
    tenths = (class_reliability(one, [0, 1])[0].tenths for one in (single, whole))
    for one, five in zip(*tenths, strict=True):
        assert five.rows == 5 * one.rows and five.share == pytest.approx(one.share, abs=0.03)
    told = [measures(one) for one in (single, whole)]
    assert told[1]["error"] == pytest.approx(told[0]["error"], abs=1e-3)  # Wilson's interval of 400
    assert told[1]["interval_width"] == (1.0, None, None)  # the same without any part


def measured(trained, rows, **options):
    return evaluate(trained.trained_, open_source(rows), BadRows(), **options)


@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge"])
def test_classes_have_their_log_loss_and_the_mean_of_another_loss(loss):
    rows = {"a": np.arange(200.0) % 7, "y": ["u", "v"] * 100}
    metrics = measures(measured(train(rows, target="y", learner="nag", loss=loss), rows).scored)
    assert "log_loss" in metrics and ("loss" in metrics) == (loss != "logistic")


def test_coverage_of_quantiles_and_of_intervals_of_rates():
    random, n = np.random.default_rng(0), 400
    rows = {"x": random.normal(size=n), "years": random.uniform(0.5, 2.0, n)}
    rows |= {"y": random.poisson(rows["years"] * np.exp(0.5 * rows["x"]))}
    of_quantiles = train(open_source(rows), Plan(target="y", loss="quantile:0.9", learner="scinol2"))
    below = (rows["y"] <= of_quantiles.predict(rows)).mean()
    assert measured(of_quantiles, rows).measures["coverage"].value == pytest.approx(below) and 0.7 < below < 0.99
    of_counts = train(open_source(rows), Plan(target="y", loss="poisson", exposure="years"))
    low, high = of_counts.predict_interval(rows, 0.9, exposure=rows["years"]).T
    found = measured(of_counts, rows, interval=0.9).measures
    weight = {"weights": rows["years"]}
    exposed, rates = (values / rows["years"] for values in (rows["y"], of_counts.predict(rows, exposure=rows["years"])))
    of_rates = {"sample_weight": rows["years"], "power": 1}
    assert found["d2"].value == pytest.approx(sk.d2_tweedie_score(exposed, rates, **of_rates))
    assert found["deviance"].value == pytest.approx(sk.mean_tweedie_deviance(exposed, rates, **of_rates))
    half = rows["x"] > 0.0
    parts = rows, {name: values[half] for name, values in rows.items()}
    whole, some = (measured(of_counts, part).scored for part in parts)
    assert whole.metrics(whole.weight * half) == pytest.approx(some.metrics(some.weight))
    assert found["actual_over_expected"].value == pytest.approx(rows["y"].sum() / (rates @ rows["years"]))
    assert found[COVERAGE].value == pytest.approx(np.average((low <= rows["y"]) & (rows["y"] <= high), **weight))
    assert found[WIDTH].value == pytest.approx(np.average((high - low) / rows["years"], **weight))


def test_a_class_that_comes_late_has_the_probability_0_before(monkeypatch):
    rows = {"x": np.arange(40.0), "y": ["no", "yes"] * 20}
    later = {"x": np.arange(60.0), "y": [*rows["y"], *["maybe"] * 20]}
    model = train(open_source(rows), Plan(target="y", learner="scinol2"))
    monkeypatch.setattr("tunefree.training.one_pass.MOST_NUMBERS", 20)  # blocks of ten rows
    scores = measured(model, later, progressive=True).scored.scores
    assert scores.shape == (60, 3) and scores.sum(axis=1) == pytest.approx(1.0)
    assert not scores[:40, 2].any() and scores[-1, 2] > 0.1


def test_rows_of_too_many_probabilities_are_measured_without_them(monkeypatch):
    rows = {"x": np.arange(60.0), "y": np.where(np.arange(60) % 7 > 2, "yes", "no")}
    model = train(open_source(rows), Plan(target="y", learner="scinol2"))
    all_measures = measured(model, rows).measures
    monkeypatch.setattr("tunefree.workflows.evaluation.MOST_SCORES", 59)
    found = measured(model, rows)
    assert found.scored.scores is None
    assert all_measures.keys() - found.measures.keys() == {"auc", "average_precision"}
    assert all(all_measures[name] == measure for name, measure in found.measures.items())
    assert {"performance", "terms"} <= {section.id for section in model.report(rows).sections}
    with pytest.raises(ModelError, match="too many probabilities"):
        model.report(rows, cost={"fp": 1, "fn": 2})


def test_rows_without_weight_are_not_measured():
    rows = {"x": np.arange(60.0), "w": np.repeat([1.0, 0.0], 30), "y": ["no", "yes"] * 30}
    counts = rows | {"y": np.arange(60) % 5}
    for table, options in ((rows, {}), (counts, {"loss": "poisson"})):
        model = train(open_source(table), Plan(target="y", sample_weight="w", learner="scinol2", **options))
        weighed, weightless = measured(model, table, by="w").slices
        assert not any(np.isnan(measure.value) for measure in weighed.measures.values())
        assert all(np.isnan(value) and low is None for value, low, _ in weightless.measures.values())
        with pytest.raises(DataError, match="column 'w': all rows have a weight of 0"):
            measured(model, table | {"w": np.zeros(60)})
        with pytest.raises(DataError, match="column 'group': 1 row has no group"):
            measured(model, table | {"group": [None, *range(59)]}, group="group")
    tiny = Scored(np.full(9, 1e-200), {}).share(np.arange(9) < 3, np.ones(9, bool))
    assert tiny == (pytest.approx(1 / 3), None, None)  # squares underflow


def test_columns_of_predictions_that_a_model_does_not_have():
    for task, options, message in (
        ("regression", {"set": (0.9,)}, "`set` is for classes, and this model predicts numbers"),
        ("classification", {"interval": (0.9,)}, "`interval` is for numbers, and this model predicts classes"),
        ("classification", {"quantiles": (0.5,)}, "`quantiles` is for numbers, and this model predicts classes"),
        ("regression", {"threshold": 0.5}, "`threshold` is for classes"),
        ("regression", {"top": 2}, "`top` is for classes"),
    ):
        with pytest.raises(ModelError, match=message):
            OutputColumns(**options).check(Model(task))


def test_areas_leave_out_rows_of_unknown_classes_and_classes_without_rows():
    p, codes = np.array([0.1, 0.4, 0.35, 0.8, 0.99]), np.array([0, 0, 1, 1, 2])
    one = Scored(np.ones(5), {}, codes, (p >= 0.5).astype(int), scores=p[:, None], n_classes=2)
    assert one.metrics(np.ones(5))["auc"] == pytest.approx(0.75)
    three = np.column_stack([1.0 - p, p, p]) / (1.0 + p[:, None])  # without a row of the third class
    areas = [sk.roc_auc_score(codes[:4] == k, three[:4, k]) for k in (0, 1)]
    assert of_classes(three[:4], codes[:4], np.ones(4)).metrics(np.ones(4))["auc"] == pytest.approx(np.mean(areas))


def test_tenths_of_the_exposure_have_all_of_it():
    rng = np.random.default_rng(0)
    exposure, predicted = rng.exponential(size=(2, 300))
    counts = rng.poisson(exposure * predicted)
    tenths = np.array(lift(exposure, counts / exposure, predicted))
    exposed, mean_prediction, rate, _ = tenths.T
    assert exposed.sum() == pytest.approx(exposure.sum())
    assert (exposed * mean_prediction).sum() == pytest.approx((exposure * predicted).sum())
    assert (exposed * rate).sum() == pytest.approx(counts.sum())
