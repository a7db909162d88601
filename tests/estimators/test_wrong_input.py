"""Wrong input and parameters: errors name the parameter and the remedy; numbers of any size do no harm."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError

import tunefree
from tunefree import DataWarning, OnlineClassifier, OnlineRegressor, TuneFreeClassifier, TuneFreeRegressor
from tunefree.estimators.linear import LinearClassifier
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows.evaluation import evaluate

N = 40
NUMBERS = np.random.default_rng(0).normal(size=N)
X = pd.DataFrame({"age": NUMBERS, "job": ["cook", "clerk"] * (N // 2)})
LABELS = ["no", "yes"] * (N // 2)
Pool, CLASSES, NUMERIC = TuneFreeClassifier, TuneFreeClassifier(), TuneFreeRegressor()
curves = tunefree.CurveDisplay.from_estimator
ROWS = np.random.default_rng(0).normal(size=(60, 3))
CODES = (ROWS[:, 0] > 0).astype(int)
TEXTS = pd.DataFrame({"said": [f"it is a {job} who said {k}" for k, job in enumerate(X["job"])], "gap": np.nan})
SPARSE, DAYS = csr_array(np.tile(ROWS, (1, 20))), np.datetime64("2026-01-01") + CODES
TARGETS = pd.Series(np.arange(N, dtype=float), range(N)).replace(37.0, np.nan)[::-1]  # not in order of the index
PERIODS = pd.period_range("2026-01-01", periods=N, freq="D")
MIXED = np.array([1, "no"] * (N // 2), object)
Further = type("Further", (LinearClassifier,), {"_learner": lambda self: ("scinol2", {})})


def few():
    return TuneFreeClassifier().fit(ROWS[:10], CODES[:10])


def counts(y, exposure=None, loss="poisson"):
    return TuneFreeRegressor(loss=loss).fit([[0.0], [1.0], [2.0]], y, exposure=exposure)


def single(X=ROWS, y=CODES):
    return tunefree.ScInOLClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NUMERIC.fit(X, LABELS), "y: could not convert string to float: 'no'; pass numbers, or use a class"),
        (lambda: NUMERIC.fit(X, [0, 0, 0, 0, np.inf] * 8), "y, row 5: Input y contains infinity; correct it"),
        (lambda: NUMERIC.fit(X, TARGETS), "^y, row 3: Input y contains NaN; leave the row out"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight=-TARGETS), "^sample_weight, row 1: the weight is -39.0, but"),
        (lambda: NUMERIC.fit(X, NUMBERS[1:]), r"inconsistent numbers of samples: \[40, 39\]"),
        (lambda: CLASSES.fit(X, "job"), r"not 'job'; pass the column, such as X\['job'\], and X without it"),
        (lambda: CLASSES.fit(X, ["no"] * N), r"got 1 class \('no'\); give rows of another class, too, or name all"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight="age"), r"sample_weight is 'age'; .* such as X\['age'\]"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight=[0.0] * N), "sample_weight are zero; leave it out"),
        (lambda: CLASSES.fit("a.csv", LABELS), "X: 'a.csv' is no table; pass a table or an array; tunefree.train"),
        (lambda: CLASSES.fit(X, LABELS).score(X, LABELS[1:]), "inconsistent numbers of samples"),
        (lambda: CLASSES.fit(X, LABELS).partial_fit(X, [1, 0] * 20), "the label 0 is of another type; convert y"),
        (
            lambda: CLASSES.fit(X.assign(day=PERIODS), LABELS),
            "cannot be used; leave it out, or convert it, such as to s",
        ),
        (lambda: few().report(ROWS, CODES), "train: a column is not a table of rows; pass one table that has the tar"),
        (lambda: CLASSES.fit(X[[]], LABELS), "X: there are no columns; pass a table of one column or more"),
        (lambda: tunefree.train({}, target="y"), "the table: there are no columns; pass a table of one column"),
        (lambda: tunefree.train(X, pd.Series(LABELS)), "pass one table, and name its column to predict by `target`"),
        (lambda: tunefree.train(X, Plan(target="y"), target="y"), "pass a plan, or target, not both"),
        (lambda: tunefree.train({"a": [0, 1], "y": 1}, target="y"), "column 'y': a single value is no column"),
        (lambda: tunefree.train({"a": [0, 1], "y": "ab"}, target="y"), "column 'y': a single value is no column"),
        (lambda: CLASSES.fit(X.to_numpy(), LABELS), "to float: 'cook'. X is an array with strings.* OneHotEncoder"),
        (lambda: CLASSES.fit(X, MIXED), "str in row 2 and int in row 1; make the labels all strings"),
        (lambda: CLASSES.fit(X, LABELS, classes="yes"), "classes must be a list of labels, not 'yes'"),
        (lambda: CLASSES.fit(X, LABELS, classes=[]), "classes is empty; give all labels"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight=["a"] * N), "sample_weight: .* give a number for each row"),
        (lambda: NUMERIC.fit(ROWS, DAYS), r"Input y is of type datetime64\[D\]; pass numbers"),
        (lambda: CLASSES.fit(X, LABELS, groups=[[1]] * N), r"groups has the shape \(40, 1\), expected \(40,\)"),
        (lambda: CLASSES.fit(X, LABELS, groups=MIXED), "groups has labels of several types"),
        (lambda: CLASSES.fit(X, LABELS, groups=[0.0, np.nan] * 20), "^groups, row 2: the label is missing; give"),
        (lambda: CLASSES.fit(X, LABELS, groups=["a"] * N), "groups: all 40 labels are 'a', so no row"),
        (
            lambda: counts([1.0, -1.0, 0.0]),
            r"^y, row 2: the target is -1, and counts are numbers of at least 0; correct",
        ),
        (
            lambda: counts([1.0, 0.0, 2.0], loss="gamma"),
            r"^y, row 2: the target is 0, and amounts .*; .* `loss` tweedie",
        ),
        (lambda: counts([1.0, 0.0, 2.0], [1.0, 0.0, 1.0]), r"^exposure, row 2: the exposure is 0, .* above 0"),
        (lambda: counts([1.0, 0.0, 2.0], [1.0, np.nan, 1.0]), "^exposure, row 2: the exposure is missing"),
        (lambda: counts([1.0, 0.0, 2.0], [1.0, 1.0]), r"exposure has the shape \(2,\), and there are 3 rows"),
        (lambda: counts([0.0, 0.0, 0.0]), "all targets are 0, and the poisson loss takes means above 0"),
        (lambda: Pool(class_weight={"no": 0, "yes": 0}).fit(X, LABELS), "together leave all rows a weight of zero"),
        (lambda: Pool(class_weight="balanced").partial_fit(X, LABELS), "needs all rows, which partial_fit does not"),
        (lambda: Pool(class_weight=np.ones(2)).fit(X, LABELS), r"be a dict, 'balanced' or None, not array\(\[1"),
        (lambda: Pool(class_weight={"no": -1}).fit(X, LABELS), "class_weight of 'no' must be a number of at least 0"),
        (lambda: Pool(class_weight={"yse": 2}).fit(X, LABELS), "of 'yse': there is no such class; did you mean 'yes'"),
        (lambda: Pool(random_state=-1).fit(X, LABELS), "Seed must be between 0"),
        (lambda: Pool(n_jobs=0).fit(X, LABELS), "`n_jobs` must be a number of threads, .*, not 0"),
        (lambda: Pool(categorical=["job"], text=[1]).fit(X, LABELS), "column 'job' is among categorical and text"),
        (lambda: Pool(categorical=[True]).fit(X, LABELS), "categorical is a mask of 1 columns; there are 2"),
        (lambda: Pool(categorical=[0]).fit(SPARSE, CODES), "categorical is for tables and arrays, not for sparse"),
        (lambda: Pool(monotone={0: 1}).fit(SPARSE, CODES), "monotone is for tables and arrays, not for sparse"),
        (lambda: CLASSES.fit(csr_array((2, 2**31)), [0, 1]), "X has 2147483648 features; at most 2147483646 can be"),
        (lambda: OnlineClassifier("pool").fit(ROWS, CODES), r"use TuneFreeClassifier\(\)"),
        (lambda: OnlineRegressor("pool").fit(ROWS, CODES), r"use TuneFreeRegressor\(\)"),
        (lambda: OnlineClassifier("adagard").fit(ROWS, CODES), "unknown learner 'adagard'; did you mean 'adagrad'"),
        (lambda: OnlineClassifier(view="sideways").fit(ROWS, CODES), "`view` must be 'raw' or 'steady'"),
        (
            lambda: OnlineClassifier("adagrad", settings={"eta": -1.0}).fit(ROWS, CODES),
            r"`settings\['eta'\]` must be a",
        ),
        (lambda: OnlineClassifier("adagrad", settings={"epsilon": 1.0}).fit(ROWS, CODES), "no setting"),
        (lambda: OnlineRegressor("signs").fit(ROWS, CODES), "classes only"),
        (lambda: OnlineClassifier("newton", average=True).fit(ROWS, CODES), "average"),
        (lambda: few().save("m", target="x1"), "`target` 'x1' is the name of a column that the model predicts from"),
        (lambda: single(SPARSE).save("m", target="y"), "lines of svmlight begin with their target"),
        (lambda: single(y=DAYS).save("m"), r"cannot hold the label datetime.date\(2026, 1, 1\)"),
        (lambda: Further().fit(ROWS, CODES).save("m"), "estimators of Further cannot be saved"),
        (lambda: few().estimated_loss_, "there is too little evidence to estimate the loss"),
        (lambda: few().drifts_, "only `tunefree.train` follows losses in the order of the rows"),
        (lambda: few().predict_set(ROWS, conditional="row"), "conditional must be None or 'class', not 'row'"),
        (lambda: few().predict_set(ROWS, [[0.5], [0.8, 0.9]]), "`coverage` must be a number between 0 and 1"),
        (lambda: few().predict_set(ROWS, [0.5, 90]), "`coverage` must lie .*, not be 90; for 90 per cent pass 0.9"),
        (lambda: few().predict_set(ROWS, 0), "`coverage` must lie between 0 and 1, not be 0"),
        (lambda: single(SPARSE).explain(csr_array((5_000_000, 60))), "of 5000000 rows take more than 2 GiB"),
        (lambda: single(np.tile(ROWS, 2000)).predict(csr_array((400_000, 6000))), "on arrays, and 400,000 rows as an"),
        (lambda: single().feature_importances_, "the model keeps no rows, over which columns are compared"),
        (lambda: OnlineClassifier(view="steady").fit(ROWS, CODES).coef_, "on raw rows have weights of"),
        (lambda: tunefree.GenerationsDisplay.from_estimator(single()), "only pools have generations"),
        (lambda: tunefree.GenerationsDisplay.from_estimator(few()), "the first generations come after 16"),
        (lambda: curves(DummyClassifier()), "DummyClassifier is not explained; use an estimator that learns online"),
        (lambda: curves(NUMERIC.fit(ROWS, CODES), target=1), "the model predicts numbers, not classes"),
        (lambda: curves(few(), features=["x9"]), "there is no column 'x9'"),
        (lambda: curves(CLASSES.fit(ROWS[:, 1:], CODES)), "no column to draw: none matters beyond noise"),
        (lambda: curves(CLASSES.fit(TEXTS, LABELS), TEXTS, features=["said"]), "said cannot be drawn: .* it has words"),
        (lambda: curves(CLASSES.fit(TEXTS, LABELS), TEXTS, features=["gap"]), "gap cannot be drawn: no row of the ref"),
    ],
)
def test_an_error_names_the_parameter_and_the_remedy(call, message, for_classes_only):
    with pytest.raises((ValueError, AttributeError), match=message):
        call()


def test_rows_that_are_learned_again_are_told():
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=200), "y": rng.choice(["a", "b"], 200)}
    with pytest.warns(UserWarning, match="earlier ones, and the estimated loss is of such rows; leave out copies of"):
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
    with pytest.raises(ValueError, match=f"`{name}` differs from its value when the present model began"):
        model.set_params(**parameters).partial_fit(ROWS, y)
    assert model.set_params(**before).partial_fit(ROWS, y).t_ == 6
    assert model.set_params(**parameters).fit(ROWS, y).t_ == 3


def test_metrics_of_huge_targets():
    most = np.finfo(np.float64).max
    table = {"x": NUMBERS, "y": np.where(NUMBERS > 0, most, -most)}
    trained = tunefree.train(table, target="y", task="regression", learner="scinol2").trained_
    table["y"] = -table["y"]
    with warnings.catch_warnings(action="error"):
        measures = evaluate(trained, open_source(table), BadRows()).measures
    assert np.isfinite([number for measure in measures.values() for number in measure if number is not None]).all()
    assert measures["mean_absolute_error"].value > 1e307 and measures["root_mean_squared_error"].value > 1e307
