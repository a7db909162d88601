"""What predicts once learning has ended: the bound on its shares, no influence on the way, and nothing that depends on
cuts or on interruptions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from tests.model.interrupted import (
    check_that_further_rows_are_learned_to_the_same_bytes,
    check_that_training_goes_on_to_the_same_bytes,
)
from tests.model.test_additive_bank import learn, mixed_rows, model_of, saved, targets_of
from tests.strategies import OBJECTIVES
from tunefree.core.numbers import CEILING
from tunefree.core.rows import part
from tunefree.model import pruning, schedule, snapshots, soft_bayes
from tunefree.model.decay import AGES, Decay, add_losses
from tunefree.model.model import Model
from tunefree.model.soft_bayes import TEMPERATURES, Deployed, excess, prior_of
from tunefree.model.weights import in_units, moved, side_by_side
from tunefree.workflows.training import Plan

N = 3  # members


@st.composite
def judged(draw):
    """Targets, weights, and what copies predicted: margins of any size, some of them always right or wrong."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, copies = draw(st.integers(1, 150)), draw(st.integers(1, 2))
    y = rng.choice([-1.0, 1.0], n)
    sizes = 10.0 ** rng.uniform(-2, draw(st.sampled_from([0, 1, 4])), (copies, 2 * N, 1, 1))
    signs = np.where(rng.random((1, 2 * N, 1, 1)) < 0.3, y[None, None, :, None], 1.0)
    predictions = sizes * rng.normal(0.3, 1.0, (copies, 2 * N, n, 1)) * signs
    weight = 10.0 ** rng.uniform(-3, 3, n) if draw(st.booleans()) else np.ones(n)
    mixture = rng.dirichlet(np.ones(N), copies)
    return y, weight, predictions, mixture


def deployed_of(mixture, temperature=1.0):
    shares = np.concatenate([mixture, 0.0 * mixture], axis=1)
    every = np.ones(len(mixture))
    return Deployed(mixture, shares, temperature * every, every, -np.inf * every, np.inf * every)


def judge(rule, y, weight, predictions, mixture):
    losses = np.empty((len(predictions), len(y)))
    soft_bayes.judge(rule, OBJECTIVES["logistic"], y, weight, deployed_of(mixture), predictions, losses)
    return losses


@given(judged())
@settings(deadline=None)
def test_the_shares_lose_no_more_than_the_theorem_says(stream):
    y, weight, predictions, mixture = stream
    rule = soft_bayes.create(prior_of(N))
    judge(rule, y, weight, predictions, mixture)
    assert rule.rounds == len(y) * len(predictions)
    assert rule.shares.sum() == pytest.approx(1.0) and rule.means.sum() == pytest.approx(1.0)
    for c, prior in enumerate(rule.prior):
        assert rule.loss - rule.losses[c] <= excess(rule, prior) * (1.0 + 1e-9) + 1e-9 * rule.losses[c]


@given(judged())
@settings(deadline=None, max_examples=20)
def test_losses_and_shares_are_those_of_the_formulas(stream):
    y, weight, predictions, mixture = stream
    rule, rate, shares = soft_bayes.create(prior_of(N)), 0.0, prior_of(N)
    losses = judge(rule, y, weight, predictions, mixture)
    heaviest, total, i = 0.0, 0.0, 0
    for row in range(len(y)):
        for s in range(len(predictions)):
            of_members = np.logaddexp(0.0, -y[row] * predictions[s, :, row, 0])
            least = of_members.min()
            likelihoods = np.exp(least - of_members)
            likelihoods = np.concatenate([[mixture[s] @ likelihoods[:N]], likelihoods])
            i, heaviest = i + 1, max(heaviest, weight[row])
            before, rate = rate, 4.0 / np.sqrt(20.0 + i) / heaviest
            kept = rate / before if before else 0.0
            shares = kept * shares + (1.0 - kept) * prior_of(N)
            total += weight[row] * (least - np.log(shares @ likelihoods))
            shares = shares * (1.0 - rate * weight[row] + rate * weight[row] * likelihoods / (shares @ likelihoods))
            if likelihoods[0] > 0.0 and (mixture[s] @ np.exp(-of_members[:N])) > 0.0:
                expected = -np.log(mixture[s] @ np.exp(-of_members[:N]))
                assert losses[s, row] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(rule.shares, shares, rtol=1e-9, atol=1e-15)
    assert rule.loss == pytest.approx(total, rel=1e-9)


