"""The pool: what mixing costs, what it agrees with, and what it never does."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import as_file, files

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import naive
from tunefree import losses
from tunefree.core import storage, threads
from tunefree.core.rows import dense, part
from tunefree.losses import objectives
from tunefree.losses.aggregation import aggregate
from tunefree.losses.objectives import measure
from tunefree.model import aggregation, model, pruning
from tunefree.model.additive_bank import FIRST_ROWS
from tunefree.model.mixture import Mixture, combine, excess, mix, without
from tunefree.model.model import Model
from tunefree.model.pool import MEMBERS, waits
from tunefree.model.targets import Labels
from tunefree.stream.source import open_source
from tunefree.workflows.training import Plan, Watcher, train

quick = settings(max_examples=60, deadline=None)
thorough = settings(max_examples=200, deadline=None)
LOGISTIC = objectives.Binary(losses.Logistic(), 0.0)
MULTINOMIAL = objectives.Multinomial(1.0)
AGAINST = objectives.OneAgainstAll(losses.Hinge(), 0.0)
# Few, since each is compiled for mixing.
KINDS = {"logistic": LOGISTIC, "multinomial": MULTINOMIAL}
REGRESSIONS = {
    "square": objectives.regression(losses.Square()),
    "absolute": objectives.regression(losses.Absolute()),
    "huber": objectives.regression(losses.huber(0.5)),
}
kinds = pytest.mark.parametrize("kind", [*KINDS, *REGRESSIONS])


def is_numeric(kind):
    return kind in REGRESSIONS


def objective_of(kind):
    return (KINDS | REGRESSIONS)[kind]


def rate_of(kind):
    return math.inf if is_numeric(kind) else 1.0


def drawn(rng, kind, n, n_members, spread):
    """Members of all qualities: targets (n,), and predictions (N, n, K) that are right, wrong, noisy or constant."""
    K = 1 if kind != "multinomial" else int(rng.integers(2, 5))
    if is_numeric(kind):
        y = rng.normal(size=n) * rng.choice([1e-3, 1.0, 1e3])
        truth = y[:, None]
    elif kind == "logistic":
        y = rng.choice([-1.0, 1.0], n)
        truth = y[:, None]
    else:
        y = rng.integers(0, K, n).astype(float)
        truth = 2.0 * (np.arange(K) == y[:, None]) - 1.0
    skill = rng.uniform(-1.0, 1.0, (n_members, 1, 1)) * rng.choice([0.0, 1.0], (n_members, n, 1), p=[0.2, 0.8])
    noise = rng.normal(size=(n_members, n, K)) * np.abs(truth).mean()
    return y, spread * (skill * truth + rng.choice([0.1, 1.0, 3.0]) * noise)


def mixed(kind, y, weight, predictions, cuts=(), mixture=None):
    """The mixture, and what it predicted; the members' predictions are left as they are."""
    mixture = mixture or Mixture.create(len(predictions), rate_of(kind))
    aggregated = np.empty(predictions.shape[1:])
    edges = [0, *cuts, len(y)]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        given = predictions[:, start:stop].copy()
        mix(mixture, objective_of(kind), y[start:stop], weight[start:stop], given, aggregated[start:stop])
    return mixture, aggregated


def total(kind, y, weight, predictions):
    """The sum of weighted losses."""
    row_losses = np.empty(len(y))
    measure(objective_of(kind), y, np.ascontiguousarray(predictions), row_losses)
    return float(weight @ row_losses)


def totals(kind, y, weight, predictions):
    return np.array([total(kind, y, weight, prediction) for prediction in predictions])


def log_probabilities(margins):
    """Of the classes, (..., K); of "no" and "yes" where there is one margin."""
    wide = np.concatenate([np.zeros_like(margins), margins], axis=-1) if margins.shape[-1] == 1 else margins
    return wide - np.logaddexp.reduce(wide, axis=-1, keepdims=True)


