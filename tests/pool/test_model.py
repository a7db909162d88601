"""The model while it is learned: saved and restored, pickled, and grown by classes that come late."""

import pickle

import numpy as np
import pytest

from tests import naive
from tests.pool.rows import differences
from tunefree.core import storage
from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import dense, part, table
from tunefree.explanation.members import Reference
from tunefree.learners import ALL
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.pool.linear_group import Member, Setting
from tunefree.pool.model import Model, restored
from tunefree.pool.targets import MANY_CLASSES, Labels, check_room, label_of_row, target_of_row
from tunefree.pool.views import Steady, transform

each_learner = pytest.mark.parametrize(
    ("learner", "average"),
    [(name, False) for name in ["pool", *naive.ALL]]
    + [(name, True) for name in naive.ALL if ALL[name].traits.can_be_averaged],
)


def data(n=300, classes=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1e-3, 1.0, 1e3, 1.0]
    scores = X / [1e-3, 1.0, 1e3, 1.0] @ rng.normal(size=(4, len(classes)))
    return dense(X), np.array(classes)[scores.argmax(axis=1)]


def targets(task, y):
    return Labels.of(y) if task == "classification" else (y == "b") * 7.0 + 100.0


@pytest.mark.parametrize(
    ("task", "options"),
    [
        *(("classification", {"learner": name, "average": average}) for name, average in each_learner.args[1]),
        ("classification", {"learner": "nag", "view": "steady"}),
        *(("classification", {"learner": name, "loss": "hinge"}) for name in ("scinol2", "newton")),
        *(("regression", {"learner": name}) for name in ["pool", *naive.ALL]),
    ],
    ids=str,
)
def test_saved_pickled_and_untouched_models_go_on_alike(tmp_path, task, options):
    X, y = data()
    model = Model(task, n_features=5, **options)
    model.learn(part(X, 0, 200), targets(task, y[:200]), np.ones(200))
    storage.save(tmp_path / "model", *model.save_state())
    arrays, header = storage.load(tmp_path / "model")
    models = [model, restored(arrays, header), pickle.loads(pickle.dumps(model))]
    results = [each.learn(part(X, 200, 300), targets(task, y[200:]), np.ones(100))[0] for each in models]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    assert differences(model, models[1]) == differences(model, models[2]) == []
    if task == "classification":
        probabilities = [each.probabilities(each.predict(X)).tobytes() for each in models]
        assert len(set(probabilities)) == 1


@pytest.mark.parametrize(("learner", "average"), [pair for pair in each_learner.args[1] if pair[0] != "pool"])
def test_a_third_class_does_not_move_the_odds_of_the_other_two(learner, average):
    X, y = data()
    model = Model("classification", learner, average=average, n_features=5)
    model.learn(X, Labels.of(y), np.ones(300))
    margins = model.predict(X)
    before = model.probabilities(margins)
    model.add_class("c")
    margins_of_three = model.predict(X)
    after = model.probabilities(margins_of_three)
    assert after.shape == (300, 3)
    np.testing.assert_allclose(margins_of_three[:, 1] - margins_of_three[:, 0], margins[:, 0], rtol=1e-12)
    with np.errstate(divide="ignore", over="ignore"):  # odds of learners that are not invariant to scale are extreme
        odds = np.log(before[:, 1] / before[:, 0])
        np.testing.assert_allclose(np.log(after[:, 1] / after[:, 0]), odds, rtol=1e-9, atol=1e-12)


def test_classes_known_beforehand_and_found_at_their_first_row_are_learned_from_there_on():
    X, y = data(classes=("a", "b", "c", "d"))
    first = {label: int(np.argmax(y == label)) for label in "abcd"}
    found = Model("classification", n_features=5)
    margins, _ = found.learn(X, Labels.of(y), np.ones(300))
    assert found.classes == sorted("abcd", key=first.get)
    for k, label in enumerate(found.classes[2:], start=2):
        assert np.isneginf(margins[: first[label], k]).all()
        assert np.isfinite(margins[first[label] :, k]).all()
    known = Model("classification", n_features=5, classes=found.classes)
    known.learn(X, Labels.of(y), np.ones(300))
    assert known.errors(Labels.of(y), known.predict(X)).mean() < 0.2
    assert found.errors(Labels.of(y), found.predict(X)).mean() < 0.2


