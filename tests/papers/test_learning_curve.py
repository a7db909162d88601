"""Learning curves: what is drawn is what was measured, and the rate has the slope that theory says."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression

from tunefree import IterativeRegularizationClassifier as Classifier
from tunefree import IterativeRegularizationRegressor as Regressor
from tunefree import LearningCurveDisplay, losses
from tunefree.papers.early_stopping.stopping_times import stopping_time

pytest.importorskip("matplotlib").use("Agg")
Figure = pytest.importorskip("matplotlib.figure").Figure

CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def drawn(estimator, data=CANCER, **settings):
    settings = {"sizes": [30, 90, 270], "repeats": 2, "axes": Figure().subplots()} | settings
    return LearningCurveDisplay.from_estimator(estimator, *data, **settings)


def texts(display):
    return "\n".join(text.get_text() for text in display.axes_.texts)


class Remembering(LinearRegression):
    """Keeps the numbers of the rows that it learns and predicts."""

    learned: tuple = ()
    predicted: tuple = ()

    def fit(self, X, y):
        type(self).learned += (X[:, 0].astype(int),)
        return super().fit(X, y)

    def predict(self, X):
        type(self).predicted += (X[:, 0].astype(int),)
        return super().predict(X)


def test_values_are_those_computed_by_hand():
    rows = np.arange(100.0)
    X, y = np.stack([rows, np.cos(rows)], axis=1), np.sin(rows)
    display = drawn(Remembering(), (X, y), sizes=[20, 5, 60], test_fraction=0.3, random_state=3)
    fits, tests = Remembering.learned, Remembering.predicted
    assert display.sizes.tolist() == [5, 20, 60]
    assert [len(part) for part in fits] == [5, 5, 20, 20, 60, 60]
    errors = np.empty((3, 2))
    for i in range(3):
        for j in range(2):
            learned, judged = fits[2 * i + j], tests[2 * i + j]
            assert len(judged) == 30 and not set(learned) & set(judged)
            assert set(learned) <= set(fits[4 + j]) and set(judged) == set(tests[4 + j])
            model = LinearRegression().fit(X[learned], y[learned])
            errors[i, j] = np.abs(model.predict(X[judged]) - y[judged]).mean()
    np.testing.assert_allclose(display.errors, errors, rtol=1e-12)
    np.testing.assert_allclose(display.line_.get_ydata(), errors.mean(axis=1), rtol=1e-12)
    assert display.line_.get_xdata().tolist() == [5, 20, 60]
    (band,) = display.axes_.collections
    corners = band.get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx((errors.mean(axis=1) + errors.std(axis=1)).max())
    lowest = (errors.mean(axis=1) - errors.std(axis=1)).min()
    assert corners.min() == pytest.approx(max(lowest, display.axes_.get_ylim()[0]))
    assert (display.axes_.get_xscale(), display.axes_.get_yscale()) == ("log", "log")
    assert display.axes_.get_xlabel() == "rows learned" and "mean absolute error" in display.axes_.get_ylabel()
    assert f"at 60 rows: {errors[2].mean():.3g}" in texts(display)
    assert display.rate_line_ is None and "rate" not in texts(display)


@pytest.mark.parametrize(
    ("model", "data", "loss", "assumed"),
    [
        (Classifier(), CANCER, losses.Logistic(), {}),
        (Classifier(loss="hinge"), CANCER, losses.Hinge(), {}),
        (Classifier(loss="hinge", theta=0.7), CANCER, losses.Hinge(), {"theta": 0.7}),
        (Classifier(loss="hinge", output="average"), CANCER, losses.Hinge(), {"output": "average"}),
        (Regressor(), DIABETES, losses.Square(), {}),
        (Regressor(assumptions={"zeta": 0.5}), DIABETES, losses.Square(), {"zeta": 0.5}),
        (Regressor(loss="absolute", stop="theory"), DIABETES, losses.Absolute(), {}),
    ],
)
def test_the_rate_is_the_theorems_through_the_last_point(model, data, loss, assumed):
    display = drawn(model.set_params(max_iter=20), data)
    expected = stopping_time(1000, loss, **assumed)
    rows, rate = display.rate_line_.get_data()
    assert (rows[-1], rate[-1]) == pytest.approx((270, display.line_.get_ydata()[-1]))
    logarithm = math.log(math.log(270) / math.log(30)) / math.log(9) if expected.logarithm else 0.0
    slope = math.log(rate[-1] / rate[0]) / math.log(rows[-1] / rows[0])
    assert slope == pytest.approx(logarithm - expected.rate)
    label = texts(display)
    assert f"rate $n^{{-{expected.rate:.2g}}}$" in label and "up to a constant" in label
    assert ("ln" in label) == expected.logarithm and f"excess {model.loss} risk" in label
    assert display.rate_line_.get_linestyle() == "--"
    # in the units of the data; others lead to labels
    assert [line.get_transform() is display.axes_.transAxes for line in display.axes_.get_lines()].count(False) == 2
