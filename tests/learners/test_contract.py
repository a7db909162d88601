"""What every learner in ``learners.ALL`` obeys, and one that was added from outside."""

import inspect

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import naive
from tests.contracts import naive_curvature, naive_slope, run, uncompile, weights
from tests.extending import as_before, run_page
from tests.strategies import KINDS, Stream, as_dense, as_sparse, one_hot, streams
from tunefree import learners, losses
from tunefree.core import rows
from tunefree.core.errors import ModelError
from tunefree.core.fields import padded
from tunefree.learners.contract import Scale
from tunefree.learners.weights import Averaged, averaged
from tunefree.losses.objectives import Objective
from tunefree.pool import passes
from tunefree.pool.linear_group import Member, Setting

# Every learner of the package, and one from outside, which is not registered here: only its definition is run.
OUTSIDE = run_page("learner.md", until="learners.register")
ALL = {**{name: learners.ALL[name] for name in naive.ALL}, "kt": OUTSIDE["KT"]}
TWINS = {**naive.ALL, "kt": OUTSIDE["kt"]}
LEARNERS = sorted(ALL)
TRAITS = {name: ALL[name].traits for name in LEARNERS}

by_learner = pytest.mark.parametrize("name", LEARNERS)
by_averageable_learner = pytest.mark.parametrize("name", [n for n in LEARNERS if TRAITS[n].can_be_averaged])
LOGISTIC = Objective("classification", losses.Logistic())
IN_PYTHON = {"kt"}  # averages of these run as plain Python: the average of each learner of the package is compiled


def known_dimension(name, d):
    """The settings of a learner that knows how many features there are."""
    return {TRAITS[name].dimension: float(d)} if TRAITS[name].dimension else {}


def averaged_if_possible(name, n_features, n_outputs):
    """A new learner, with the average of its iterates."""
    learner = averaged(ALL[name]) if TRAITS[name].can_be_averaged and name not in IN_PYTHON else ALL[name]
    return learner(n_features, n_outputs)


def iterate_of(state):
    """A learner as it is now, without the average of its iterates."""
    learner = next(cls for cls in type(state).__mro__ if not issubclass(cls, Averaged))
    iterate = learner(state.n_features, state.n_outputs, **state.settings)
    for field in iterate.fields:
        iterate[field.name][...] = state[field.name]
    return iterate


def predicted(name, stream, X, **changed):
    """What a new learner predicts of a stream on the way, of rows as a block."""
    stream = stream._replace(**changed)
    learner = ALL[name](stream.X.shape[1] + 1, stream.n_outputs)
    return run(learner, stream.objective, X, stream.y, stream.weight, stream.n_outputs)[2]


def drawn(seed, n, d):
    """A stream of labels of two classes."""
    rng = np.random.default_rng(seed)
    return Stream(rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n), np.ones(n), 1, LOGISTIC)


@by_learner
@given(data=st.data())
def test_agrees_with_the_paper(name, data):
    stream = data.draw(streams(scales=5 if name == "adagrad" else 20))  # its first slope may be a rounding error
    d = stream.X.shape[1]
    state = ALL[name](d + 1, stream.n_outputs, **known_dimension(name, d))
    state, _, margins, _ = run(state, stream.objective, as_dense(stream.X), stream.y, stream.weight, stream.n_outputs)
    second = {"curvature": naive_curvature(stream)} if name == "newton" else {}
    expected, last = TWINS[name](stream.X, naive_slope(stream), stream.n_outputs, stream.weight, **second)
    if stream.n_outputs > 1 and not stream.objective.is_softmax:  # on the hinge's kink a rounding decides on the slope
        assume((np.abs(np.abs(expected) - 1.0) > 1e-12).all())
    np.testing.assert_allclose(margins, expected, rtol=1e-7, atol=1e-9)
    values, units = weights(state, stream.X.shape[1])
    largest = np.abs(stream.X).max(0)[:, None]
    np.testing.assert_allclose(naive.over(values, units[:, None]) * largest, last * largest, rtol=1e-7, atol=1e-9)


