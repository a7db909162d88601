"""Rows that come one by one are learned together, and give the model of rows that come at once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tunefree import ScInOLClassifier, ScInOLRegressor
from tunefree.estimators import waiting

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))
NAMES = np.where(X[:, 0] > 0, "yes", "no")


def one_by_one(model, rows, y, asked=()):
    for i in range(len(rows)):
        model.partial_fit(rows[i : i + 1], y[i : i + 1])
        if i in asked:
            model.predict(rows[:2])
    return model


@pytest.mark.parametrize("asked", [(), (3, 4, 300)])
@pytest.mark.parametrize(
    ("make", "y"),
    [(ScInOLClassifier, NAMES), (ScInOLClassifier, (X[:, 0] > 0) * 1), (ScInOLRegressor, X[:, 0] * 3.0)],
    ids=["names", "codes", "numbers"],
)
def test_the_model_is_that_of_all_rows_at_once(make, y, asked):
    whole = make().partial_fit(X, y)
    found = one_by_one(make(), X, y, asked)
    assert found._waiting.count > 0 and found.t_ + found._waiting.count == 700
    assert found.predict(X).tobytes() == whole.predict(X).tobytes()
    assert found.coef_.tobytes() == whole.coef_.tobytes()
    assert found.progressive_loss_ == whole.progressive_loss_ and found.t_ == whole.t_ == 700


def test_what_is_not_like_the_rows_before_is_checked_at_once():
    model = one_by_one(ScInOLClassifier(), X[:50], NAMES[:50])
    for rows, y, problem in (
        (X[:1] * np.inf, NAMES[:1], "infinity"),
        (X[:1, :2], NAMES[:1], "features"),
        (X[:2], NAMES[:1], "inconsistent"),
        (X[0], NAMES[:1], "2D"),
    ):
        with pytest.raises(ValueError, match=problem):
            model.partial_fit(rows, y)
    model.partial_fit(X[50:51], ["perhaps"])
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    whole = ScInOLClassifier().partial_fit(X[:51], [*NAMES[:50], "perhaps"])
    assert model.partial_fit(X[51:52], NAMES[51:52]).predict_proba(X).tobytes() == (
        whole.partial_fit(X[51:52], NAMES[51:52]).predict_proba(X).tobytes()
    )
    with pytest.raises(ValueError, match="passes"):
        model.set_params(passes=0).partial_fit(X[:1], NAMES[:1])


def test_copies_and_weights_and_the_limit(monkeypatch):
    model = one_by_one(ScInOLClassifier(), X[:60], NAMES[:60])
    copied = pickle.loads(pickle.dumps(model))
    assert model._waiting.count == copied._waiting.count > 0
    assert copied.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    model.partial_fit(X[60:61], NAMES[60:61])
    model.partial_fit(X[61:62], NAMES[61:62], sample_weight=[2.0])
    assert model._waiting.count == 0
    whole = ScInOLClassifier().partial_fit(X[:62], NAMES[:62], sample_weight=[1.0] * 61 + [2.0])
    assert model.decision_function(X).tobytes() == whole.decision_function(X).tobytes()
    one_by_one(model, X[62:662], NAMES[62:662])
    assert model._waiting.count <= waiting.ROWS
