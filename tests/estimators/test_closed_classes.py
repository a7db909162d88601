"""Classes that are named in `fit` and `partial_fit`, and warnings of classes of very few rows."""

import pickle

import numpy as np
import pytest

from tunefree import ScInOLClassifier, TuneFreeClassifier


def rows(n=1200, odd=(700,)):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no").astype("U3")
    y[list(odd)] = "goo"
    return X, y


def test_another_label_is_an_error_of_fit():
    X, y = rows()
    model = TuneFreeClassifier(random_state=0)
    with pytest.raises(ValueError, match=r"y\[700\] is 'goo', which is not among the classes \['no', 'yes'\]"):
        model.fit(X, y, classes=["yes", "no"])
    kept = y != "goo"
    model.fit(X[kept], y[kept], classes=["yes", "no", "may"])
    assert model.classes_.tolist() == ["may", "no", "yes"]
    assert model.predict_proba(X)[:, 0].max() < 0.1


@pytest.mark.parametrize("make", [ScInOLClassifier, TuneFreeClassifier])
def test_another_label_is_an_error_of_partial_fit(make):
    X, y = rows()
    model = make().partial_fit(X[:600], y[:600], classes=["no", "yes"])
    for copy in (model, pickle.loads(pickle.dumps(model))):
        for part in (slice(690, 710), slice(700, 701)):
            with pytest.raises(ValueError, match="'goo', which is not among the classes"):
                copy.partial_fit(X[part], y[part])
    model.partial_fit(X[690:710], y[690:710], sample_weight=(y[690:710] != "goo").astype(float))
    assert model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match=r"y\[10\] is 'goo'"):
        model.partial_fit(X[690:710], y[690:710], sample_weight=np.arange(20.0))  # the first row is not learned
    model.partial_fit(X[700:701], y[700:701], classes=["goo"])
    assert model.classes_.tolist() == ["goo", "no", "yes"]
    model.partial_fit(X[:5], y[:5])  # those of before are still classes