@by_learner
def test_settings_equal_the_paper(name):
    parameters = inspect.signature(TWINS[name]).parameters.items()
    settings = {key: 0.9 * setting.default for key, setting in parameters if isinstance(setting.default, float)}
    stream = drawn(0, 40, 3)
    second = {"curvature": naive_curvature(stream)} if name == "newton" else {}
    expected, _ = TWINS[name](stream.X, naive_slope(stream), 1, stream.weight, **second, **settings)
    state = ALL[name](4, 1, **known_dimension(name, 3), **settings)
    margins = run(state, LOGISTIC, as_dense(stream.X), stream.y, stream.weight, 1)[2]
    np.testing.assert_allclose(margins, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in LEARNERS if TRAITS[n].dimension])
def test_features_that_come_late_are_learned_as_in_a_known_dimension(name):
    """Without it d counts those seen so far, which is not the paper's: early margins are then larger."""
    stream = drawn(0, 40, 4)
    stream.X[:30, 1:] = 0.0
    expected, _ = TWINS[name](stream.X, naive_slope(stream), 1, stream.weight)
    of_stream, settings = (as_dense(stream.X), stream.y, stream.weight), (known_dimension(name, 4), {})
    known, counted = (run(ALL[name](5, 1, **some), LOGISTIC, *of_stream, 1)[2] for some in settings)
    np.testing.assert_allclose(known, expected, rtol=1e-7, atol=1e-9)
    assert np.abs(counted - expected).max() > 0.2 * np.abs(expected).max()


# The twins of the others take the rounds' weights in the place of bounds.
TWINS_WITH_BOUNDS = [n for n in LEARNERS if n not in ("newton", "nag", "kt")]
SQUARE = Objective("classification", losses.Square())


@pytest.mark.parametrize("kind", ["binary", "against"])
@pytest.mark.parametrize("name", TWINS_WITH_BOUNDS)
def test_agrees_with_the_paper_for_a_loss_without_lipschitz_constant(name, kind):
    """Learners whose papers assume bounded slopes get them clipped at the steepest so far, which is then the bound."""
    rng = np.random.default_rng(0)
    X, weight, n_outputs = rng.normal(size=(60, 4)), rng.choice([0.5, 1.0, 3.0], 60), 1 if kind == "binary" else 3
    X *= 0.4 / np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.choice([-1.0, 1.0], 60) if kind == "binary" else rng.integers(0, 3, 60).astype(float)
    clips, steepest = not TRAITS[name].takes_slopes_as_they_come, [0.0]

    def square_slope(t, margins):
        labels = y[t] if kind == "binary" else np.where(np.arange(3) == y[t], 1.0, -1.0)
        steep, bound = 2.0 * (margins - labels), steepest[-1]
        steepest.append(max(bound, np.abs(steep).max()))
        return weight[t] * (np.clip(steep, -bound, bound) if clips else steep)

    bounds = (weight[t] * max(steepest[t], 1e-150) for t in range(60))  # of each round, known when it comes
    expected, _ = TWINS[name](X, square_slope, n_outputs, bounds if clips else weight)
    member = Member(Setting(name, known_dimension(name, 4), "raw"), False, 5, n_outputs, SQUARE)
    margins = run(member.state, member.objective, as_dense(X), y, weight, n_outputs)[2]
    np.testing.assert_allclose(margins, expected, rtol=1e-7, atol=1e-9)


@by_learner
@given(stream=streams(kinds=("logistic", "multinomial")))
def test_dense_sparse_and_tables_give_the_same_bits(name, stream):
    dense, *others = (predicted(name, stream, block(stream.X)) for block in KINDS.values())
    np.testing.assert_array_equal(others, [dense] * 2)


@by_learner
def test_one_hot_codes_equal_columns_of_zeros_and_ones(name):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (200, 3))
    features = np.where(codes > 0, codes - 1 + np.array([1, 5, 9]), 0)
    X = one_hot(features, 12)
    stream = Stream(X, rng.choice([-1.0, 1.0], 200), np.ones(200), 1, LOGISTIC)
    one = predicted(name, stream, rows.table(np.zeros((200, 0)), [], features))
    other = predicted(name, stream, rows.dense(X))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@by_learner
