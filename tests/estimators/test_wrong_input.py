"""Wrong input and parameters: errors name the parameter and the remedy; numbers of any size do no harm."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import tunefree
from tunefree import DataWarning, OnlineRegressor, TuneFreeClassifier, TuneFreeRegressor
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows.evaluation import evaluate

N = 40
NUMBERS = np.random.default_rng(0).normal(size=N)
X = pd.DataFrame({"age": NUMBERS, "job": ["cook", "clerk"] * (N // 2)})
LABELS = ["no", "yes"] * (N // 2)
CLASSES, NUMERIC = TuneFreeClassifier(), TuneFreeRegressor()
INFINITE = np.where(np.arange(N) == 4, np.inf, NUMBERS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NUMERIC.fit(X, LABELS), "y: could not convert string to float: 'no'; pass numbers, or use a class"),
        (lambda: NUMERIC.fit(X, INFINITE), r"Input y contains infinity: y\[4\] is inf; correct it, or leave the row"),
        (lambda: NUMERIC.fit(X, NUMBERS[1:]), "X has 40 rows, and y has 39; give one target for each row"),
        (lambda: CLASSES.fit(X, "job"), r"not 'job'; pass the column, such as X\['job'\], and X without it"),
        (lambda: CLASSES.fit(X, ["no"] * N), r"got 1 class \('no'\); give rows of another class, too, or name all"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight="age"), r"sample_weight is 'age'; .* such as X\['age'\]"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight=[0.0] * N), "sample_weight are zero; leave it out"),
        (lambda: CLASSES.fit("a.csv", LABELS), "X: 'a.csv' is no table; pass a table or an array; tunefree.train"),
        (lambda: CLASSES.fit(X, LABELS).score(X, LABELS[1:]), "X has 40 rows, and y has 39; give one target"),
        (lambda: CLASSES.fit(X, LABELS).partial_fit(X, [1, 0] * 20), "the label 0 is of another type; convert y"),
        (lambda: CLASSES.fit(X[[]], LABELS), "X: there are no columns; pass a table of one column or more"),
        (lambda: tunefree.train({}, target="y"), "the table: there are no columns; pass a table of one column"),
        (lambda: tunefree.train(X, pd.Series(LABELS)), "pass one table, and name its column to predict by `target`"),
    ],
)
def test_an_error_names_the_parameter_and_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rows_that_are_learned_again_are_told():
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=200), "y": rng.choice(["a", "b"], 200)}
    with pytest.warns(UserWarning, match="earlier ones, and the estimated loss is of such rows; leave out rows that"):
        tunefree.train({name: np.tile(column, 2) for name, column in table.items()}, target="y", shuffle=False)


@pytest.mark.parametrize("kind", [TuneFreeClassifier, TuneFreeRegressor])
def test_a_fit_that_fails_leaves_no_model_behind(kind):
    """The columns of an earlier fit have another order than those of the later one."""
    y = NUMBERS if kind is TuneFreeRegressor else LABELS
    model = kind().fit(X.assign(height=3.0 * NUMBERS)[["age", "height"]], y)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X.assign(height=3.0 * NUMBERS)[["height", "age"]], y, sample_weight=-np.ones(N))
    with pytest.raises(NotFittedError):
        model.predict(X.assign(height=3.0 * NUMBERS)[["height", "age"]])


@pytest.mark.parametrize("call", ["predict", "predict_proba", "explain"])
def test_a_warning_is_of_the_line_of_the_user(call):
    model = TuneFreeClassifier().fit(X, LABELS)
    with pytest.warns(DataWarning, match="'Astronaut'") as caught:
        getattr(model, call)(X.assign(job="Astronaut"))
    assert [warning.filename for warning in caught] == [__file__]


def test_a_column_that_gives_the_target_away_and_one_that_is_not_known_are_told():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=200), "paid": rng.normal(size=200).round(2)})
    y = pd.Series(table["paid"] > 0.0, name="bought")
    with pytest.warns(DataWarning, match="'paid': alone predicts 100.00 % of 200 rows .* leave it out of X"):
        model = TuneFreeClassifier().fit(table, y)
    with pytest.warns(DataWarning, match="^the model does not know 'height': left out$"):
        model.predict(table.assign(height=1.0, bought=y))


KINDS = [kind for kind in (getattr(tunefree, name) for name in tunefree.PUBLIC.search()) if hasattr(kind, "get_params")]
ROWS = np.random.default_rng(0).normal(size=(60, 3))
CODES = (ROWS[:, 0] > 0).astype(int)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_a_parameter_cannot_be_is_an_error_that_names_it(kind):
    """Objects of no type that a parameter takes, where its record says which it takes."""
    with pytest.raises(TypeError, match="random_sate"):
        kind(random_sate=7)
    unchecked = {"random_state", "class_weight", "categorical", "text", "transformer", "kernel"}
    for name in set(inspect.signature(kind).parameters) - unchecked:
        with pytest.raises(ValueError, match=f"`{name}` must be "):
            kind(**{name: object()}).fit(ROWS, CODES)


def test_numbers_and_switches_of_numpy_are_taken():
    wanted = tunefree.ScInOLClassifier(average=True, passes=1, variant=1, epsilon=0.5).fit(ROWS, CODES)
    of_numpy = {"average": np.bool_(True), "passes": np.int64(1), "variant": np.int32(1), "epsilon": np.float32(0.5)}
    assert (tunefree.ScInOLClassifier(**of_numpy).fit(ROWS, CODES).coef_ == wanted.coef_).all()


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
    ROWS, y = pd.DataFrame({"x": [0.0, 1.0, 2.0]}), [0.5, 1.0, 2.0]
    model.partial_fit(ROWS, y)
    [name] = parameters
    before = {name: model.get_params()[name]}
    with pytest.raises(ValueError, match=f"`{name}` differs from what the present model began with"):
        model.set_params(**parameters).partial_fit(ROWS, y)
    assert model.set_params(**before).partial_fit(ROWS, y).t_ == 6
    assert model.set_params(**parameters).fit(ROWS, y).t_ == 3


MOST = np.finfo(np.float64).max
RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(300, 3))


def test_metrics_of_huge_targets():
    table = {"x": NORMAL[:, 0], "y": np.where(NORMAL[:, 0] > 0, MOST, -MOST)}
    trained = train(open_source(table), Plan(target="y", task="regression", learner="scinol2"))
    table["y"] = -table["y"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(trained, open_source(table), BadRows()).measures
    assert np.isfinite([number for measure in found.values() for number in measure if number is not None]).all()
    assert found["mean_absolute_error"].value > 1e307 and found["root_mean_squared_error"].value > 1e307