def test_a_late_class_knows_that_it_was_absent():
    """What the constant has learned is what it learns of rows of other classes alone."""
    (X, y), objective = data(400), Objective("classification", loss_of("classification", None))
    member = Member(Setting("scinol2", {}, "raw"), False, 5, 1, objective)
    member.learn(X, np.where(y == "b", 1.0, -1.0), np.ones(400), np.empty((400, 1)))
    member.add_outputs(Objective("classification"), 3)
    assert member.state.wealth[0, 2] > 1.0 and member.state.gradients[0, 2] < 0.0
    weights, units = member.weights(5)
    np.testing.assert_allclose(weights[0, 2] / units[0], -np.log(400), rtol=1e-12)
    assert not weights[1:, 2].any()


def test_a_feature_with_the_number_of_a_forgotten_one_is_learned_like_one_with_a_number_of_its_own():
    rng, n = np.random.default_rng(0), 1200
    x, codes, row = rng.normal(size=(n, 1)), rng.integers(2, 5, (n, 1)), np.arange(n)[:, None]
    codes = np.where(row < 800, codes, 2 + codes % 2)  # 4 does not come again
    is_late, predictions, models = (row >= 900) & (x > 0.0), [], []
    y = np.where(2.0 * (codes == 4) - 1.5 * is_late + x + rng.normal(size=(n, 1)) > 0.3, "a", "b")[:, 0]
    for number in (4, 5):
        model = Model("classification", n_features=6, replays=False)
        X, parts = table(x, [1], np.where(is_late, number, codes)), []
        for start, stop in ((0, 790), (790, 800), (800, n)):  # ten rows wait until they are recorded
            if start == 800 and number == 4:
                model.predictor.forget(np.array([4]))
            parts.append(model.learn(part(X, start, stop), Labels.of(y[start:stop]), np.ones(stop - start))[0])
        model.freeze()
        predictions.append(np.concatenate([*parts, model.predict(part(X, 800, n))]))
        models.append(model)
    np.testing.assert_array_equal(*predictions)
    frozen = [[context.frozen.losses for context in model.pool.contexts] for model in models]
    np.testing.assert_array_equal(*frozen)
    assert np.all(frozen[0])
    references = [Reference.of(model, is_table=True) for model in models]
    np.testing.assert_array_equal(references[0].matrix, models[0].pool.members.matrix(references[0].rows))
    known = [reference.rows.codes for reference in references]
    np.testing.assert_array_equal(np.unique(np.hstack(known), axis=0), [[0, 4], [2, 2], [3, 3], [4, 5]])


@pytest.mark.parametrize(
    ("attempt", "problem"),
    [
        (lambda: Model("regression", "nag", view="new"), "unknown view 'new'; choose one of raw, steady"),
        (lambda: Model("classification", loss="hinge"), "the pool learns probabilities.*name a learner for hinge"),
        (lambda: Model("regression", view="steady"), "the pool chooses settings, views and averages"),
        (lambda: transform(Steady.create(2), dense([[1.0]]), np.ones(1)), "rows of 1 dense columns.* has learned 2"),
        (lambda: target_of_row("many"), "the target 'many' is no finite number"),
        (lambda: target_of_row(np.inf), "the target inf is no finite number"),
        (lambda: label_of_row(np.nan), "the label nan is missing"),
        (lambda: check_room(MANY_CLASSES), "more than 1000 different values"),
    ],
)
def test_what_cannot_be_learned_is_refused(attempt, problem):
    with pytest.raises((DataError, ModelError), match=problem):
        attempt()