@given(stream=streams(kinds=("logistic", "multinomial")), cut=st.integers(0, 40))
def test_batch_cuts_do_not_matter(name, stream, cut):
    d, results = stream.X.shape[1], []
    for cuts in ((), (min(cut, len(stream.X)),)):
        state = averaged_if_possible(name, d + 1, stream.n_outputs)
        state, _, margins, _ = run(state, stream.objective, as_sparse(stream.X), *stream[1:4], cuts)
        results.append((margins, *weights(state, d)))
    np.testing.assert_equal(*results)


@pytest.mark.parametrize("name", [n for n in LEARNERS if TRAITS[n].invariant_to_scale_of != "nothing"])
@given(stream=streams(scales=0), data=st.data())
def test_scaling_by_powers_of_two_changes_no_bit(name, stream, data):
    d = stream.X.shape[1]
    if TRAITS[name].invariant_to_scale_of == "each feature":
        exponents = np.array(data.draw(st.lists(st.integers(-300, 300), min_size=d, max_size=d)))
    else:
        exponents = np.full(d, data.draw(st.integers(-300, 300)))
    both = [predicted(name, stream, as_dense(X)) for X in (stream.X, np.ldexp(stream.X, exponents))]
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize("name", ["cocob-original", "nag"])
@given(stream=streams(scales=0), exponent=st.integers(-60, 60))
def test_multiplying_all_slopes_by_a_power_of_two_changes_no_bit(name, stream, exponent):
    scaled = np.ldexp(stream.weight, exponent)
    both = [predicted(name, stream, as_dense(stream.X), weight=weight) for weight in (stream.weight, scaled)]
    np.testing.assert_array_equal(*both)


@by_learner
@given(stream=streams(scales=900, kinds=("logistic", "multinomial")), wrapped=st.booleans())
def test_finite_on_any_finite_input(name, stream, wrapped):
    X = np.clip(np.nan_to_num(stream.X), -1e307, 1e307)
    wrapped = wrapped and TRAITS[name].can_be_averaged and name not in IN_PYTHON
    state = (averaged(ALL[name]) if wrapped else ALL[name])(X.shape[1] + 1, stream.n_outputs)
    state, _, margins, row_losses = run(state, stream.objective, as_dense(X), stream.y, stream.weight, stream.n_outputs)
    values, units = weights(state, X.shape[1])
    after = passes.score(np.vstack([np.zeros(stream.n_outputs), values]), np.r_[0.0, units], as_dense(X))
    for array in (margins, row_losses, values, units, after):
        assert np.isfinite(array).all()


@by_averageable_learner
@given(stream=streams(scales=3, weighted=False, kinds=("logistic", "multinomial")))
def test_average_is_the_mean_of_the_iterates(name, stream):
    d = stream.X.shape[1]
    state = averaged(ALL[name])(d + 1, stream.n_outputs)
    X, objective = as_sparse(stream.X), stream.objective
    entries = rows.entries_of(X)
    total, sizes = np.zeros((2, d, stream.n_outputs))
    for i in range(len(stream.X)):
        # The iterate of round i is the one that predicted: it knows row i but not its label.
        learner = iterate_of(state)
        learner.predict(passes.row_of(entries, i), Scale(1.0, 1.0, 1.0), np.zeros(padded(stream.n_outputs)))
        values, units = weights(learner, d)
        iterate = naive.over(values, units[:, None])
        total, sizes = total + iterate, sizes + np.abs(iterate)
        row = rows.part(X, i, i + 1), stream.y[i : i + 1], np.ones(1)
        with pytest.MonkeyPatch.context() as patch:
            if name in IN_PYTHON:
                uncompile(patch)
            state, objective, _, _ = run(state, objective, *row, stream.n_outputs)
    values, units = weights(state, d)
    largest = np.abs(stream.X).max(0)[:, None]
    mean = naive.over(values, units[:, None])
    rounding = 1e-8 * (sizes / len(stream.X) * largest).max()  # iterates may cancel in the mean
    np.testing.assert_allclose(mean * largest, total / len(stream.X) * largest, rtol=1e-8, atol=1e-10 + rounding)


@by_learner
def test_growing_changes_nothing(name):
    X, *of_rows = drawn(1, 60, 4)[:4]
    small, wide = as_sparse(np.c_[X[:, :2], np.zeros((60, 2))]), as_sparse(X)
    start, *_ = run(ALL[name](3), LOGISTIC, small, *of_rows)
    reference, *_ = run(ALL[name](5), LOGISTIC, small, *of_rows)
    grown = run(start.grown(5, 1), LOGISTIC, wide, *of_rows)[2]
    np.testing.assert_array_equal(grown, run(reference, LOGISTIC, wide, *of_rows)[2])