def naive_blend(kind):
    def aggregate(shares, predictions):
        if is_numeric(kind):
            return shares @ predictions
        logs = np.logaddexp.reduce(np.log(shares)[:, None] + log_probabilities(predictions), axis=0)
        return logs[1:] - logs[:1] if predictions.shape[1] == 1 else logs

    return aggregate


def naive_loss(kind, y):
    def loss(t, prediction):
        if is_numeric(kind):
            return losses.value(objective_of(kind).loss, y[t], prediction[0])
        return -log_probabilities(prediction)[int(y[t] > 0) if kind == "logistic" else int(y[t])]

    return loss


@kinds
@quick
@given(seed=st.integers(0, 2**32), n=st.integers(1, 40), n_members=st.integers(2, 6), weighted=st.booleans())
def test_agrees_with_the_papers(kind, seed, n, n_members, weighted):
    rng = np.random.default_rng(seed)
    y, predictions = drawn(rng, kind, n, n_members, 1.0)
    weight = 10.0 ** rng.uniform(-2, 1, n) if weighted else np.ones(n)
    mixture, aggregated = mixed(kind, y, weight, predictions)
    if is_numeric(kind):  # moved into the range of the targets so far
        lowest, highest = np.minimum.accumulate(y)[:-1, None], np.maximum.accumulate(y)[:-1, None]
        predictions[:, 1:] = np.clip(predictions[:, 1:], lowest, highest)
    by_round = predictions.transpose(1, 0, 2)
    expected, shares, means = naive.mixture(by_round, naive_blend(kind), naive_loss(kind, y), weight, rate_of(kind))
    np.testing.assert_allclose(aggregated, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(mixture.shares, shares, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(mixture.means, means, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@thorough
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 300),
    n_members=st.integers(2, 12),
    spread=st.sampled_from([0.1, 1.0, 10.0, 1e3]),
    weighted=st.booleans(),
)
def test_log_loss_exceeds_that_of_the_best_member_by_two_logarithms(kind, seed, n, n_members, spread, weighted):
    rng = np.random.default_rng(seed)
    y, predictions = drawn(rng, kind, n, n_members, spread)
    weight = rng.uniform(0.0, 1.0, n) ** rng.choice([1.0, 4.0]) if weighted else np.ones(n)
    mixture, aggregated = mixed(kind, y, weight, predictions)
    best = totals(kind, y, weight, predictions).min()
    price = math.log(n_members) + math.log(n + 1)
    assert total(kind, y, weight, aggregated) <= best + price + 1e-9 * (1 + best)
    assert excess(mixture, n_members) <= price + 1e-9 * (1 + best)


def test_the_price_of_the_best_of_many_is_paid():
    """One member is right, the others are sure and wrong: there the bound is nearly attained."""
    y = np.ones(1)
    predictions = np.full((50, 1, 1), -60.0)
    predictions[17] = 60.0
    _, aggregated = mixed("logistic", y, np.ones(1), predictions)
    assert total("logistic", y, np.ones(1), aggregated) == pytest.approx(math.log(50))


@kinds
@thorough
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 200),
    n_members=st.integers(2, 8),
    spread=st.sampled_from([0.1, 1.0, 10.0, 1e6]),
    heavy=st.booleans(),
)
def test_no_loss_exceeds_that_of_the_best_member_by_more_than_the_excess(kind, seed, n, n_members, spread, heavy):
    """Sample weights up to 1e3, and members that are better for a while only."""
    rng = np.random.default_rng(seed)
    y, predictions = drawn(rng, kind, n, n_members, spread)
    if rng.random() < 0.5:
        predictions[:, n // 2 :] = predictions[rng.permutation(n_members), n // 2 :]
    weight = 10.0 ** rng.uniform(-3, 3, n) if heavy else np.ones(n)
    mixture, aggregated = mixed(kind, y, weight, predictions)
    best = totals(kind, y, weight, predictions).min()
    assert total(kind, y, weight, aggregated) <= best + excess(mixture, n_members) + 1e-9 * (1 + best)


@kinds
@thorough
@given(seed=st.integers(0, 2**32), n=st.integers(2, 120), n_members=st.integers(3, 8), heavy=st.booleans())
def test_after_members_are_let_go_the_excess_holds_towards_those_that_stay(kind, seed, n, n_members, heavy):
    rng = np.random.default_rng(seed)
    y, predictions = drawn(rng, kind, n, n_members, 1.0)
    weight = 10.0 ** rng.uniform(-3, 3, n) if heavy else rng.uniform(0.0, 1.0, n)
    cut = int(rng.integers(1, n))
    mixture, before = mixed(kind, y[:cut], weight[:cut], predictions[:, :cut])
    stays = np.zeros(n_members, bool)
    stays[rng.permutation(n_members)[: rng.integers(2, n_members)]] = True
    mixture, after = mixed(kind, y[cut:], weight[cut:], predictions[stays][:, cut:], mixture=without(mixture, stays))
    assert mixture.shares.sum() == pytest.approx(1.0)
    assert mixture.means.sum() == pytest.approx(1.0)
    best = totals(kind, y, weight, predictions[stays]).min()
    row_losses = total(kind, y[:cut], weight[:cut], before) + total(kind, y[cut:], weight[cut:], after)
    assert row_losses <= best + excess(mixture, n_members) + 1e-9 * (1 + best)
    if not (heavy or is_numeric(kind)):
        assert row_losses <= best + math.log(n_members) + math.log(n + 1) + 1e-9 * (1 + best)


@kinds
@quick
@given(seed=st.integers(0, 2**32), n=st.integers(1, 60), data=st.data())
def test_batch_cuts_do_not_matter(kind, seed, n, data):
    rng = np.random.default_rng(seed)
    y, predictions = drawn(rng, kind, n, 4, 1.0)
    weight = rng.choice([0.0, 0.3, 1.0, 20.0], n)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    (one, whole), (other, pieces) = (mixed(kind, y, weight, predictions, at) for at in ((), cuts))
    np.testing.assert_array_equal(whole, pieces)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


@kinds
def test_rows_of_weight_0_are_predicted_and_judge_nobody(kind):
    rng = np.random.default_rng(0)
    y, predictions = drawn(rng, kind, 60, 4, 1.0)
    weight = (rng.random(60) < 0.5).astype(float)
    kept = weight > 0
    one, with_zeros = mixed(kind, y, weight, predictions)
    other, alone = mixed(kind, y[kept], weight[kept], predictions[:, kept])
    np.testing.assert_array_equal(with_zeros[kept], alone)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(
    seed=st.integers(0, 2**32),
    n_members=st.integers(1, 6),
    scale=st.sampled_from([1e-300, 1e-10, 1.0, 30.0, 800.0, 1e5]),
)
def test_what_is_blended_is_the_mean_of_the_probabilities(kind, seed, n_members, scale):
    rng = np.random.default_rng(seed)
    K = 1 if kind == "logistic" else 4
    margins, shares = scale * rng.normal(size=(n_members, 5, K)), rng.dirichlet(np.full(n_members, 0.3))
    shares = np.maximum(shares, 1e-300)
    mixture = Mixture.create(n_members, 1.0)._replace(means=shares)
    aggregated = np.empty((5, K))
    combine(mixture, KINDS[kind], margins.copy(), aggregated)
    logs = np.array([naive_blend(kind)(shares, margins[:, i]) for i in range(5)])
    np.testing.assert_allclose(aggregated, logs, rtol=1e-9, atol=1e-12)
    probabilities = np.exp(log_probabilities(margins))
    np.testing.assert_allclose(
        np.exp(log_probabilities(aggregated)), np.tensordot(shares, probabilities, axes=1), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("objective", [AGAINST, REGRESSIONS["square"]])
def test_what_is_blended_else_is_the_mean(objective):
    """Uncompiled: the same bodies serve Python."""
    rng = np.random.default_rng(1)
    shares, predictions, aggregated = rng.dirichlet(np.ones(4)), rng.normal(size=(4, 3)), np.empty(3)
    aggregate(objective, shares, predictions, aggregated)
    np.testing.assert_allclose(aggregated, shares @ predictions)


def extremes(kind, case):
    """Forty rounds of three members, and their targets."""
    rng = np.random.default_rng(2)
    y, predictions = drawn(rng, kind, 40, 3, 1.0)
    sides = rng.choice([-1.0, 1.0], predictions.shape)
    if case == "huge":
        return y, 1e300 * sides
    if case == "one of them huge":
        return y, np.concatenate([1e300 * sides[:1], predictions[1:]])
    if case == "one of them wrong and sure":
        truth = y[:, None] if predictions.shape[2] == 1 else 2.0 * (np.arange(predictions.shape[2]) == y[:, None]) - 1
        return y, np.concatenate([-1e300 * truth[None], predictions[1:]])
    if case == "identical":
        return y, np.broadcast_to(predictions[:1], predictions.shape).copy()
    if case == "identical and huge":
        return y, np.broadcast_to(1e300 * sides[:1], predictions.shape).copy()
    if case == "growing":
        return y, sides * 10.0 ** np.linspace(-300, 300, 40)[None, :, None]
    return y * (1e300 if is_numeric(kind) else 1.0), 1e-300 * sides


CASES = (
    "huge", "one of them huge", "one of them wrong and sure", "identical", "identical and huge", "growing", "tiny",
)  # fmt: skip


@kinds
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("heaviest", [1.0, 1e3, 1e300])
def test_extreme_predictions_give_finite_results(kind, case, heaviest):
    y, predictions = extremes(kind, case)
    weight = np.where(np.arange(40) % 7 == 0, heaviest, 1.0)
    mixture, aggregated = mixed(kind, y, weight, predictions)
    assert np.isfinite(aggregated).all()
    for array in (mixture.shares, mixture.means):
        assert np.isfinite(array).all()
        assert (array >= 0.0).all()
        assert array.sum() == pytest.approx(1.0)
    assert math.isfinite(excess(mixture, 3))
    assert math.isfinite(excess(without(mixture, np.array([True, False, True])), 3))
    after = np.empty_like(aggregated)
    combine(mixture, objective_of(kind), predictions.copy(), after)
    assert np.isfinite(after).all()


@pytest.mark.parametrize("kind", KINDS)
def test_identical_members_are_mixed_to_what_they_say(kind):
    y, predictions = extremes(kind, "identical")
    _, aggregated = mixed(kind, y, np.ones(40), predictions)
    np.testing.assert_allclose(log_probabilities(aggregated), log_probabilities(predictions[0]), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_is_always_wrong_loses_its_share(kind):
    y, predictions = extremes(kind, "one of them wrong and sure")
    mixture, _ = mixed(kind, y, np.ones(40), predictions)
    assert mixture.shares[0] < 1 / 40


@kinds
def test_a_member_that_becomes_the_best_is_the_best_soon(kind):
    rng = np.random.default_rng(3)
    y, _ = drawn(rng, kind, 2000, 2, 1.0)
    if kind == "multinomial":
        y = y % 2
    right = y[:, None] if kind != "multinomial" else np.c_[1.0 - y, y]
    early = np.arange(2000)[:, None] < 1000
    predictions = np.stack([np.where(early, right, -right), np.where(early, -right, right)])
    mixture, aggregated = mixed(kind, y, np.ones(2000), predictions)
    warmup_predictions = total(kind, y[1100:], np.ones(900), aggregated[1100:])
    assert warmup_predictions < 1.2 * total(kind, y[1100:], np.ones(900), predictions[1, 1100:]) + 0.05 * total(
        kind, y[1100:], np.ones(900), predictions[0, 1100:]
    )
    assert mixture.shares[1] > 0.9


def put_to_sleep(rng, predictions, how):
    """Which members sleep in which rounds (N, n), at least one of them awake but where all sleep."""
    n_members, n = predictions.shape[:2]
    sleeps = rng.random((n_members, n)) < 0.4
    if how == "at first":
        sleeps = np.arange(n) < rng.integers(0, n + 1, n_members)[:, None]
    sleeps[rng.integers(0, n_members, n), np.arange(n)] = False
    if how == "all":
        sleeps[:, rng.random(n) < 0.3] = True
    sleeping = predictions.copy()
    sleeping[sleeps] = np.nan
    return sleeps, sleeping


@pytest.mark.parametrize("how", ["now and then", "at first", "all"])
@kinds
@quick
@given(seed=st.integers(0, 2**32), n=st.integers(1, 80), n_members=st.integers(2, 6))
@example(seed=33427929, n=57, n_members=6)  # losses that only rounding told apart once set the rate
def test_who_sleeps_predicts_what_the_others_do(kind, how, seed, n, n_members):
    """The mixture with sleepers is that of members that wrote down, where they slept, what was mixed without them.

    Rounds in which all sleep tell nothing of anybody, and do not count.
    """
    rng = np.random.default_rng(seed)
    y, predictions = drawn(rng, kind, n, n_members, 1.0)
    weight = rng.choice([0.0, 0.5, 1.0], n)
    sleeps, sleeping = put_to_sleep(rng, predictions, how)
    mixture, aggregated = mixed(kind, y, weight, sleeping)
    assert np.isfinite(aggregated).all()
    awake = np.where(sleeps[:, :, None], aggregated, predictions)
    weight = np.where(sleeps.all(axis=0), 0.0, weight)
    other, expected = mixed(kind, y, weight, awake)
    np.testing.assert_allclose(aggregated, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mixture.shares, other.shares, rtol=1e-6, atol=1e-12)
    best = totals(kind, y, weight, awake).min()
    assert total(kind, y, weight, aggregated) <= best + excess(mixture, n_members) + 1e-9 * (1 + best)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(seed=st.integers(0, 2**32), n=st.integers(1, 200), n_members=st.integers(2, 8))
def test_log_loss_exceeds_that_of_the_best_while_it_is_awake_by_two_logarithms(kind, seed, n, n_members):
    rng = np.random.default_rng(seed)
    y, predictions = drawn(rng, kind, n, n_members, 1.0)
    sleeps, sleeping = put_to_sleep(rng, predictions, "now and then")
    mixture, aggregated = mixed(kind, y, np.ones(n), sleeping)
    for m in range(n_members):
        awake = (~sleeps[m]).astype(float)
        row_losses, own = total(kind, y, awake, aggregated), total(kind, y, awake, predictions[m])
        assert row_losses <= own + math.log(n_members) + math.log(n + 1) + 1e-9 * (1 + own)


@pytest.mark.parametrize("kind", KINDS)
def test_who_sleeps_neither_gains_nor_loses(kind):
    rng = np.random.default_rng(5)
    y, predictions = drawn(rng, kind, 40, 3, 1.0)
    mixture, _ = mixed(kind, y, np.ones(40), predictions)
    before = mixture.shares.copy()
    y, predictions = drawn(rng, kind, 1, 3, 1.0)
    if kind == "multinomial":
        y = np.zeros(1)
    predictions[1] = np.nan
    mixed(kind, y, np.ones(1), predictions, mixture=mixture)
    fixed_share_cost = 1.0 / 42.0
    assert mixture.shares[1] == pytest.approx((1.0 - fixed_share_cost) * before[1] + fixed_share_cost / 3)
    assert mixture.shares[0] != pytest.approx((1.0 - fixed_share_cost) * before[0] + fixed_share_cost / 3, rel=1e-6)


@kinds
def test_new_rows_are_predicted_by_who_is_awake(kind):
    rng = np.random.default_rng(6)
    y, predictions = drawn(rng, kind, 30, 4, 1.0)
    mixture, _ = mixed(kind, y, np.ones(30), predictions)
    aggregated, expected = np.empty(predictions.shape[1:]), np.empty(predictions.shape[1:])
    sleeping = predictions.copy()
    sleeping[[0, 2]] = np.nan
    combine(mixture, objective_of(kind), sleeping, aggregated)
    without_them = without(mixture, np.array([False, True, False, True]))
    combine(without_them, objective_of(kind), predictions[[1, 3]], expected)
    np.testing.assert_allclose(aggregated, expected, rtol=1e-12, atol=1e-12)
    combine(mixture, objective_of(kind), np.full_like(predictions, np.nan), aggregated)
    assert np.isfinite(aggregated).all()


@cache
def census():
    with as_file(files("tunefree") / "data" / "adult.parquet") as path:
        return open_source(path)


class Recorder(Watcher):
    """Keeps what was predicted, before each row was learned, and what it cost."""

    def __init__(self):
        self.predictions, self.total, self.rows = [], 0.0, 0

    def step(self, trained, step):
        self.predictions.append(step.predictions)
        self.total += float(step.row_losses.sum())
        self.rows += len(step.row_losses)


def recorded(**options):
    recorder = Recorder()
    train(census(), Plan(target="income", ignore=("split",), refit=0, **options), recorder)
    return recorder


@cache
def census_alone():
    """Each member on its own."""
    return [recorded(learner=one.learner, settings=one.settings, view=one.view) for one in MEMBERS]


def recorded_inside(monkeypatch):
    """What members of pools predict, (N, n, K) a piece, from here on."""
    inside = []

    def recording(mixture, objective, y, weight, predictions, aggregated):
        inside.append(predictions.copy())
        mix(mixture, objective, y, weight, predictions, aggregated)

    monkeypatch.setattr(aggregation, "mix", recording)
    return inside


@pytest.mark.parametrize("first", [None, 2**9])
def test_on_census_data_the_pool_is_as_good_as_its_best_member(first, monkeypatch):
    if first:
        monkeypatch.setattr(pruning, "FIRST_PRUNING", first)
    pooled, alone = recorded(), census_alone()
    assert pooled.rows == alone[0].rows == 48_842
    best = min(one.total for one in alone)
    assert pooled.total <= best + math.log(len(MEMBERS)) + math.log(pooled.rows + 1)
    assert best < 0.33 * pooled.rows


def test_on_census_data_members_of_the_pool_predict_as_they_do_alone(monkeypatch):
    monkeypatch.setattr(pruning, "FIRST_PRUNING", math.inf)
    inside = recorded_inside(monkeypatch)
    recorded()
    for member, alone in zip(np.concatenate(inside, axis=1), census_alone(), strict=True):
        np.testing.assert_array_equal(np.nan_to_num(member), np.concatenate(alone.predictions))


def rows_of(n, seed=0, n_classes=2, d=6):
    """Rows whose features differ in scale, and labels that depend on them but for noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, n_classes)) + rng.normal(size=(n, n_classes))).argmax(axis=1)
    return X * np.logspace(-2, 2, d), y


def learned(X, y, weight=None, task="classification", cuts=()):
    """A pool after one pass, and what it predicted on the way."""
    learner = Model(task, n_features=X.shape[1] + 1, classes=sorted(set(y.tolist())) if task[0] == "c" else [])
    block, weight = dense(X), np.ones(len(X)) if weight is None else weight
    shown, edges = [], [0, *cuts, len(X)]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        targets = Labels.of(y[start:stop]) if task == "classification" else y[start:stop]
        shown.append(learner.learn(part(block, start, stop), targets, weight[start:stop])[0])
    return learner, np.concatenate(shown)


def model_bytes(learner, path):
    storage.save(path, *learner.save_state())
    return path.read_bytes()


def log_loss(learner, X, y):
    return learner.log_losses(Labels.of(y), learner.predict(dense(X))).mean()


@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_a_pool_of_regressors_is_as_good_as_its_best_member_alone(loss, monkeypatch):
    """Targets whose range keeps growing, in whose range members are confined only inside the pool."""
    X, _ = rows_of(1500)
    y = (X @ [1e2, 10.0, 3.0, 1.0, 0.1, 0.01]) * np.linspace(0.1, 3.0, 1500) + 50.0
    y[700] *= 30.0
    inside = recorded_inside(monkeypatch)
    pooled, alone = Model("regression", loss=loss, n_features=7), []
    of_pool = pooled.learn(dense(X), y, np.ones(1500))[1]
    for one in MEMBERS:
        single = Model("regression", one.learner, loss, settings=dict(one.settings), view=one.view, n_features=7)
        alone.append(single.learn(dense(X), y, np.ones(1500)))
    of_members = []
    for member, (shown, row_losses) in zip(np.concatenate(inside, axis=1), alone, strict=True):
        asleep = np.isnan(member[:, 0])
        np.testing.assert_array_equal(member[~asleep], shown[~asleep])
        of_members.append(np.nansum(np.where(asleep, of_pool, row_losses)))
    total, best = np.nansum(of_pool), min(of_members)
    assert np.flatnonzero(np.isnan(of_pool)).tolist() == [0]  # before the first target nothing is known
    assert total <= best + excess(pooled.mixture, len(MEMBERS))
    assert total < 1.5 * best


@pytest.mark.parametrize("at", [0, 1000])
def test_one_row_a_million_times_too_large_is_forgiven(at):
    X, y = rows_of(4000)
    clean, _ = learned(X[:2000], y[:2000])
    X[at] *= 1e6
    spoilt, _ = learned(X[:2000], y[:2000])
    assert log_loss(spoilt, X[2000:], y[2000:]) < 1.05 * log_loss(clean, X[2000:], y[2000:])


def hard_rows(kind):
    """Features (n, d), the scores on which targets depend, and sample weights."""
    rng = np.random.default_rng(5)
    X, weight = rng.normal(size=(1500, 6)), np.ones(1500)
    if kind == "heavy tails":
        X = rng.standard_t(1.2, X.shape)
    elif kind == "correlated":
        X = X[:, :1] + 0.1 * X
    elif kind == "weighted":
        weight = 10.0 ** rng.uniform(-3, 3, len(X))
    scores = X @ [1.0, -1.0, 2.0, -2.0, 3.0, 3.0]
    return X * np.logspace(0, 6, len(X))[:, None] if kind == "growing scale" else X, scores, weight


@pytest.mark.parametrize("kind", ["heavy tails", "growing scale", "correlated", "weighted"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_on_hard_streams_all_members_stay_finite_and_the_pool_learns(kind, task, monkeypatch):
    X, scores, weight = hard_rows(kind)
    inside = recorded_inside(monkeypatch)
    y = (scores > 0).astype(int) if task == "classification" else 1e3 * scores + 1e6
    learner, shown = learned(X, y, weight, task)
    wakes = np.where([waits(setting) for setting in MEMBERS], FIRST_ROWS, 0)
    inside = np.concatenate(inside, axis=1)
    np.testing.assert_array_equal(np.isfinite(inside[:, :, 0]), np.arange(len(X)) >= wakes[:, None])
    for array in (shown, learner.member_predictions(dense(X)), learner.predict(dense(X))):
        assert np.isfinite(array).all()
    assert learner.mixture.means.sum() == pytest.approx(1.0)
    if task == "classification":
        assert learner.errors(Labels.of(y), shown)[1000:].mean() < 0.2
    elif kind != "growing scale":  # there numbers depend on directions alone
        assert np.median(np.abs(shown[1000:, 0] - y[1000:])) < 0.5 * np.median(np.abs(y - np.median(y)))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_threads_and_cuts_change_no_byte(task, tmp_path, monkeypatch):
    X, y = rows_of(1200)
    y = y if task == "classification" else X @ np.ones(6)
    results, workers_of_all = [], threads._workers
    for number in (1, 2, 7):
        with ThreadPoolExecutor(number) as workers:
            monkeypatch.setattr(threads, "_workers", lambda _, workers=workers: workers)
            for cuts in ((), (1, 300, 301, 1000)):
                learner, shown = learned(X, y, None, task, cuts)
                said = learner.predict(dense(X)).tobytes()
                results.append((model_bytes(learner, tmp_path / "model"), shown.tobytes(), said))

    def slowly(*arguments, mix=mix):
        time.sleep(0.01)
        mix(*arguments)

    monkeypatch.setattr(threads, "_workers", workers_of_all)
    for where, name, instead in (
        (model, "PIECE", 128),
        (aggregation, "mix", slowly),  # members learn on, far ahead of their judge
        (threads, "FEW", 10**9),
    ):
        monkeypatch.setattr(where, name, instead)
        learner, shown = learned(X, y, None, task)
        results.append((model_bytes(learner, tmp_path / "model"), shown.tobytes(), learner.predict(dense(X)).tobytes()))
    assert len({result[0] for result in results}) == 1
    assert len(set(results)) == 1


@pytest.mark.parametrize("cuts", [(), (63, 64, 65, 500), tuple(range(0, 1000, 37))])
def test_shares_are_written_down_at_powers_of_two(cuts):
    X, y = rows_of(1030)
    weight = np.where(np.arange(1030) < 1025, 1.0, 0.0)
    weight[:5] = 0.0
    learner, _ = learned(X, y, weight, cuts=cuts)
    assert [entry["rows"] for entry in learner.history] == [64, 128, 256, 512]
    names = [member.name for member in learner.members]
    for entry in learner.history:
        assert list(entry["shares"]) == names
        assert sum(entry["shares"].values()) == pytest.approx(1.0)
    X, y = rows_of(1024)
    learner, _ = learned(X, y, cuts=tuple(cut for cut in cuts if cut < 1024))
    assert learner.history[-1]["rows"] == 1024
    np.testing.assert_array_equal(list(learner.history[-1]["shares"].values()), learner.mixture.means)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_members_that_earn_no_share_are_let_go(n_classes, tmp_path, monkeypatch):
    X, y = rows_of(3000, n_classes=n_classes)
    everybody, _ = learned(X, y)
    assert len(everybody.members) == len(MEMBERS)
    monkeypatch.setattr(pruning, "FIRST_PRUNING", 512)
    learner, _ = learned(X[:1500], y[:1500])
    assert pruning.FEWEST_MEMBERS <= len(learner.members) < len(MEMBERS)
    assert [member.setting for member in learner.members] == learner.member_settings
    for entry, later in zip(learner.history, learner.history[1:], strict=False):
        kept = {name for name, share in entry["shares"].items() if share >= pruning.NEGLIGIBLE}
        assert set(later["shares"]) <= set(entry["shares"])
        if entry["rows"] < 512:
            assert set(later["shares"]) == set(entry["shares"])
        else:
            assert kept <= set(later["shares"])
    data = model_bytes(learner, tmp_path / "model")
    arrays, header = storage.load(tmp_path / "model")
    header.pop("format")
    restored = Model.restore(arrays, header)
    assert model_bytes(restored, tmp_path / "again") == data
    rest = dense(X[1500:]), Labels.of(y[1500:]), np.ones(1500)
    np.testing.assert_array_equal(learner.learn(*rest)[0], restored.learn(*rest)[0])
    np.testing.assert_array_equal(learner.predict(dense(X)), restored.predict(dense(X)))
    assert model_bytes(learner, tmp_path / "model") == model_bytes(restored, tmp_path / "again")
    assert log_loss(learner, X, y) < 1.02 * log_loss(everybody, X, y)


def test_two_members_always_stay(monkeypatch):
    monkeypatch.setattr(pruning, "FIRST_PRUNING", 64)
    monkeypatch.setattr(pruning, "NEGLIGIBLE", 1.0)
    X, y = rows_of(600)
    learner, shown = learned(X, y)
    assert len(learner.members) == len(learner.mixture.shares) == len(learner.mixture.means) == 2
    assert np.isfinite(shown).all()