def test_candidates_that_are_dropped_leave_the_bound_to_the_others():
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 400)
    predictions = rng.normal(size=(1, 2 * N, 400, 1)) + y[:, None] * np.linspace(0.0, 1.0, 2 * N)[:, None, None]
    rule = soft_bayes.create(prior_of(N))
    first = rule.prior[1:].copy()
    judge(rule, y[:200], np.ones(200), predictions[:, :, :200], np.array([[0.5, 0.25, 0.25]]))
    stays = np.array([True, False, True])
    both = np.concatenate([stays, stays])
    before = rule.shares.copy()
    rule = soft_bayes.without(rule, np.concatenate([[True], both]))
    assert (rule.shares >= before[np.concatenate([[True], both])]).all()
    judge(rule, y[200:], np.ones(200), np.ascontiguousarray(predictions[:, both, 200:]), np.array([[0.5, 0.5]]))
    for loss, prior in zip(rule.losses[1:], first[both], strict=True):
        assert rule.loss - loss <= excess(rule, prior)


def test_a_temperature_is_taken_only_where_it_saves_enough():
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 3000)
    right = np.where(rng.random(3000) < 0.75, y, -y)
    rule = soft_bayes.create(prior_of(N))
    predictions = np.tile(4.0 * right[:, None], (1, 2 * N, 1, 1))  # log-odds 4 where 1.1 would be right
    judge(rule, y[:40], np.ones(40), predictions[:, :, :40], np.full((1, N), 1.0 / N))
    assert soft_bayes.temperature(rule) == 1.0
    judge(rule, y[40:], np.ones(2960), predictions[:, :, 40:], np.full((1, N), 1.0 / N))
    best = TEMPERATURES[int(rule.at_temperatures.argmin())]  # log-odds of 1.2
    assert best == 0.3 and best <= soft_bayes.temperature(rule) <= 0.4  # a little reluctant


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_cuts_are_at_the_same_fractions_of_every_octave(rows, further):
    for cut in schedule.cuts_between(rows, rows + min(further, 4 * rows + 100)):
        assert schedule.is_cut(cut) and schedule.is_cut(2 * cut) and rows < cut
    assert rows > 1024 or schedule.stride(max(rows, 1)) == 1
    assert rows <= 1024 or 256 <= rows / schedule.stride(rows) / 2 <= 512


TASKS = pytest.mark.parametrize("task", ["classification", "regression"])


def drifting(n=3000, seed=0, task="classification"):
    """A table whose target changes its meaning along the rows: steadily, or with a season where it is a number."""
    rows, _ = mixed_rows(n, seed, p=5)
    turn = np.linspace(0.0, 3.0, n) if task == "classification" else 2.0 * np.sin(np.arange(n) / 50.0)
    score = 2.0 * np.cos(turn) * rows.numbers[:, 0] + 2.0 * np.sin(turn) * rows.numbers[:, 1] + rows.numbers[:, 2]
    return rows, targets_of(task, score + 0.5 * np.random.default_rng(seed).normal(size=n))


@TASKS
def test_predictions_after_the_end_have_evidence_and_those_on_the_way_do_not_change(task):
    rows, y = drifting(task=task)
    model, without = model_of(task, rows), model_of(task, rows)
    without.deployment = None
    first = part(rows, 0, 2000)
    np.testing.assert_array_equal(learn(model, first, y[:2000]), learn(without, first, y[:2000]))
    assert model.deployment.predicts and model.deployment.copies
    last = part(rows, 2000, 3000)
    found, before = (each.predict(last) for each in (model, without))
    assert not np.array_equal(found, before)
    later = y[2000:] if task == "regression" else labels(y[2000:])
    assert model.losses(later, found).mean() < without.losses(later, before).mean()
    expected = model.deployment.expectation()
    assert expected.horizon == 2000 and expected.loss > expected.recent
    assert expected.drifts == (task == "classification")  # within a season following is no better than standing still


