"""Wrong input of estimators: errors name the parameter and the remedy, and warnings the line of the user."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import tunefree
from tunefree import DataWarning, TuneFreeClassifier, TuneFreeRegressor

N = 40
NUMBERS = np.random.default_rng(0).normal(size=N)
X = pd.DataFrame({"age": NUMBERS, "job": ["cook", "clerk"] * (N // 2)})
LABELS = ["no", "yes"] * (N // 2)
INFINITE = np.where(np.arange(N) == 4, np.inf, NUMBERS)


@pytest.mark.parametrize(
    ("kind", "y", "options", "message"),
    [
        (
            TuneFreeRegressor,
            LABELS,
            {},
            "y: could not convert string to float: 'no'; pass numbers, or use a classifier",
        ),
        (
            TuneFreeRegressor,
            INFINITE,
            {},
            r"Input y contains infinity: y\[4\] is inf; correct it, or leave the row out",
        ),
        (TuneFreeRegressor, NUMBERS[1:], {}, "X has 40 rows, and y has 39; give one target for each row"),
        (TuneFreeClassifier, "job", {}, r"not 'job'; pass the column, such as X\['job'\], and X without it"),
        (TuneFreeClassifier, LABELS, {"classes": "no"}, "classes must be a list of labels, not 'no'"),
        (TuneFreeClassifier, ["no"] * N, {}, r"got 1 class \('no'\); give rows of another class, too, or name all"),
        (TuneFreeClassifier, LABELS, {"sample_weight": "age"}, r"sample_weight is 'age'; .* such as X\['age'\]"),
        (TuneFreeClassifier, LABELS, {"sample_weight": ["a"] * N}, "sample_weight: .*'a'; give a number for each row"),
        (TuneFreeClassifier, LABELS, {"sample_weight": [0.0] * N}, "sample_weight are zero; leave it out"),
    ],
)
def test_an_error_names_the_parameter_and_the_remedy(kind, y, options, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, **options)


@pytest.mark.parametrize("table", [None, "people.csv"])
def test_what_is_no_table_is_shown(table):
    with pytest.raises(ValueError, match=f"X: {table!r} is no table; pass a table or an array; tunefree.train"):
        TuneFreeClassifier().fit(table, LABELS)


def test_a_parameter_is_found_by_the_name_of_its_option():
    with pytest.raises(ValueError, match="there is no parameter 'weight'; did you mean 'sample_weight'"):
        tunefree.train(X, target="job", weight="age")


def test_rows_and_targets_apart_are_for_estimators():
    with pytest.raises(ValueError, match="`plan` is of type list; pass one table, and name its column"):
        tunefree.train(X, LABELS, target="job")


def test_rows_that_are_learned_again_are_told():
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=200), "y": rng.choice(["a", "b"], 200)}
    with pytest.warns(UserWarning, match="earlier ones, and the estimated loss is of such rows; leave out rows that"):
        tunefree.train({name: np.tile(column, 2) for name, column in table.items()}, target="y", shuffle=False)


def test_labels_of_another_type_are_shown_plainly():
    model = TuneFreeClassifier().partial_fit(X, [0, 1] * (N // 2))
    with pytest.raises(ValueError, match="the label 'no' is of another type; convert y"):
        model.partial_fit(X, np.array(LABELS))


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
    assert {warning.filename for warning in caught} == {__file__}


def test_a_table_and_its_target_as_two_tables_are_refused():
    with pytest.raises(ValueError, match="pass one table, and name its column to predict by `target`"):
        tunefree.train(X, pd.Series(LABELS))


def test_a_memory_limit_that_is_far_off_is_not_told_of():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tunefree.train({"job": ["cook", "clerk", "clerk", "cook"] * 10, "y": LABELS}, target="y", memory_limit="150M")
    assert not [warning for warning in caught if "memory_limit" in str(warning.message)]


def test_parameters_and_scores_are_refused_in_words_that_name_them():
    for options, problem in (({"n_jobs": 0}, "`n_jobs` must be"), ({"random_state": "a"}, "`random_state` must be")):
        with pytest.raises(ValueError, match=problem):
            TuneFreeClassifier(**options).fit(X, LABELS)
    for model, y in ((TuneFreeClassifier(), np.array(LABELS)), (TuneFreeRegressor(), NUMBERS)):
        model.fit(X, y)
        with pytest.raises(ValueError, match="X has 40 rows, and y has 39; give one target for each row"):
            model.score(X, y[1:])
        with pytest.raises(ValueError, match="and sample_weight has 2; give one weight for each row"):
            model.score(X, y, sample_weight=[1.0, 2.0])


def test_a_column_that_gives_the_target_away_and_one_that_is_not_known_are_told():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=200), "paid": rng.normal(size=200).round(2)})
    y = pd.Series(table["paid"] > 0.0, name="bought")
    with pytest.warns(DataWarning, match="'paid': alone predicts 100.00 % of 200 rows .* leave it out of X"):
        model = TuneFreeClassifier().fit(table, y)
    with pytest.warns(DataWarning, match="^the model does not know 'height': left out$"):
        model.predict(table.assign(height=1.0, bought=y))


def test_docstrings_name_no_attribute_that_an_estimator_never_has():
    assert "coef_" not in TuneFreeClassifier.__doc__ and "coef_" not in TuneFreeRegressor.__doc__
    assert "coef_" in tunefree.OnlineClassifier.__doc__ and "intercept_" in tunefree.OnlineRegressor.__doc__
