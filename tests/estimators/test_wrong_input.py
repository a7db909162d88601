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
CLASSES, NUMERIC = TuneFreeClassifier(), TuneFreeRegressor()
INFINITE = np.where(np.arange(N) == 4, np.inf, NUMBERS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NUMERIC.fit(X, LABELS), "y: could not convert string to float: 'no'; pass numbers, or use a class"),
        (lambda: NUMERIC.fit(X, INFINITE), r"Input y contains infinity: y\[4\] is inf; correct it, or leave the row"),
        (lambda: NUMERIC.fit(X, NUMBERS[1:]), "X has 40 rows, and y has 39; give one target for each row"),
        (lambda: CLASSES.fit(X, "job"), r"not 'job'; pass the column, such as X\['job'\], and X without it"),
        (lambda: CLASSES.fit(X, LABELS, classes="no"), "classes must be a list of labels, not 'no'"),
        (lambda: CLASSES.fit(X, ["no"] * N), r"got 1 class \('no'\); give rows of another class, too, or name all"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight="age"), r"sample_weight is 'age'; .* such as X\['age'\]"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight=["a"] * N), "sample_weight: .*'a'; give a number for each row"),
        (lambda: CLASSES.fit(X, LABELS, sample_weight=[0.0] * N), "sample_weight are zero; leave it out"),
        (lambda: CLASSES.fit(None, LABELS), "X: None is no table; pass a table or an array; tunefree.train"),
        (lambda: CLASSES.fit("a.csv", LABELS), "X: 'a.csv' is no table; pass a table or an array; tunefree.train"),
        (lambda: TuneFreeClassifier(n_jobs=0).fit(X, LABELS), "`n_jobs` must be"),
        (lambda: TuneFreeClassifier(random_state="a").fit(X, LABELS), "`random_state` must be"),
        (lambda: CLASSES.fit(X, LABELS).score(X, LABELS[1:]), "X has 40 rows, and y has 39; give one target"),
        (lambda: NUMERIC.fit(X, NUMBERS).score(X, NUMBERS, [1.0]), "and sample_weight has 1; give one weight for each"),
        (lambda: CLASSES.fit(X, LABELS).partial_fit(X, [1, 0] * 20), "the label 1 is of another type; convert y"),
        (lambda: tunefree.train(X, target="job", weight="age"), "no parameter 'weight'; did you mean 'sample_weight'"),
        (lambda: tunefree.train(X, pd.Series(LABELS)), "pass one table, and name its column to predict by `target`"),
    ],
)
def test_an_error_names_the_parameter_and_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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


def test_a_memory_limit_that_is_far_off_is_not_told_of():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tunefree.train({"job": ["cook", "clerk", "clerk", "cook"] * 10, "y": LABELS}, target="y", memory_limit="150M")
    assert not [warning for warning in caught if "memory_limit" in str(warning.message)]


def test_a_column_that_gives_the_target_away_and_one_that_is_not_known_are_told():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=200), "paid": rng.normal(size=200).round(2)})
    y = pd.Series(table["paid"] > 0.0, name="bought")
    with pytest.warns(DataWarning, match="'paid': alone predicts 100.00 % of 200 rows .* leave it out of X"):
        model = TuneFreeClassifier().fit(table, y)
    with pytest.warns(DataWarning, match="^the model does not know 'height': left out$"):
        model.predict(table.assign(height=1.0, bought=y))