def labels(y):
    from tunefree.model.targets import Labels

    return Labels.of(y)


@TASKS
@given(st.lists(st.integers(0, 1500), max_size=4), st.booleans())
@settings(deadline=None, max_examples=6)
def test_nothing_depends_on_cuts(task, cuts, weighted):
    rows, y = drifting(1500, task=task)
    rng = np.random.default_rng(1)
    weight = np.where(rng.random(1500) < 0.2, 0.0, rng.choice([0.5, 2.0, 10.0], 1500)) if weighted else np.ones(1500)
    whole, pieces = model_of(task, rows), model_of(task, rows)
    learn(whole, rows, y, (), weight)
    learn(pieces, rows, y, cuts, weight)
    assert whole.deployment.decay.copies
    assert saved(whole) == saved(pieces)
    np.testing.assert_array_equal(whole.predict(rows), pieces.predict(rows))


@TASKS
def test_saved_models_predict_alike_and_go_on_alike(task):
    rows, y = drifting(2000, task=task)
    model = model_of(task, rows)
    learn(model, part(rows, 0, 1200), y[:1200])
    arrays, header = model.save_state()
    left_out = ".range" if task == "classification" else "nothing"  # as older versions wrote files, of classes only
    again = Model.restore({name: np.array(own) for name, own in arrays.items() if not name.endswith(left_out)}, header)
    rest = part(rows, 1200, 2000)
    np.testing.assert_array_equal(model.predict(rest), again.predict(rest))
    learn(model, rest, y[1200:])
    learn(again, rest, y[1200:])
    assert saved(model) == saved(again)


def test_a_class_that_comes_late_ends_copies_and_keeps_averages():
    rows, score = mixed_rows(1800, p=5)
    y = np.where(np.arange(1800) < 1000, targets_of("classification", score), targets_of("classification", score, 3))
    model = model_of("classification", rows)
    learn(model, rows, y)
    assert len(model.classes) == 3 and model.deployment.averages[0][0].shape[1] == 3
    assert {own.snapshot.n_outputs for own in model.deployment.copies} <= {3}
    assert model.predict(rows).shape == (1800, 3)
    assert model.losses(labels(y[1700:]), model.predict(part(rows, 1700, 1800))).mean() < np.log(3.0)


@TASKS
def test_members_that_are_dropped_leave_snapshots_that_predict_as_before(task):
    rows, y = drifting(1500, task=task)
    model = model_of(task, rows)
    learn(model, rows, y)
    own, groups = model.deployment.copies[-1].snapshot, model.ensemble.groups
    stays = np.array([True, False, True])
    before = snapshots.predict([own], groups, rows)[0]
    model.prune(~stays)
    after = snapshots.predict([model.deployment.copies[-1].snapshot], model.ensemble.groups, rows)[0]
    np.testing.assert_array_equal(after, before[np.concatenate([stays, stays])])
    learn(model, rows, y)
    assert np.isfinite(model.predict(rows)).all()


def test_further_passes_end_the_evidence():
    rows, y = drifting(1000)
    model = model_of("classification", rows)
    learn(model, rows, y)
    model.begin_pass()
    learn(model, rows, y, again=True)
    assert model.deployment is None and np.isfinite(model.predict(rows)).all()


