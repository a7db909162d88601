"""Regressors of counts, amounts and rates: exposures, scores, contributions, extremes."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance

from tunefree import OnlineRegressor, TuneFreeRegressor


def counts(n=3000, seed=0):
    """Columns, counts, exposures and true means."""
    rng = np.random.default_rng(seed)
    X, exposure = rng.normal(size=(n, 3)), rng.uniform(0.05, 1.0, n)
    means = exposure * np.exp(-1.0 + X @ [0.5, -0.3, 0.0] + 0.5 * (X[:, 2] > 1.0))
    return X, rng.poisson(means).astype(float), exposure, means


@pytest.fixture(scope="module")
def fitted():
    X, y, exposure, _ = counts()
    return TuneFreeRegressor(loss="poisson").fit(X, y, exposure=exposure)


def test_the_pool_predicts_counts_at_least_as_well_as_a_poisson_regression(fitted):
    X, y, exposure, _ = counts()
    others, _, of_others, means = counts(seed=1)
    linear = PoissonRegressor(alpha=1e-4).fit(X, y / exposure, sample_weight=exposure)
    ours = mean_poisson_deviance(means, fitted.predict(others, exposure=of_others))
    assert ours < mean_poisson_deviance(means, linear.predict(others) * of_others)
    assert fitted.predict(others, exposure=of_others).sum() == pytest.approx(means.sum(), rel=0.06)


def test_rates_times_exposures_are_predicted(fitted):
    X, _, exposure, _ = counts(seed=1)
    assert fitted.predict(X, exposure=exposure) == pytest.approx(fitted.predict(X) * exposure, rel=1e-12)
    assert fitted.predict(X[:3], exposure=2.0) == pytest.approx(2.0 * fitted.predict(X[:3]), rel=1e-12)
    assert (fitted.predict(X) > 0.0).all()


def test_scores_and_contributions_are_of_rates(fitted):
    X, y, exposure, _ = counts(200, seed=1)
    rates = fitted.predict(X)
    assert fitted.score(X, y) == pytest.approx(d2_tweedie_score(y, rates, power=1))
    expected = d2_tweedie_score(y / exposure, rates, sample_weight=exposure, power=1)
    assert fitted.score(X, y, exposure=exposure) == pytest.approx(expected)
    np.testing.assert_allclose(fitted.explain(X).to_pandas().sum(axis=1), np.log(rates), atol=1e-9)


def test_an_exposure_is_the_offset_for_all_losses():
    X, y, exposure, _ = counts(300)
    for loss, power in (("poisson", 1.0), ("tweedie:1.5", 1.5), ("gamma", 2.0)):
        y_of_loss = y + 0.5 if loss == "gamma" else y
        one = TuneFreeRegressor(loss=loss).fit(X, y_of_loss, exposure=exposure)
        weight = exposure ** (2.0 - power)
        other = TuneFreeRegressor(loss=loss).fit(X, y_of_loss / exposure, sample_weight=weight)
        assert one.predict(X).tolist() == other.predict(X).tolist()


@pytest.mark.parametrize("loss", ["poisson", "tweedie:1.5", "gamma"])
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_predictions_are_finite_at_any_scale_of_targets(loss, scale):
    X, y, exposure, _ = counts(600)
    y = (y + 0.25) * scale
    model = TuneFreeRegressor(loss=loss).fit(X, y, exposure=exposure)
    predicted = model.predict(X * 1e6)
    assert np.isfinite(predicted).all() and (predicted > 0.0).all()
    assert np.isfinite(model.progressive_loss_)
    if loss == "poisson":
        assert (model.predict(X, exposure=exposure) / scale).sum() == pytest.approx((y / scale).sum(), rel=0.1)


@pytest.mark.parametrize("loss", ["poisson", "tweedie:1.5"])
@pytest.mark.parametrize("estimator", [TuneFreeRegressor, OnlineRegressor])
def test_a_stream_of_zeros_has_a_rate_near_zero_in_the_unit_of_the_exposure(estimator, loss):
    X = np.random.default_rng(0).normal(size=(200, 2))
    for exposure in (0.01, 1.0, 100.0):
        model = estimator(loss=loss).partial_fit(X, np.zeros(200), exposure=np.full(200, exposure))
        weight = 200 * exposure ** (2.0 - float(loss.partition(":")[2] or 1.0))
        assert model.predict(X[:2]) == pytest.approx(0.5 / (weight + 0.5), rel=1e-6)


@pytest.mark.parametrize(
    "loss", ["poisson", *(pytest.param(loss, marks=pytest.mark.slow) for loss in ("tweedie:1.5", "gamma"))]
)
def test_predictions_are_as_large_in_total_as_the_targets(loss):
    X, y, exposure, _ = counts(1000)
    y = y + 0.5 if loss == "gamma" else y
    model = TuneFreeRegressor(loss=loss).fit(X, y)
    assert model.predict(X).sum() == pytest.approx(y.sum(), rel=1e-3)
    model = TuneFreeRegressor(loss=loss).fit(X, y, exposure=exposure)
    weight = exposure ** (1.0 - {"poisson": 1.0, "gamma": 2.0}.get(loss, 1.5))  # of the amounts, in rates
    assert (weight * model.predict(X, exposure=exposure)).sum() == pytest.approx((weight * y).sum(), rel=1e-3)
