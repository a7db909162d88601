"""Decisions: the counts by hand, the threshold of least cost, groups and weights, and what is refused."""

import math

import numpy as np
import pytest

from tunefree.core.errors import ModelError
from tunefree.report.decisions import Costs, curves, decisions
from tunefree.workflows.metrics import Ranking, Scored, wilson

LABELS = ["no", "yes"]


def scored(probability, codes, weight=None, groups=None, n_classes=2):
    probability, codes = np.asarray(probability, float), np.asarray(codes)
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, float)
    scores = probability[:, None] if probability.ndim == 1 else probability
    return Scored(weight, {}, codes, np.zeros(len(codes), int), scores, n_classes=n_classes, groups=groups)


def draws(n=400, seed=0):
    rng = np.random.default_rng(seed)
    probability = np.round(rng.beta(1, 3, n), 2)  # with ties
    return probability, (rng.random(n) < probability).astype(int), rng.random(n) * (rng.random(n) < 0.9)


def told(*arguments, **options):
    """Facts of decisions by name, shares by threshold and name, and net benefits."""
    facts, table, *_, benefits = decisions(*arguments, **options)
    names, *columns = zip(*table.rows, strict=True)
    keys = [column.key for column in table.columns[1:]]
    shares = {key: dict(zip(names, values, strict=True)) for key, values in zip(keys, columns, strict=True)}
    return {fact.name: fact.value for fact in facts.facts}, shares, benefits.rows


def test_shares_costs_and_benefits_equal_counts():
    probability, codes, weight = draws()
    costs = Costs(2.0, 3.0)
    facts, shares, benefits = told(scored(probability, codes, weight), LABELS, "yes", costs, threshold=0.3)
    asked = shares["asked_for"]
    acted_on, total = probability >= 0.3, weight.sum()
    hits, alarms = weight @ (acted_on & (codes == 1)), weight @ (acted_on & (codes == 0))
    misses, passed = weight @ (~acted_on & (codes == 1)), weight @ (~acted_on & (codes == 0))
    assert asked["sensitivity"].value == pytest.approx(hits / (hits + misses))
    assert asked["specificity"].value == pytest.approx(passed / (alarms + passed))
    assert asked["positive predictive value"].value == pytest.approx(hits / (hits + alarms))
    assert asked["negative predictive value"].value == pytest.approx(passed / (misses + passed))
    assert facts["cost of a row: asked for"].value == pytest.approx((2 * alarms + 3 * misses) / total)
    sensitivity = asked["sensitivity"]
    assert sensitivity[1:] == pytest.approx(wilson(sensitivity.value, weight[(codes == 1) & (weight > 0)]))
    benefit = next(benefit for threshold, benefit, _ in benefits if threshold == 0.3)
    assert benefit == pytest.approx(hits / total - alarms / total * 0.3 / 0.7)
    assert (facts["threshold: asked for"], facts["threshold: by the costs"]) == (0.3, 0.4)
    assert facts["cost of a row if all are acted on"] == pytest.approx(2 * (alarms + passed) / total)
    assert facts["cost of a row if none is"] == pytest.approx(3 * (hits + misses) / total)


def test_no_threshold_costs_less_than_the_one_of_least_cost():
    probability, codes, weight = draws()
    for costs in (Costs(1.0, 1.0), Costs(1.0, 20.0), Costs(20.0, 1.0), Costs(1e300, 3e300)):
        facts, shares, _ = told(scored(probability, codes, weight), LABELS, None, costs)
        best = facts["cost of a row: least cost"].value
        acted, passed, thresholds = costs.fp * (codes == 0), costs.fn * (codes == 1), np.linspace(0.0, 1.01, 203)
        others = [np.average(np.where(probability >= t, acted, passed), weights=weight) for t in thresholds]
        assert [*shares][-1] == "least_cost"
        assert best == pytest.approx(min(others))
        extremes = facts["cost of a row if all are acted on"], facts["cost of a row if none is"]
        assert best <= min(extremes) * (1 + 1e-12)


def test_one_class_against_the_others_equals_two_classes():
    probability, codes, _ = draws()
    three = np.column_stack([(1 - probability) / 2, (1 - probability) / 2, probability])
    of_three = np.where(codes == 1, 2, np.arange(len(codes)) % 2)
    against = told(scored(three, of_three, n_classes=3), ["a", "b", 7], "7", Costs(1.0, 2.0))
    alone = told(scored(probability, codes), LABELS, None, Costs(1.0, 2.0))
    assert (against[0].pop("class"), alone[0].pop("class")) == (7, "yes")
    assert repr(against) == repr(alone)  # NaN is no NaN's equal


def test_rows_of_an_unseen_class_are_none_of_the_class():
    shares = told(scored([0.2, 0.9, 0.8], [0, 1, 2]), LABELS)[1]["even_odds"]
    assert (shares["sensitivity"].value, shares["specificity"].value) == (1.0, 0.5)


def test_one_class_in_the_rows_leaves_out_unknown_metrics():
    facts, shares, _ = told(scored([0.2, 0.9], [1, 1]), LABELS, None, Costs(1.0, 5.0))
    sensitivity, specificity = (shares["even_odds"][name] for name in ("sensitivity", "specificity"))
    assert math.isnan(specificity.value)
    assert (specificity.low, sensitivity.value, facts["cost of a row if all are acted on"]) == (None, 0.5, 0.0)
    assert facts["cost of a row: least cost"].value == 0.0


def test_copies_of_rows_in_groups_tell_no_more_than_the_rows():
    probability, codes, _ = draws(300)
    copies, groups = np.repeat(np.arange(300), 10), np.repeat(np.arange(300), 10)
    whole, one_group = scored(probability, codes), scored(probability, codes, None, np.zeros(300, int))
    rows = whole, scored(probability[copies], codes[copies], None, groups), one_group
    alone, grouped, one = (told(part, LABELS)[1]["even_odds"]["sensitivity"] for part in rows)
    assert grouped == pytest.approx(alone, rel=0.02)
    assert one.high - one.low > 0.5  # of one group nothing is known


@pytest.mark.parametrize(
    "text", ["fp=1,fm=5", "fp=1", "fp=1,fn=0", "fp=1,fn=inf", "fp=1,fn=nan", "fp=1,fn=", "fp=1,fp=2,fn=1", ""]
)
def test_costs_that_cannot_be_meant(text):
    with pytest.raises(ModelError, match="write both costs"):
        Costs.parsed(text)


def test_a_threshold_lies_between_0_and_1():
    for threshold in (0.0, 1.0):
        with pytest.raises(ModelError, match="`threshold` must lie between 0 and 1"):
            decisions(scored([0.5], [1]), LABELS, threshold=threshold)


def test_curves_have_the_areas_below_them():
    probability, codes, weight = draws()
    one = scored(probability, codes, weight)
    ranking = Ranking(probability)
    sums = [np.append(0.0, ranking.sums(weight * flags)) for flags in (codes, 1 - codes)]
    roc, precision = curves(*sums).values()
    assert np.trapezoid(roc[:, 1], roc[:, 0]) == pytest.approx(one.metrics(weight)["auc"])
    hits = (weight * codes * (probability >= 0.5)).sum() / (weight * codes).sum()
    at = np.flatnonzero(np.isclose(precision[:, 0], hits))
    shown = (weight * codes * (probability >= 0.5)).sum() / (weight * (probability >= 0.5)).sum()
    assert np.isclose(precision[at, 1], shown).any()
    assert curves(sums[0], 0.0 * sums[1]) == {}
