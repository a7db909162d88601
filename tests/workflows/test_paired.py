"""Paired differences: intervals by hand and by simulation, what is named better, and what is not."""

import math

import numpy as np
import pyarrow as pa
import pytest

from tunefree.core.errors import TunefreeError
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows import trials
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.metrics import mean_interval
from tunefree.workflows.paired import Truth, compared


def truth_of(targets, classes=("no", "yes"), weight=None, groups=None, task="classification", loss=None):
    targets = np.asarray(targets)
    weight = np.ones(len(targets)) if weight is None else np.asarray(weight, float)
    return Truth(task, loss, list(classes), targets, weight, groups)


def probabilities(of_second):
    of_second = np.asarray(of_second, float)
    return np.column_stack([1.0 - of_second, of_second])


def two(truth, first, second):
    return compared(truth, {"a": first, "b": second}, "rich", "")


def test_copies_in_groups_and_integer_weights_count_as_they_should():
    values = np.random.default_rng(0).normal(0.1, 1.0, 200)
    rows = np.repeat(np.arange(200), 5)
    alone = mean_interval(values, np.ones(200))
    assert mean_interval(values[rows], np.ones(1000), rows) == pytest.approx(alone)
    assert mean_interval(np.append(values, 9.0), np.append(np.ones(200), 0.0)) == pytest.approx(alone)
    assert mean_interval(np.append(values, math.nan), np.ones(201)) == pytest.approx(alone)
    assert mean_interval(values, np.full(200, 1e-300)) == pytest.approx(alone)
    ends = np.array(mean_interval(values * 1e200, np.ones(200)))
    assert ends == pytest.approx(np.array(alone) * 1e200)


@pytest.mark.parametrize("kind", ["few that differ", "heavy tails", "groups"])
def test_intervals_hold_the_truth_in_95_per_cent_of_samples(kind):
    inside = 0
    for seed in range(400):
        random, groups, truth = np.random.default_rng(seed), None, 0.0
        if kind == "few that differ":
            values, truth = random.choice([1.0, 0.0, -1.0], 60, p=[0.06, 0.9, 0.04]), 0.02
        elif kind == "heavy tails":
            values = random.standard_t(3, 60)
        else:
            groups = np.repeat(np.arange(30), 4)
            values = random.normal(size=30)[groups] + random.normal(size=120)
        interval = mean_interval(values, np.ones(len(values)), groups)
        inside += interval.low <= truth <= interval.high
    assert 0.93 <= inside / 400 <= 1.0


def test_the_better_model_is_named_only_where_the_interval_says_so():
    random = np.random.default_rng(0)
    p = random.beta(1, 1, 2000)
    truth = truth_of((random.random(2000) < p).astype(int))
    good, bad = probabilities(p), probabilities(np.clip(p + 0.3 * random.normal(size=2000), 0.01, 0.99))
    clear, turned = two(truth, good, bad), two(truth, bad, good)
    assert [one.contenders[1].better for one in (clear, turned)] == ["a", "b"]
    assert clear.sentence.startswith("Predicts rich = yes with ")
    assert "; by its log-loss better than b (" in clear.sentence
    assert "; by its log-loss worse than b (" in turned.sentence
    few = truth.at(np.arange(30))
    unclear = two(few, good[:30], bad[:30])
    assert unclear.contenders[1].better == "" and "; not clearly different from b (" in unclear.sentence
    same = two(truth, good, good).contenders[1]
    assert same.loss_difference == (0.0, 0.0, 0.0) and same.better == ""


def test_more_comparisons_have_wider_intervals():
    random = np.random.default_rng(0)
    truth = truth_of(random.integers(0, 2, 300))
    models = {str(k): probabilities(random.random(300)) for k in range(5)}
    few = {name: models[name] for name in "01"}
    of_one, of_four = (compared(truth, some, "y", "").contenders[1].loss_difference for some in (few, models))
    assert of_one.value == of_four.value and of_four.low < of_one.low < of_one.high < of_four.high


def test_an_unseen_class_is_an_error_without_a_loss():
    truth = truth_of([0, 1, 2] * 20)
    told = two(truth, probabilities([0.1, 0.9, 0.9] * 20), probabilities([0.4, 0.6, 0.6] * 20))
    assert told.unseen == 20
    assert told.model.error == pytest.approx(1 / 3)
    assert told.model.loss == pytest.approx(-math.log(0.9))


def test_rows_of_one_class_and_one_row_are_told():
    truth = truth_of([1] * 50)
    assert two(truth, probabilities([0.9] * 50), probabilities([0.6] * 50)).contenders[1].better == "a"
    alone = two(truth.at(np.array([0])), probabilities([0.9]), probabilities([0.6]))
    assert alone.contenders[1].better == ""
    one_group = truth._replace(groups=np.zeros(50, np.int64))
    assert two(one_group, probabilities([0.9] * 50), probabilities([0.6] * 50)).contenders[1].better == ""


def test_probabilities_of_0_cost_no_more_than_the_rows_can_tell():
    truth = truth_of([1] * 10)
    assert truth.judged("a", probabilities([0.0] * 10))[0].tolist() == pytest.approx([math.log(20)] * 10)


