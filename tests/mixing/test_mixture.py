"""What a mixture promises: its twin's rule, also of members that sleep, weights, batches, files, late classes."""

import copy
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mixing.streams import KINDS, N_MEMBERS, log_softmax, of_kind, stream
from tests.mixing.twin import run, twin_of
from tests.pool.rows import bytes_of
from tunefree.compiled import functions
from tunefree.core.part import restored
from tunefree.mixing.classes import MOST_BIASED
from tunefree.mixing.gradients import Rule
from tunefree.mixing.mixture import Mixture

kinds = pytest.mark.parametrize("kind", KINDS)


def mixture_of(kind, n_members=N_MEMBERS):
    return Mixture(n_members, *of_kind(kind))


def learned(kind, members, y, weight):
    mixture = mixture_of(kind, members.shape[1])
    return mixture, mixture.learn(members, y, weight)


@kinds
def test_a_row_of_weight_0_changes_nothing(kind):
    members, y, _ = stream(kind, 120, 6)
    mixture, _ = learned(kind, members, y, np.ones(len(y)))
    before = bytes_of(mixture)
    mixed = mixture.learn(members, y, np.zeros(len(y)))
    assert bytes_of(mixture) == before
    alone = np.concatenate([mixture.learn(members[i : i + 1], y[i : i + 1], np.zeros(1)) for i in range(len(y))])
    assert np.array_equal(alone, mixed)


@kinds
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
def test_it_does_not_matter_how_rows_come_in_batches(kind, cuts):
    members, y, weight = stream(kind, 120, 8)
    whole, mixed = learned(kind, members, y, weight)
    parts, mixture = [], mixture_of(kind)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 120], strict=True):
        parts.append(mixture.learn(members[start:stop], y[start:stop], weight[start:stop]))
    assert np.array_equal(np.concatenate(parts), mixed) and bytes_of(mixture) == bytes_of(whole)


@kinds
def test_a_mixture_that_was_saved_goes_on_to_the_bit(kind):
    members, y, weight = stream(kind, 300, 9)
    mixture, _ = learned(kind, members[:150], y[:150], weight[:150])
    other = restored(mixture_of(kind), "", *copy.deepcopy(mixture.save_state()))
    assert bytes_of(other) == bytes_of(mixture) and other.nbytes == mixture.nbytes
    for is_base in (False, True):
        assert np.array_equal(*(each.predict(members, is_base=is_base) for each in (mixture, other)))
    rest = members[150:], y[150:], weight[150:]
    assert np.array_equal(mixture.learn(*rest), other.learn(*rest)) and bytes_of(other) == bytes_of(mixture)


@kinds
def test_derivatives_equal_difference_quotients(kind):
    members, y, weight = stream(kind, 300, 4)
    mixture, _ = learned(kind, members, y, weight)
    rows = members[[9, 50, 99, 100]]  # in row 100 all sleep
    margins, derivatives = Rule.of(mixture, is_over=True).linearised(rows)
    predicted, n_classes = mixture.predict(rows, is_over=True), of_kind(kind)[0]
    if n_classes:
        predicted = predicted[:, 1:] - predicted[:, :1] if n_classes == 2 else predicted - predicted.mean(1)[:, None]
    np.testing.assert_allclose(margins, predicted, rtol=1e-9, atol=1e-9)
    for member, output in itertools.product(range(N_MEMBERS), {0, max(n_classes - 1, 0)}):
        step = 1e-6 * (np.arange(N_MEMBERS) == member)[:, None] * (np.arange(rows.shape[2]) == output)
        above, below = (Rule.of(mixture, is_over=True).linearised(rows + sign * step)[0] for sign in (1.0, -1.0))
        expected = derivatives()[:, :, member, output]
        np.testing.assert_allclose((above - below) / 2e-6, expected, rtol=1e-4, atol=1e-6)


def test_where_classes_become_many_corrections_lose_their_biases():
    mixture = Mixture(2, MOST_BIASED)
    mixture.add_class()
    assert {state.n_features for state in mixture.corrections} == {mixture.n_features} == {3}


