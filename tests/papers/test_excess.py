"""Excess risk and error where the Bayes rule is known: the identity (3), and agreement with sampled labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree import losses
from tunefree.papers.excess import excess_error, excess_risk, excess_risk_by_bregman
from tunefree.papers.links import link

INVERTIBLE = [losses.Logistic(), losses.Square(), losses.SquaredHinge(), losses.Exponential(), losses.SmoothedHinge()]
each_loss = pytest.mark.parametrize("loss", INVERTIBLE, ids=lambda loss: type(loss).__name__)


@each_loss
@given(pairs=st.lists(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)), min_size=1, max_size=8))
def test_the_identity_of_excess_risk_and_bregman_divergence(loss, pairs):
    stands_for, true = np.array(pairs).T
    predictions = [link(loss, mu) for mu in stands_for.tolist()]
    direct = excess_risk(loss, predictions, true)
    assert excess_risk_by_bregman(loss, predictions, true) == pytest.approx(direct, rel=1e-8, abs=1e-10)
    assert direct >= -1e-12


def test_estimates_agree_with_sampled_labels():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 200_000)
    probabilities, predictions = 1 / (1 + np.exp(-2 * x)), x - 0.5
    labels = np.where(rng.random(len(x)) < probabilities, 1.0, -1.0)
    gap = np.mean(np.logaddexp(0, -labels * predictions) - np.logaddexp(0, -labels * 2 * x))
    few = slice(0, 20_000)  # without label noise fewer rows do
    found = excess_risk(losses.Logistic(), predictions[few], probabilities[few])
    assert gap == pytest.approx(found, abs=5e-3)
    errors = np.mean((np.where(predictions > 0, 1, -1) != labels).astype(float) - (np.where(x > 0, 1, -1) != labels))
    assert errors == pytest.approx(excess_error(predictions, probabilities), abs=5e-3)