@pytest.mark.parametrize(
    ("loss", "left_out"),
    [
        (None, set()),
        ("quantile:0.9", {"random forest"}),
        ("absolute", {"random forest"}),
        ("poisson", {"random forest"}),
        ("tweedie:1.5", {"random forest", "gradient boosting"}),
        ("huber:1", {"peers"}),
    ],
)
def test_peers_learn_the_loss_or_are_left_out(loss, left_out):
    random = np.random.default_rng(0)
    table = pa.table({"a": random.normal(size=200), "b": random.choice(["x", "y", None], 200), "n": pa.nulls(200)})
    table = table.append_column("t", pa.array(random.choice(["good day", "bad day", ""], 200)))
    y = random.poisson(np.exp(table["a"].to_numpy())).astype(float)
    truth = truth_of(y, [], random.random(200), task="regression", loss=loss)
    plan = Plan(target="y", task="regression", loss=loss, text=("t",))
    data = trials.read(open_source(table.append_column("y", pa.array(y))), plan, plan.bad_rows())
    peers, without = trials.peers([data], truth, 1)
    assert without.keys() - {"texts"} == left_out
    rows = np.arange(100)
    test, judged = truth.at(rows + 100), {}
    for name, learn in peers.items():
        judged[name] = test.judged(name, learn(truth, rows, rows + 100))[0].mean()
    others = [value for name, value in judged.items() if name != "constant"]
    assert all(map(math.isfinite, judged.values())) and (not others or min(others) < judged["constant"])


def test_folds_hold_groups_whole_and_all_classes():
    random = np.random.default_rng(0)
    targets, groups = np.repeat([0, 1], [190, 10]), random.permutation(np.repeat(np.arange(50), 4))
    for truth in (truth_of(targets), truth_of(targets, groups=groups)):
        parts = trials.splits(truth)
        assert sorted(np.concatenate([judged for _, judged in parts]).tolist()) == list(range(200))
        for learned, judged in parts:
            assert not set(learned.tolist()) & set(judged.tolist())
            if truth.groups is not None:
                assert not {*groups[learned]} & {*groups[judged]}
            else:
                assert (targets[judged] == 1).sum() == 2
    in_order = trials.splits(truth_of(random.integers(0, 2, 60)), in_order=True)
    assert all(learned.max() < judged.min() for learned, judged in in_order)


def data_of(table, **options):
    plan = Plan(target="y", **options)
    return trials.read(open_source(table), plan, plan.bad_rows())


X = np.random.default_rng(0).normal(size=60)
ROWS = {"x": X, "words": [["a", "b"], ["c"]] * 30, "y": X + np.random.default_rng(1).normal(size=60)}


def test_two_models_of_numbers_are_compared_on_their_losses():
    models = {name: train(open_source(ROWS), Plan(target="y", learner=name)) for name in ("scinol2", "nag")}
    rows = trials.read(open_source(ROWS), models["nag"].plan, BadRows(), models["nag"])
    comparison = trials.compare(rows, models)
    for contender, trained in zip(comparison.contenders, models.values(), strict=True):
        measures = evaluate(trained, open_source(ROWS), BadRows()).measures
        assert contender.loss == pytest.approx(measures["loss"].value)
        assert contender.error == pytest.approx(measures["mean_absolute_error"].value)
    assert comparison.how == trials.OF_MODELS and str(comparison) == comparison.sentence


def test_peers_of_few_rows_and_of_lists(few_peers):
    few = {name: values[:3] for name, values in ROWS.items()}
    comparison = trials.compare(data_of(ROWS, loss="absolute"), {}, data_of(few, loss="absolute"), n_jobs=1)
    assert comparison.left_out["quantile regression"].startswith("it failed: ")  # it has no five folds
    assert comparison.left_out["column 'words'"] == "peers do not see it: it holds lists"
    rare = ROWS | {"y": ["no"] * 57 + ["yes"] * 3}  # fewer than there are folds
    peers = trials.compare(data_of(rare), {}, data_of(rare), n_jobs=1).contenders
    assert "logistic regression" in [peer.name for peer in peers] and min(peer.error for peer in peers) <= 0.05


def test_comparisons_that_cannot_be():
    both, one = data_of(ROWS | {"y": ["a", "b"] * 30}), data_of(ROWS | {"y": ["a"] * 60})
    trained = [train(both.source, both.plan), train(open_source(ROWS | {"y": ["c", "d"] * 30}), both.plan)]
    weightless = data_of(ROWS | {"w": np.zeros(60)}, sample_weight="w")
    truths = truth_of([0, 1, 1]), truth_of([0] * 20), truth_of([0, 1] * 20, groups=np.repeat([0, 1], 20))
    even = probabilities([0.5, 0.5])
    for compare, words in (
        (lambda: two(truth_of([0, 1], weight=[0.0, 0.0]), even, even), "all rows have a weight of 0"),
        (lambda: truth_of([0, 1]).judged("a", even * math.nan), "a predicts NaN"),
        (lambda: trials.splits(truths[0]), "too few rows"),
        (lambda: trials.splits(truths[1]), "models of part 1 would learn rows of one class"),
        (lambda: trials.splits(truths[2]), "too few groups"),
        (lambda: trials.splits(truths[2], in_order=True), "parts groups"),
        (lambda: trials.read(open_source({"a": [1.0, 2.0]}), Plan(), Plan().bad_rows()), "no target"),
        (lambda: trials.compare(both, {}, one), "one class only, 'a'"),
        (lambda: trials.compare(both, dict(zip("mn", trained, strict=True))), "m and n have no class in common"),
        (lambda: trials.compare(data_of(ROWS), {}, weightless, n_jobs=1), "weight of 0, so that nothing is learned"),
        (lambda: data_of(ROWS | {"y": [math.inf] * 60}, on_bad_row="skip"), "no row could be used: column 'y'"),
    ):
        with pytest.raises(TunefreeError, match=words):
            compare()