@by_learner
def test_rows_of_weight_zero_are_predicted_not_learned(name):
    stream, kept = drawn(2, 50, 3), np.random.default_rng(2).random(50) < 0.5
    with_zeros = predicted(name, stream, as_dense(stream.X), weight=kept.astype(float))
    without = predicted(name, stream, as_dense(stream.X[kept]), y=stream.y[kept], weight=np.ones(kept.sum()))
    np.testing.assert_array_equal(with_zeros[kept], without)
    X, y, *_ = drawn(5, 50, 3)
    state = ALL[name](4)
    predictions = run(state, LOGISTIC, as_dense(X), y, np.repeat([1.0, 0.0], 25), 1)[2]
    # What averages its iterates predicts, on the way, with the iterate.
    values, units = weights(iterate_of(state), 3)
    margins = passes.score(np.vstack([[0.0], values]), np.r_[0.0, units], as_dense(X[25:]))
    np.testing.assert_allclose(predictions[25:], margins, rtol=1e-12, atol=1e-15)


@by_learner
def test_regression_targets_of_any_scale(name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 3))
    signal = X @ [1.0, -2.0, 0.5] + 10.0
    for scale in (1e-300, 1.0, 1e300):
        for loss in (losses.Square(), losses.Absolute(), losses.huber(0.1 * scale), losses.power_loss(1.5)):
            objective = Objective("regression", loss)
            predictions = run(ALL[name](4), objective, rows.dense(X), scale * signal, np.ones(1500), 1)[2][:, 0]
            late = np.abs(predictions / scale - signal)[-500:].mean()
            assert np.isfinite(predictions).all(), (scale, loss)
            assert late < 0.8 * np.abs(signal - signal.mean()).mean(), (scale, loss)


@by_learner
@given(seed=st.integers(0, 2**32), span=st.integers(0, 300), kind=st.sampled_from(["square", "absolute"]))
def test_regression_is_finite_on_any_finite_target(name, seed, span, kind):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) * 10.0 ** rng.integers(-span, span + 1, (30, 3))
    y = rng.normal(size=30) * 10.0 ** rng.integers(-span, span + 1, 30).astype(float)
    objective, weight = Objective("regression", losses.loss_of("regression", kind)), 10.0 ** rng.uniform(-3, 3, 30)
    state, _, predictions, row_losses = run(ALL[name](4), objective, rows.dense(X), y, weight, 1)
    for array in (predictions, row_losses, *weights(state, 3)):
        assert np.isfinite(array).all()


HOSTILE = [1e308, -1e308, 1e-308, 5e-324, 0.0, -0.0, 1.0, -3.5, 1e150, 1e-150, 2.0**1023, 7.999999999999999]


@by_learner
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_uncompiled_gives_the_same_bits(name, n_outputs, monkeypatch):
    rng = np.random.default_rng(4)
    X = np.r_[rng.normal(size=(30, 5)), rng.choice(HOSTILE, (30, 5)), rng.normal(size=(10, 5))]
    y = rng.choice([-1.0, 1.0], 70) if n_outputs == 1 else rng.integers(0, 3, 70).astype(float)
    weight = rng.choice([0.0, 0.25, 1.0, 3.0], 70)
    objective, results = LOGISTIC if n_outputs == 1 else Objective("classification"), []
    for _ in range(2):
        state = averaged_if_possible(name, 6, n_outputs)
        predictions = run(state, objective, as_dense(X), y, weight, n_outputs)[2]
        results.append((predictions, *weights(state, 5), *state.arrays().values()))
        uncompile(monkeypatch)
    np.testing.assert_equal(*results)


def test_every_learner_has_a_twin():
    assert set(naive.ALL) | {"kernel-pistol"} == set(learners.ALL.search())


def test_the_worked_example_runs_as_it_stands():
    with as_before(learners.ALL):
        page = run_page("learner.md")
        assert learners.ALL["kt"] is page["KT"]
        with pytest.raises(ModelError, match="a learner 'kt' already"):
            learners.register("kt", ALL["ogd"])
