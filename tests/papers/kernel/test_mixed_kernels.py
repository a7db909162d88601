"""How kernels of several widths are mixed: what sleepers and failures do to it, and that cuts do not matter."""

import copy

import numpy as np
import pytest

from tunefree import losses
from tunefree.losses.objectives import Objective
from tunefree.pool.model import Model
from tunefree.pool.rows import LabelledRows

LOGISTIC, SOFTMAX = Objective("classification", losses.Logistic()), Objective("classification", None)
SQUARE = Objective("regression", losses.Square())
N = 300


def drawn(seed, n_outputs=1, n_members=9):
    """Classes, weights of which some are 0, and predictions of members, the last of which is the best."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, max(n_outputs, 2), N).astype(float)
    truth = 2.0 * y[:, None] - 1.0 if n_outputs == 1 else 2.0 * (np.arange(n_outputs) == y[:, None]) - 1.0
    skill = np.linspace(0.0, 1.5, n_members)[:, None, None]
    return y, rng.choice([0.0, 0.5, 2.0], N), skill * truth + rng.normal(size=(n_members, N, n_outputs))


def rules(kind):
    """What mixes, an objective of what is predicted, its targets, and classes or numbers, weights and predictions."""
    if kind == "numbers":
        y, weight, predictions = drawn(0)
        y = 7.0 * y + 100.0
        return Model("regression", "kernel-pistol").predictor, SQUARE, y, (y, weight, 5.0 * predictions + 100.0)
    y, *rest = drawn(0, 3 if kind == "classes" else 1)
    predictor = Model("classification", "kernel-pistol", classes=[*"abc"[: 3 if kind == "classes" else 2]]).predictor
    return predictor, *((SOFTMAX, y) if kind == "classes" else (LOGISTIC, 2.0 * y - 1.0)), (y, *rest)


def learn(predictor, y, weight, predictions, rows=slice(None)):
    return predictor._mixed(predictions[:, rows], LabelledRows(None, y[rows], weight[rows], weight[rows]))


kinds = pytest.mark.parametrize("kind", ["two", "classes", "numbers"])


def state_of(rule):
    arrays, header = rule.save_state()
    return {name: array.tobytes() for name, array in arrays.items()} | {"header": repr(header)}


@kinds
@pytest.mark.parametrize("cuts", [(1,), (100, 100, 250)])
def test_cuts_and_saving_change_no_byte(kind, cuts):
    (whole, _, _, of_rows), (parts, *_) = rules(kind), rules(kind)
    of_rows[-1][:, 20:40] = np.nan
    of_rows[-1][1, 40:50] = np.nan
    expected = learn(whole, *of_rows)
    shown, edges = [], [0, *cuts, N]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        shown.append(learn(parts, *of_rows, slice(start, stop)))
        again, *_ = rules(kind)
        again.take_over(*copy.deepcopy(parts.save_state()))
        parts = again
    np.testing.assert_array_equal(np.concatenate(shown), expected)
    assert state_of(parts) == state_of(whole)
    np.testing.assert_array_equal(parts._mixture_of(of_rows[-1]), whole._mixture_of(of_rows[-1]))
    is_asleep = np.isnan(expected).any(axis=1)
    assert is_asleep.sum() == 20 and is_asleep[20:40].all()


@kinds
def test_the_scale_of_the_weights_does_not_matter_to_a_mixture(kind):
    shown = []
    for scale in (2.0**-900, 1.0, 2.0**900):
        rule, _, _, (y, weight, predictions) = rules(kind)
        shown.append(learn(rule, y, scale * weight, predictions))
    np.testing.assert_array_equal(shown[0], shown[1])
    np.testing.assert_array_equal(shown[2], shown[1])
