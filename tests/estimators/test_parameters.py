"""Estimators are groups of parameters: one record says what a parameter means, and what it may be."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

import tunefree
from tunefree.core.docstrings import sections_of
from tunefree.core.parameters import records_of
from tunefree.model_files.plan import Plan

KINDS = [kind for kind in (getattr(tunefree, name) for name in tunefree.PUBLIC.search()) if hasattr(kind, "get_params")]
ONLINE = [kind for kind in KINDS if hasattr(kind, "partial_fit")]
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_docstring_describes_each_parameter_once(kind):
    described = re.findall(r"(?m)^(\w+) : ", sections_of(kind.__doc__)["Parameters"])
    names = list(inspect.signature(kind).parameters)
    assert sorted(described) == sorted(names) == sorted(kind().get_params())
    assert max(map(len, kind.__doc__.splitlines())) <= 120
    attributes = re.findall(r"(?m)^(\w+)[, ]", sections_of(kind.__doc__)["Attributes"])
    assert len(set(attributes)) == len(attributes) and "n_features_in_" in attributes
    assert ("classes_" in attributes) == kind.__name__.endswith("Classifier")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_methods_describe_their_arguments(kind):
    for name in ("fit", "partial_fit", "predict", "predict_proba", "decision_function"):
        if hasattr(kind, name):
            method = getattr(kind, name)
            described = re.findall(r"(?m)^(\w+) : ", sections_of(method.__doc__)["Parameters"])
            assert described == list(inspect.signature(method).parameters)[1:], name
            assert sections_of(method.__doc__)["Returns"]


def test_parameters_that_plans_have_mean_the_same():
    for kind in KINDS:
        for name in ("categorical", "text"):
            record = records_of(kind).get(name)
            assert record is None or record.meaning.startswith(records_of(Plan)[name].meaning)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_estimators_are_cloned_and_shown_by_what_differs(kind):
    assert repr(clone(kind())) == f"{kind.__name__}()"
    changed = kind(random_state=7)
    assert repr(clone(changed)) == f"{kind.__name__}(random_state=7)" and changed != clone(changed)
    with pytest.raises(TypeError, match="random_sate"):
        kind(random_sate=7)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_a_parameter_cannot_be_is_an_error_that_names_it(kind):
    """Objects of no type that a parameter takes, where its record says which it takes."""
    unchecked = {"random_state", "class_weight", "categorical", "text", "transformer", "kernel"}
    for name in set(inspect.signature(kind).parameters) - unchecked:
        with pytest.raises(ValueError, match=f"`{name}` must be "):
            kind(**{name: object()}).fit(X, Y)


@pytest.mark.parametrize("kind", ONLINE, ids=lambda kind: kind.__name__)
def test_a_stream_is_refused_as_rows_in_memory_are(kind):
    with pytest.raises(ValueError, match="`shuffle` must be True or False, not 'no'"):
        kind(shuffle="no").partial_fit(X, Y)


def test_numbers_and_switches_of_numpy_are_taken():
    wanted = tunefree.ScInOLClassifier(average=True, passes=1, variant=1, epsilon=0.5).fit(X, Y)
    of_numpy = {"average": np.bool_(True), "passes": np.int64(1), "variant": np.int32(1), "epsilon": np.float32(0.5)}
    assert (tunefree.ScInOLClassifier(**of_numpy).fit(X, Y).coef_ == wanted.coef_).all()


def test_parameters_of_a_subclass_are_as_it_declares_them():
    class Wide(tunefree.ScInOLClassifier):
        def __init__(self, *, width=1.0):
            super().__init__(epsilon=width)
            self.width = width

    class Plain(tunefree.ScInOLClassifier):
        pass

    assert Wide(width=2.0).get_params() == {"width": 2.0}
    assert clone(Wide(width=2.0)).fit(X, Y).epsilon == 2.0
    assert repr(Plain(epsilon=2.0)) == "Plain(epsilon=2.0)"


def test_a_misspelt_class_is_named_where_the_path_is_computed():
    model = tunefree.IterativeRegularizationClassifier(class_weight={0: 1.0, 5: 2.0}, max_iter=5)
    with pytest.raises(ValueError, match="class_weight of 5: there is no such class"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (tunefree.KernelPiSTOLClassifier(degree=2), "`degree` has no effect with `kernel='rbf'`; leave it out"),
        (tunefree.KernelPiSTOLClassifier(kernel="laplacian", coef0=0.0), "`coef0` has no effect with"),
        (tunefree.KernelPiSTOLClassifier(kernel="linear", gamma=0.5), "`gamma` has no effect with `kernel='linear'`"),
    ],
    ids=["rbf", "laplacian", "linear"],
)
def test_a_parameter_without_effect_is_an_error(model, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=re.escape(problem)):
        clone(model).partial_fit(X, Y)


def test_a_polynomial_has_all_its_parameters():
    model = tunefree.KernelPiSTOLClassifier(kernel="poly", gamma=0.5, degree=2, coef0=0.0, passes=1).fit(X, Y)
    assert model.predict(X).shape == Y.shape
