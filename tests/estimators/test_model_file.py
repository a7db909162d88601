"""What a model file does not keep is said when it is written, and when it is asked for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import tunefree
from tunefree.core.errors import DataWarning

CANCER, DIABETES = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
ESTIMATORS = {
    "ScInOLClassifier": CANCER,
    "TuneFreeRegressor": DIABETES,
    "IterativeRegularizationClassifier": CANCER,
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_saving_says_what_is_lost_and_loading_gives_the_rest(name, tmp_path):
    X, y = ESTIMATORS[name]
    estimator = getattr(tunefree, name)().fit(X[:150], y[:150])
    with pytest.warns(DataWarning, match=f"not parameters and (partial_fit|the path) of {name}: tunefree.load"):
        estimator.save(tmp_path / "m")
    model = tunefree.load(tmp_path / "m")
    np.testing.assert_array_equal(model.predict(X), estimator.predict(X))
    for lost in ("partial_fit", "coef_" if "Scin" in name else "n_iter_"):
        assert not hasattr(model, lost)
    with pytest.raises(AttributeError, match="does not learn; go on by `tunefree train DATA --from MODEL`"):
        model.partial_fit(X, y)
    with pytest.raises(AttributeError, match="'n_iter_': a model file keeps what predicts"):
        model.n_iter_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        model.nonsense  # noqa: B018
    if hasattr(estimator, "explain"):
        assert model.explain(X[:9])[0] == estimator.explain(X[:9])[0]
        np.testing.assert_allclose(model.explain(X[:9])[1], estimator.explain(X[:9])[1], rtol=1e-9, atol=1e-12)
        assert model.progressive_loss_ == estimator.progressive_loss_
        assert model.certificate_.loss == estimator.certificate_.loss


def test_a_trained_model_loses_nothing(tmp_path):
    model = tunefree.train({"x": CANCER[0][:, 0], "y": CANCER[1]}, target="y", learner="scinol2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(tmp_path / "m")
    assert tunefree.load(tmp_path / "m").plan == model.plan