def test_averages_are_those_of_the_weights():
    rng = np.random.default_rng(0)
    average, weights, seen = None, [], [256, 280, 304, 332]
    for rows in seen:
        now = rng.normal(size=(5, 2)), np.full(5, float(rows))  # in units that grow
        weights.append(now[0] / now[1][:, None])
        step = 1.0 if average is None else 1.0 - (seen[len(weights) - 2] / rows) ** 3
        average = moved(average, now, step)
    shares = np.diff(np.array([0, *seen]) ** 3) / seen[-1] ** 3
    np.testing.assert_allclose(average[0] / average[1][:, None], np.tensordot(shares, weights, 1))


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=30)
def test_weights_in_other_units_are_those_of_the_formulas(seed):
    rng = np.random.default_rng(seed)

    def read(n):
        units = rng.choice([0.0, 1e-200, 0.5, 3.0, 1e200], n)
        return np.where(units[:, None] > 0.0, rng.normal(size=(n, 2)) * rng.choice([1.0, 1e140], (n, 1)), 0.0), units

    (old, own), (weights, units) = average, now = read(3), read(5)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratios = np.where(own > 0.0, units[:3] / own, 0.0)
        converted = np.zeros((5, 2))
        converted[:3] = np.clip(np.nan_to_num(old * ratios[:, None]), -CEILING, CEILING)
    np.testing.assert_array_equal(in_units(average, units), converted)
    np.testing.assert_array_equal(moved(average, now, 0.3)[0], converted + 0.3 * (weights - converted))
    together, common = side_by_side([average, now])
    np.testing.assert_array_equal(common, np.maximum(units, np.append(own, [0.0, 0.0])))
    np.testing.assert_array_equal(together[:, :2], in_units(average, common))
    np.testing.assert_array_equal(together[:, 2:], in_units(now, common))


def test_losses_by_age_are_relative_to_the_loss_before():
    decay = Decay()
    for rows in schedule.cuts_between(256, 4096):
        n = rows - schedule.ROWS[schedule.place(rows) - 1]
        decay.go_on(rows, np.ones(n), np.full(n, 0.5))
    own = decay.add(2048, 2048)
    counts = np.arange(2049, 4097)
    add_losses(own, counts, np.ones(2048), np.linspace(0.5, 1.0, 2048), np.full(2048, 0.5))
    found = decay.expectation(4096)
    assert found.recent == pytest.approx(0.5) and found.loss == pytest.approx(0.75, rel=1e-3) and found.drifts
    assert len(found.ages) == AGES and found.ages == sorted(found.ages) and found.retrain_every == 512
    assert Decay().expectation(4096) is None


def written(task, folder, names, n=2500):
    """Files of rows that drift."""
    rows, y = drifting(n, task=task)
    columns = {f"x{j}": rows.numbers[:, j] for j in range(rows.numbers.shape[1])}
    table = pa.table(columns | {"y": y if task == "regression" else np.where(y == 1, "yes", "no")})
    for k, name in enumerate(names):
        csv.write_csv(table.slice(k * n // len(names), n // len(names)), folder / name)
    return [folder / name for name in names]


def has_evidence(model):
    return model.deployment is not None and model.deployment.predicts and model.deployment.copies


@TASKS
def test_an_interrupted_training_goes_on_to_the_same_bytes(task, tmp_path):
    (path,) = written(task, tmp_path, ["rows.csv"])
    check_that_training_goes_on_to_the_same_bytes(path, Plan(target="y", refit=0), tmp_path, has_evidence)


@TASKS
def test_evidence_goes_on_with_further_rows_to_the_same_bytes(task, tmp_path):
    paths = written(task, tmp_path, ["first.csv", "second.csv"])
    check_that_further_rows_are_learned_to_the_same_bytes(paths, Plan(target="y", refit=0), tmp_path, has_evidence)


def test_a_member_that_stands_still_well_is_not_dropped():
    rows, y = drifting(400)
    model = model_of("classification", rows)
    learn(model, rows, y)
    shares, rounds = np.array([0.9, 0.1, 0.0]), pruning.FIRST_PRUNING
    dropped = [
        pruning.negligible_members(model.ensemble, shares, np.array(standing), rounds).tolist()
        for standing in ([0.0, 0.0, 0.0], [0.0, 0.0, 0.5])
    ]
    assert dropped == [[False, False, True], [False, False, False]]
    assert model.deployment.shares_of_members().shape == (3,)
