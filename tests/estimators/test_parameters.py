"""Estimators are groups of parameters: one record says what a parameter means, and what it may be."""

import inspect

import numpy as np
import pandas as pd
import pytest

import tunefree
from tunefree import OnlineRegressor, TuneFreeRegressor

KINDS = [kind for kind in (getattr(tunefree, name) for name in tunefree.PUBLIC.search()) if hasattr(kind, "get_params")]
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_a_parameter_cannot_be_is_an_error_that_names_it(kind):
    """Objects of no type that a parameter takes, where its record says which it takes."""
    unchecked = {"random_state", "class_weight", "categorical", "text", "transformer", "kernel"}
    for name in set(inspect.signature(kind).parameters) - unchecked:
        with pytest.raises(ValueError, match=f"`{name}` must be "):
            kind(**{name: object()}).fit(X, Y)


def test_an_estimator_shows_what_it_learned():
    estimator = tunefree.OnlineClassifier("scinol2")
    assert "What was learned" not in estimator._repr_html_()
    estimator.fit(X, Y)
    for shown in (estimator._repr_html_(), estimator._repr_mimebundle_()["text/html"]):
        assert "OnlineClassifier" in shown and f"{estimator.progressive_loss_:.6g}" in shown


def test_numbers_and_switches_of_numpy_are_taken():
    wanted = tunefree.ScInOLClassifier(average=True, passes=1, variant=1, epsilon=0.5).fit(X, Y)
    of_numpy = {"average": np.bool_(True), "passes": np.int64(1), "variant": np.int32(1), "epsilon": np.float32(0.5)}
    assert (tunefree.ScInOLClassifier(**of_numpy).fit(X, Y).coef_ == wanted.coef_).all()


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (TuneFreeRegressor(), {"loss": "absolute"}),
        (TuneFreeRegressor(monotone={"x": 1}), {"monotone": {"x": -1}}),
        (OnlineRegressor("nag"), {"learner": "scinol2"}),
        (OnlineRegressor("nag"), {"average": True}),
    ],
)
def test_a_parameter_that_the_present_model_did_not_begin_with_is_refused(model, parameters):
    X, y = pd.DataFrame({"x": [0.0, 1.0, 2.0]}), [0.5, 1.0, 2.0]
    model.partial_fit(X, y)
    [name] = parameters
    before = {name: model.get_params()[name]}
    with pytest.raises(ValueError, match=f"`{name}` differs from what the present model began with"):
        model.set_params(**parameters).partial_fit(X, y)
    assert model.set_params(**before).partial_fit(X, y).t_ == 6
    assert model.set_params(**parameters).fit(X, y).t_ == 3
