"""Features learned at their second meeting are predicted with as if learned at once; snapshots of linear groups."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pool.rows import differences, restored
from tunefree.core.rows import part, reach, sparse, table
from tunefree.pool import linear_group, occurrences
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

FIRST = 6
N = 160
KINDS = ["sparse", "table"]
LEARNERS = ["scinol2", "adagrad", "nag", "cocob", "cocob-original"]


@pytest.fixture(autouse=True)
def few_features_have_slots_from_the_start(monkeypatch):
    monkeypatch.setattr(occurrences, "FIRST", FIRST)


def words(rng, zeros=0.1, n=N, d=400):
    """Rows of words of which most are met once."""
    rows = [np.unique((d * rng.random(9) ** 2).astype(int) + 1) for _ in range(n)]
    pointers = np.cumsum([0, *map(len, rows)])
    values = rng.exponential(size=pointers[-1])
    values *= rng.choice([0.0, 1.0, -3.0], size=pointers[-1], p=[zeros, 0.9 - zeros, 0.1])
    return sparse(pointers, np.concatenate(rows), values)


def block(rng, kind):
    if kind == "sparse":
        return words(rng)
    some = words(rng, zeros=0.0)
    some = some._replace(features=some.features + np.int32(2))
    return table(rng.normal(size=(N, 2)), [1, 2], rng.integers(403, 460, size=(N, 1)), some)


def learned(X, y, weight, cuts=(), learner="nag", replays=True, view="steady"):
    model = Model("classification", learner, view=view, replays=replays)
    return model, learn(model, X, y, weight, cuts)


def learn(model, X, y, weight, cuts=()):
    losses = []
    for start, stop in pairwise([0, *sorted(cuts), N]):
        labels = Labels.of([f"c{c}" for c in y[start:stop]])
        losses.append(model.learn(part(X, start, stop), labels, weight[start:stop])[1])
    return np.concatenate(losses)


def streams(seed, n_classes=3, kind="sparse"):
    rng = np.random.default_rng(seed)
    weight = rng.exponential(size=N) * (rng.random(N) > 0.1)  # some rows are predicted and not learned
    return block(rng, kind), rng.integers(0, n_classes, N), weight


@settings(max_examples=15)
@given(
    st.integers(0, 2**31), st.sets(st.integers(1, N - 1), max_size=6), st.sampled_from([2, 3]), st.sampled_from(KINDS)
)
def test_it_makes_no_difference_to_predictions_nor_where_rows_are_cut(seed, cuts, n_classes, kind):
    X, y, weight = streams(seed, n_classes, kind)
    everything, of_all = learned(X, y, weight, replays=False)
    once, losses = learned(X, y, weight)
    often, of_parts = learned(X, y, weight, cuts)
    np.testing.assert_array_equal(losses, of_parts)
    assert differences(once, often) == []
    np.testing.assert_allclose(losses, of_all, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(once.predict(X), everything.predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(once.mean_weights(), everything.mean_weights(), rtol=1e-9, atol=1e-12)
    assert FIRST < once.linear.meetings.n_slots(once.n_features) < 0.8 * once.n_features
    present, n_slots = once.linear.present(), once.linear.meetings.n_slots(once.n_features)
    np.testing.assert_array_equal(once.linear.meetings.by_slot(once.mean_weights()), present.reads[0][0][:n_slots])
    again = restored(once)
    for model in (once, again):
        learn(model, X, y, weight, cuts)
    assert differences(once, again) == []


@pytest.mark.parametrize("view", ["raw", "steady"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_each_learner_that_can_replay_predicts_as_if_it_had_learned_all(learner, view):
    X, y, weight = streams(3, 2)
    everything, of_all = learned(X, y, weight, learner=learner, replays=False, view=view)
    once, losses = learned(X, y, weight, [50, 51, 90], learner=learner, view=view)
    np.testing.assert_allclose(losses, of_all, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(once.predict(X), everything.predict(X), rtol=1e-9, atol=1e-12)
    assert once.linear.meetings.n_slots(once.n_features) < once.n_features


@pytest.mark.parametrize("learner", ["scinol1", "pistol"])
def test_a_learner_that_cannot_replay_learns_all(learner):
    X, y, weight = streams(5, 2)
    model, _ = learned(X, y, weight, learner=learner)
    assert not model.linear.meetings.assigns_slots and model.linear.n_features == model.n_features


def test_the_certificate_is_for_all_features():
    X, y, weight = streams(6)
    everything, once = (learned(X, y, weight, [70], replays=replays)[0].certificate() for replays in (False, True))
    np.testing.assert_allclose(once.pulls, everything.pulls, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(once.largest, everything.largest)
    assert once.lower_bound(0.1) == pytest.approx(everything.lower_bound(0.1)) and once.n_partial == 0


def test_first_meetings_that_left_the_log_are_not_taught_and_certificates_allow_for_them(monkeypatch):
    for module in (occurrences, linear_group):
        monkeypatch.setattr(module, "LOGGED", 12)
    X, y, weight = streams(7)
    cuts = [*range(8, N, 8)]  # members learn fewer rows at a time than a log holds
    of_learner = {"learner": "cocob", "view": "raw"}
    everything, of_all = learned(X, y, weight, cuts, replays=False, **of_learner)
    once, losses = learned(X, y, weight, cuts, **of_learner)
    assert abs(losses.mean() / of_all.mean() - 1.0) < 0.05 and not np.array_equal(losses, of_all)
    found, known = once.certificate(), everything.certificate()
    assert found.n_partial > 0 and found.steepest > 0.0
    for radius in (0.01, 0.1):
        assert found.lower_bound(radius) <= known.lower_bound(radius) + 0.05
    assert differences(once, learned(X, y, weight, cuts, **of_learner)[0]) == []


@pytest.mark.parametrize("few", [3, 100])
def test_features_that_occurred_a_few_times_have_no_slot_and_the_same_weights(few, monkeypatch):
    X, y, weight = streams(21)
    models = []
    for most in (few, 2):
        monkeypatch.setattr(occurrences, "FEW", most)
        models.append(learned(X, y, weight, [30, 90])[0])
    late, early = models
    assert late.linear.meetings.n_slots(late.n_features) < early.linear.meetings.n_slots(early.n_features)
    assert late.record.evidence["gradients"][late.linear.meetings.n_slots(late.n_features) :].any() == np.False_
    np.testing.assert_array_equal(late.mean_weights(), early.mean_weights())
    np.testing.assert_allclose(late.predict(X), early.predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(restored(late).predict(X), late.predict(X))


def test_what_will_be_needed_is_known_before_rows_are_learned_and_nothing_is_copied_meanwhile():
    X, y, weight = streams(13)
    labels = [f"c{c}" for c in y]
    model = Model("classification", "scinol2", classes=sorted(set(labels)), replays=True)
    for start in range(0, N, 40):
        rows = part(X, start, start + 40)
        most = model.linear.meetings.n_slots_after(rows)
        model.reserve(n_slots=most)
        before = model.linear.members[0].state, model.record.evidence.coordinates
        model.learn(rows, Labels.of(labels[start : start + 40]), weight[start : start + 40])
        assert model.linear.meetings.n_slots(model.n_features) <= most <= reach(X)
        assert model.linear.members[0].state is before[0] and model.record.evidence.coordinates is before[1]


def test_features_that_come_after_a_second_pass_began_are_learned():
    """They have slots at once, beside those of features that occurred before, and count when rows are predicted."""
    n, d = 40, FIRST + 60
    features = np.random.default_rng(0).permuted(np.tile(np.arange(FIRST, d), (n, 1)), axis=1)[:, :3]
    X = sparse(3 * np.arange(n + 1), np.sort(features, axis=1).reshape(-1), np.ones(3 * n))
    y, predictions = Labels.of(np.where(np.arange(n) % 3, "a", "b")), []
    for replays in (True, False):
        model = Model("classification", "scinol2", n_features=d, replays=replays)
        for start, stop, again in ((0, 20, False), (0, 20, True), (20, 30, False), (30, n, False)):
            if again:
                model.begin_pass()
            rows = part(X, start, stop), Labels(y.values, y.codes[start:stop]), np.ones(stop - start)
            model.learn(*rows, again=again)
        predictions.append(model.predict(X))
    np.testing.assert_allclose(*predictions, rtol=1e-12)