@pytest.mark.parametrize("n_classes", [2, 5, 63, 64, 65])
def test_a_late_class_begins_like_one_that_never_came(n_classes):
    """Had it been declared from the start, all would have given it next to nothing."""
    rng = np.random.default_rng(n_classes)
    truth = rng.normal(size=(900, n_classes))
    y = np.array([rng.choice(n_classes, p=row) for row in np.exp(log_softmax(2.0 * truth))], float)
    early = log_softmax(truth[:, None] + 0.5 * rng.normal(size=(900, 3, n_classes)))
    with_class = np.concatenate([early + np.log1p(-1e-4), np.full((900, 3, 1), np.log(1e-4))], axis=2)
    late, declared = Mixture(3, n_classes), Mixture(3, n_classes + 1)
    late.learn(early[:600], y[:600], np.ones(600))
    declared.learn(with_class[:600], y[:600], np.ones(600))
    late.add_class()
    rows, after = np.arange(600, 900), []
    for mixture in (late, declared):
        mixed = mixture.learn(with_class[600:], y[600:], np.ones(300))
        assert np.isfinite(mixed).all() and np.exp(mixed).sum(1) == pytest.approx(1.0)
        after.append(-mixed[np.arange(300), y[rows].astype(int)].mean())
    assert after[0] == pytest.approx(after[1], rel=0.02 if n_classes < 64 else 0.1)


@st.composite
def extreme_rows(draw):
    """Up to 12 rows of two members and three classes, or numbers, of any size."""
    n = draw(st.integers(1, 12))
    logs = st.sampled_from([0.0, -1e-300, -1.0, -30.0, -800.0, -1e300, np.nan])
    sizes = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e-160, 1e20, 1e150, -1e150, 1e300, -1e300, np.nan])
    of_classes = np.reshape(draw(st.lists(logs, min_size=6 * n, max_size=6 * n)), (n, 2, 3))
    of_classes[np.isnan(of_classes).any(2)] = np.nan
    of_numbers = np.reshape(draw(st.lists(sizes, min_size=2 * n, max_size=2 * n)), (n, 2, 1))
    labels = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), float)
    targets = np.nan_to_num(draw(st.lists(sizes, min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.sampled_from([0.0, 1e-6, 1.0, 1e3]), min_size=n, max_size=n)))
    return of_classes, of_numbers, labels, targets, weight


@pytest.mark.parametrize("kind", ["three", "square", "absolute", "huber:1", "quantile:0.9"])
@given(rows=extreme_rows())
def test_predictions_and_weights_of_any_finite_numbers_are_finite(kind, rows):
    of_classes, of_numbers, labels, targets, weight = rows
    members, y = (of_classes, labels) if kind == "three" else (of_numbers, targets)
    mixture, mixed = learned(kind, members, y, weight)
    assert np.isfinite(mixed).all()
    assert np.isfinite(mixture.predict(members)).all() and np.isfinite(mixture.predict(members, is_base=True)).all()
    state, _ = mixture.save_state()
    is_unknown = kind == "three" or not (weight > 0).any()
    unknown = {"range.lowest", "range.highest"} if is_unknown else set()
    assert all(np.isfinite(array).all() for name, array in state.items() if name not in unknown)
    assert mixture.base.weights.sum() == pytest.approx(1.0) and mixture.top.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("kind", "growth"), [("three", 0.0), *((kind, 2.0) for kind in KINDS)])
def test_plain_python_computes_the_same_bits(kind, growth, monkeypatch):
    members, y, weight = stream(kind, 80, 11, growth)

    def results():
        mixture, mixed = learned(kind, members, y, weight)
        predicted = [mixture.predict(members, is_base=is_base).tobytes() for is_base in (False, True)]
        return [mixed.tobytes(), *predicted, bytes_of(mixture)]

    compiled = results()
    monkeypatch.setattr(functions, "IS_COMPILED", False)
    with np.errstate(all="ignore"):
        assert results() == compiled


@pytest.mark.parametrize(("kind", "growth"), [("three", 0.0), *((kind, 0.02) for kind in KINDS)])
def test_the_compiled_rule_equals_its_twin(kind, growth):
    members, y, weight = stream(kind, 300, 1, growth)
    (mixture, mixed), twin = learned(kind, members, y, weight), twin_of(N_MEMBERS, *of_kind(kind))
    assert mixed == pytest.approx(run(twin, members, y, weight), rel=1e-6, abs=1e-7)
    for compiled, plain in ((mixture.base, twin.base), (mixture.top, twin.top)):
        assert compiled.weights == pytest.approx(plain.w, rel=1e-6, abs=1e-12)
        assert compiled.means == pytest.approx(plain.means, rel=1e-6, abs=1e-12)
    to_come, bases = [], []
    for row in members[:20]:
        to_come.append(np.atleast_1d(twin.step(row, 0.0, 0.0, is_over=True)))
        bases.append(np.atleast_1d(twin.candidates[0]))
    assert mixture.predict(members[:20]) == pytest.approx(np.array(to_come), rel=1e-6, abs=1e-7)
    assert mixture.predict(members[:20], is_base=True) == pytest.approx(np.array(bases), rel=1e-6, abs=1e-7)
    least = 0.01 if kind == "gamma" else 0.1
    assert np.ptp(mixture.top.weights) > least and np.ptp(mixture.base.weights) > 0.01  # they did learn
