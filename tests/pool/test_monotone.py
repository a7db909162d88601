"""Monotone columns: predictions never turn where a column grows, whatever else a row has."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

import tunefree
from tests.generations.problems import grow
from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.core.errors import DataError, ModelError
from tunefree.generations.problem import Problem
from tunefree.losses import Square
from tunefree.mixing.mixture import Mixture

pytestmark = pytest.mark.filterwarnings("ignore::tunefree.core.errors.DataWarning")  # of numbers far beyond
N = 300
ROUNDING = 1e-12  # exponentials and logarithms are rounded
GRID = np.array([-1e300, -9.0, -2.0, -1.0, -0.5, -0.1, 0.0, 1e-300, 0.2, 0.7, 1.3, 2.5, 8.0, 1e300])
SIGNS = {"up": 1, "down": -1}
LOSSES = ["absolute", "quantile:0.9", "poisson"]


def table(n=N, seed=0):
    """A column that predictions rise with, but for noise, one that they fall with, and others; some are missing."""
    random = np.random.default_rng(seed)
    columns = {name: np.round(random.normal(size=n), 1) for name in ("up", "down", "other")}
    columns["other"][random.random(n) < 0.1] = np.nan
    return pd.DataFrame({**columns, "town": random.choice(["Bath", "Ely", "York"], n)})


def score(X, seed=1):
    """What targets depend on: not monotone at all in one of the columns."""
    noise = np.random.default_rng(seed).normal(size=len(X))
    return X["up"] + np.sin(3 * X["down"]) + X["up"] * (X["town"] == "Ely") * np.sign(X["other"].fillna(0.0)) + noise


def labels(X):
    """Labels of which the one that is sorted last comes first."""
    y = np.where(score(X) > 0.0, "yes", "no")
    y[:2] = "yes", "no"
    return y


def numbers_of(model, X):
    """What rises and falls."""
    classes = list(getattr(model, "classes_", []))
    return model.predict_proba(X)[:, classes.index("yes")] if classes else model.predict(X)


def steps(model, X, column, sign):
    """By how much predictions grow along a column, relative to their size, in the direction of a sign."""
    rows = pd.concat([X.assign(**{column: value}) for value in GRID])
    predictions = numbers_of(model, rows).reshape(len(GRID), len(X))
    return sign * np.diff(predictions, axis=0) / np.abs(predictions).max()


def check(model, X):
    """Sweep each monotone column."""
    for column, sign in SIGNS.items():
        assert steps(model, X, column, sign).min() >= -ROUNDING, column


@pytest.fixture(scope="module", name="X")
def rows():
    return table()


@pytest.mark.parametrize("loss", ["classes", *LOSSES])
def test_predictions_never_turn(X, loss):
    model = TuneFreeClassifier(monotone=SIGNS) if loss == "classes" else TuneFreeRegressor(loss=loss, monotone=SIGNS)
    y = labels(X) if loss == "classes" else np.maximum(np.round(score(X)), 0.0) if loss == "poisson" else score(X)
    check(model.fit(X, y), X)
    free = type(model)(**model.get_params() | {"monotone": None}).fit(X, y)
    assert steps(free, X, "down", -1).min() < -0.01  # the test can fail


def test_nor_on_a_stream_of_rows_that_come_again(X):
    """Rows come again, so that half of them are known; later rows have another order of classes and a new town."""
    y, model = labels(X), TuneFreeClassifier(monotone=SIGNS)
    model.partial_fit(X[:1], y[:1])
    for start in range(1, N, 60):
        rows = slice(start, start + 60)
        model.partial_fit(pd.concat([X[rows], X[rows]]), np.concatenate([y[rows], y[rows]]))
        check(model, X[:50])
    assert model._learned.model.classes == ["yes", "no"] and model._learned.model.pool.known_share > 0.4
    one_by_one = [numbers_of(model, X[i : i + 1])[0] for i in range(9)]
    assert one_by_one == numbers_of(model, X[:9]).tolist()
    single = np.array([numbers_of(model, X[:1].assign(up=value))[0] for value in GRID])
    assert np.diff(single).min() >= 0.0


def test_files_keep_the_order(X, tmp_path):
    y = labels(X)
    model = TuneFreeClassifier(monotone=SIGNS, shuffle=False).partial_fit(X[:200], y[:200])
    model.save(tmp_path / "a.model")
    other = tunefree.load(tmp_path / "a.model")
    assert other.get_params()["monotone"] == SIGNS
    for one in model, other:
        one.partial_fit(X[200:], y[200:])
    assert numbers_of(model, X).tolist() == numbers_of(other, X).tolist()
    check(other, X)
    other.save(tmp_path / "small.model", only_for_prediction=True)
    check(tunefree.load(tmp_path / "small.model"), X)


def test_training_by_a_plan(X):
    trained = tunefree.train(X.assign(rich=labels(X)), target="rich", monotone="up=+,down=-")
    assert trained.trained_.plan.monotone == ("up=+", "down=-") and trained.get_params()["monotone"] == SIGNS
    check(trained, X)
    for parameters in ({"learner": "scinol2"}, {"target": "x", "monotone": ["a=+", "a=-"]}):
        with pytest.raises(ModelError, match="`monotone`"):
            tunefree.train(X.assign(y=score(X)), **{"target": "y", "monotone": "up=+"} | parameters)


def test_arrays_and_groups(X):
    array = X[["up", "down"]].to_numpy()
    model = TuneFreeRegressor(monotone={0: 1, -1: -1}).fit(array, score(X), groups=np.arange(N) // 4)
    moved = array.copy()
    moved[:, 0] += 1.0
    assert (model.predict(moved) >= model.predict(array)).all()


@pytest.mark.parametrize(
    ("monotone", "problem"),
    [
        ({"upp": 1}, "no column 'upp'.*did you mean 'up'"),
        ({"town": 1}, "column 'town': is to be monotone, and was read as a category"),
        ({"one": 1}, "column 'one': is monotone, and has the same value in all rows; leave it out of `monotone`"),
        ({"up": 0}, "'up' has the sign '0'; choose 1 .* or -1"),
        ({"up": "x"}, "'up' has the sign 'x'"),
        (["up"], "must be a dict from columns"),
    ],
)
def test_columns_that_cannot_be_monotone(X, monotone, problem):
    with pytest.raises((DataError, ModelError), match=problem):
        TuneFreeRegressor(monotone=monotone).fit(X.assign(one=1.0), score(X))


def test_there_are_two_classes(X):
    three = np.array(["a", "b", "c"])[np.arange(N) % 3]
    with pytest.raises(DataError, match="'c' is a third class; leave `monotone` out"):
        TuneFreeClassifier(monotone=SIGNS).fit(X, three)
    model = TuneFreeClassifier(monotone=SIGNS).partial_fit(X[:2], three[:2])
    with pytest.raises(DataError, match="'c' is a third class"):
        model.partial_fit(X[2:3], three[2:3])
    assert model.partial_fit(X[3:5], three[3:5]).classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("kind", ["boosted", "linear"])
def test_growers(kind):
    random = np.random.default_rng(0)
    columns, signs = random.normal(size=(500, 3)), np.array([1, -1, 0], np.int8)
    y = np.sin(2 * columns[:, 0]) + 0.5 * columns[:, 1] + columns[:, 0] * columns[:, 2] + random.normal(size=500)
    rows = columns, np.zeros(3, bool), y, np.ones(500), 0, Square()
    model = grow(kind, Problem(*rows, signs=signs), 0)
    moved = columns.copy()
    moved[:, 0], moved[:, 1] = moved[:, 0] + 0.5, moved[:, 1] - 0.5
    assert (model.apply(moved)[1] >= model.apply(columns)[1]).all()  # sums are exact, in this sense
    free = grow(kind, Problem(*rows), 0)
    assert (free.apply(moved)[1] < free.apply(columns)[1]).any()


@pytest.mark.parametrize("n_classes", [0, 2])
def test_mixtures_keep_the_order_of_members(n_classes):
    random = np.random.default_rng(0)
    margins = random.normal(size=(400, 5))
    y = margins @ [2.0, -1.0, -1.0, 0.5, 0.0] + random.normal(size=400)  # corrections would have weights below 0

    def predictions(margins):
        logs = [-np.logaddexp(0.0, margins), -np.logaddexp(0.0, -margins)]
        return np.stack(logs, axis=2) if n_classes else margins[:, :, None]

    for keeps_order in (True, False):
        mixture = Mixture(5, n_classes, None if n_classes else Square(), keeps_order)
        mixture.learn(predictions(margins), (y > 0.0).astype(float) if n_classes else y, np.ones(400))
        steps = []
        for member in range(5):
            moved = margins.copy()
            moved[:, member] += 0.3
            steps.append(mixture.predict(predictions(moved))[:, -1] - mixture.predict(predictions(margins))[:, -1])
        assert (np.min(steps) >= -ROUNDING) == keeps_order


@pytest.mark.parametrize("is_class", [True, False])
def test_the_loss_equals_boosting_with_the_same_constraints(is_class):
    random = np.random.default_rng(3)
    X = random.normal(size=(3000, 5))
    f = np.tanh(2 * X[:, 0]) + np.exp(0.5 * X[:, 1]) * (X[:, 2] > 0) - 0.7 * X[:, 3]  # the rest is noise
    y = f + random.logistic(size=3000) > 0.0 if is_class else f + random.normal(size=3000)
    signs = {0: 1, 1: 1, 3: -1}
    ours = (TuneFreeClassifier if is_class else TuneFreeRegressor)(monotone=signs)
    theirs = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    losses = []
    for model in ours, theirs(monotonic_cst=[1, 1, 0, -1, 0]):
        model.fit(X[:2000], y[:2000])
        predicted = model.predict_proba(X[2000:])[:, 1] if is_class else model.predict(X[2000:])
        losses.append(log_loss(y[2000:], predicted) if is_class else np.mean((predicted - y[2000:]) ** 2))
    assert losses[0] < 1.02 * losses[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_many_models(seed):
    random = np.random.default_rng(seed)
    X = table(int(random.integers(40, 600)), seed)
    is_classes, loss = seed % 2 == 0, LOSSES[seed // 2 % len(LOSSES)]
    kind = TuneFreeClassifier if is_classes else TuneFreeRegressor
    model = kind(monotone=SIGNS, shuffle=bool(seed % 3), **({} if is_classes else {"loss": loss}))
    y = labels(X) if is_classes else np.maximum(np.round(score(X, seed)), 0.0) if loss == "poisson" else score(X, seed)
    check(model.partial_fit(X, y) if seed % 5 == 0 else model.fit(X, y), X)
