"""Contributions of columns add up to what a model predicts, and are those of the columns that matter."""

import numpy as np
import pytest

from tests.explanation.models import assert_adds_up, features, rows_of, trained
from tunefree import ScInOLClassifier
from tunefree.core.rows import dense
from tunefree.estimators import base
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import importance
from tunefree.explanation.members import LinearTerms
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.stream.layout import Layout
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows.explanation import decomposition_of

LAYOUT = Layout.of_array(["x0", "x1", "x2", "x3"])


def numbers(n=700, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def learned(X, y, weight=None, **options):
    """A pool that has learned rows, labels or numbers, and has not finished."""
    is_numbers = isinstance(y, np.ndarray)
    model = Model("regression" if is_numbers else "classification", **options)
    model.learn(dense(X), y if is_numbers else Labels.of(y), np.ones(len(X)) if weight is None else weight)
    return model


def labels_of(X, n_classes, seed=1):
    scores = np.sin(2 * X[:, 0]) * 2 + X[:, 1] + np.random.default_rng(seed).logistic(size=len(X)) / 2
    places = np.searchsorted(np.quantile(scores, np.linspace(0, 1, n_classes + 1)[1:-1]), scores)
    return [chr(ord("a") + place) for place in places.tolist()]


def before_and_after_its_end(model):
    """A model that learns, and the same when its pass has ended."""
    yield model
    model.freeze()
    yield model


@pytest.mark.parametrize("n_classes", [2, 3, pytest.param(26, marks=pytest.mark.slow)])
def test_contributions_to_classes_add_up(n_classes):
    X = numbers(1000 if n_classes == 26 else 700)
    weight = np.random.default_rng(0).exponential(size=len(X))
    rows = dense(numbers(20 if n_classes > 3 else 100, seed=2))
    for model in before_and_after_its_end(learned(X, labels_of(X, n_classes), weight)):
        contributions = assert_adds_up(Decomposition(model, LAYOUT), rows)
        sizes = np.abs(contributions).mean(axis=(0, 2))[1:]
        assert sizes[:2].min() > sizes[2:].max()


@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_contributions_to_a_linear_truth_are_linear(loss):
    X, new = numbers(1500), numbers(200, seed=2)
    truth = 3.0 * (new[:, 0] - X[:, 0].mean())
    for model in before_and_after_its_end(learned(X, 3.0 * X[:, 0] + 1e3, loss=loss)):
        contributions = assert_adds_up(Decomposition(model, LAYOUT), dense(new))
        assert np.mean(np.abs(contributions[:, 1, 0] - truth)) < 0.15 * np.abs(truth).mean()
        assert np.abs(contributions[:, 2:]).mean() < 0.05 * np.abs(truth).mean()


def test_contributions_after_late_classes_add_up():
    X = numbers(900)
    labels = labels_of(X, 2)
    labels[400::7] = ["late"] * len(labels[400::7])
    labels[700::9] = ["later"] * len(labels[700::9])
    model = learned(X, labels)
    assert any(generation.n_late for *_, generation in model.pool.members.growth.generations())
    assert_adds_up(Decomposition(model, LAYOUT), dense(X[:100]))


def test_contributions_to_a_frozen_mixture_add_up():
    X = numbers(1500)
    model = learned(X, labels_of(X, 3))
    model.freeze()
    frozen, margins = model.pool.contexts[0].frozen, []
    for choice in (0, 1):
        frozen.losses, frozen.squares = np.where(np.arange(3) == choice, 0.1, 1.0), np.full(2, 1e-6)
        assert frozen.choice == choice
        assert_adds_up(Decomposition(model, LAYOUT), dense(X[:100] + 0.01))
        margins.append(model.predict(dense(X[:100] + 0.01)))
    assert (margins[0] != margins[1]).any()


def test_restored_models_and_models_that_only_predict_are_explained(tmp_path):
    model = trained("rich")
    model.save(tmp_path / "m")
    rows = rows_of(model, features(50, seed=1))
    again = decomposition_of(Trained.load(tmp_path / "m"))
    np.testing.assert_array_equal(decomposition_of(model).contributions(rows), again.contributions(rows))
    again.model.pool.reduce()
    small = Decomposition(again.model, again.layout)
    assert small.reference.rows is None
    assert_adds_up(small, rows)
    assert_adds_up(Decomposition(again.model, again.layout, rows), rows)


@pytest.mark.parametrize("learner", ["newton", "scinol2"])
@pytest.mark.parametrize("view", ["raw", "steady"])
def test_single_learners_are_sums_over_columns(learner, view):
    X = numbers()
    model = Model("regression", learner, view=view)
    model.learn(dense(X), 3.0 * X[:, 0] + 5.0, np.ones(len(X)))
    for rows in (None, dense(X)):
        assert_adds_up(Decomposition(model, LAYOUT, rows), dense(X[:50]))


def test_terms_of_words_that_came_once_add_up():
    rng = np.random.default_rng(0)
    texts = [f"{word} day at the {k % 7} in place {k}" for k, word in enumerate(rng.choice(["good", "bad"], 400))]
    model = train(open_source({"said": texts, "y": ["good" in text for text in texts]}), Plan(target="y"))
    group, terms, rows = model.model.linear, decomposition_of(model).terms, rows_of(model, {"said": texts[:50]})
    for part, margins in zip(LinearTerms(group, terms).parts(rows), group.present().predict(rows), strict=True):
        np.testing.assert_allclose(part.start + part.terms.sum(axis=1), margins, atol=1e-9)


def test_importance_of_a_single_learner_is_in_the_order_of_contributions():
    X = numbers(d=3)
    model = ScInOLClassifier().fit(X, labels_of(X, 3))
    _, names, sizes, *_ = importance(base.decomposition_of(model, X))
    assert len(names) == 3 and (np.diff(sizes) < 0.0).all()


def test_importance_of_a_class_is_from_its_loss():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 900))
    data = {"a": a.astype(float).tolist(), "b": b.astype(float).tolist(), "c": rng.normal(size=900).tolist()}
    data["y"] = np.where(a == 0, "none", np.where(b == 1, "yes", "no")).tolist()
    decomposition = decomposition_of(train(open_source(data), Plan(target="y")))
    classes = decomposition.model.classes
    of_none = dict(zip(*importance(decomposition, classes.index("none"))[1:3], strict=True))
    of_all = dict(zip(*importance(decomposition)[1:3], strict=True))
    assert of_all["b"] > 0.2 and of_none["b"] < 0.1 * of_none["a"]
