"""`tunefree.compare`: any estimators, fitted or not, of any kind of table, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import tunefree
from tunefree.core.errors import TunefreeError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 3))
Y = np.where(RANDOM.random(300) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
LINEAR = LogisticRegression().fit(X, Y)
TRAIN, TEST = slice(0, 150), slice(150, 300)


def fitted(**options):
    return LogisticRegression(**options).fit(X[TRAIN], Y[TRAIN])


def test_any_kind_of_table_is_compared_alike():
    frame = pd.DataFrame(X, columns=list("abc"))
    losses = set()
    for table in (frame, pl.from_pandas(frame), pa.table(dict(frame.items())), dict(frame.items())):
        model = tunefree.OnlineClassifier("scinol2", shuffle=False)
        others = {"inert": tunefree.OnlineClassifier("scinol2", passes=3)}
        compared = tunefree.compare(model, table, pd.Series(Y, name="rich"), others, peers=False)
        losses.add(tuple(one.loss for one in compared.contenders))
        assert compared.target == "rich" and compared.rows == 300
    assert len(losses) == 1


def test_fitted_models_are_judged_as_they_are():
    model, other = fitted(), fitted(C=1e-6)
    compared = tunefree.compare(model, X[TEST], Y[TEST], [other])
    assert [one.name for one in compared.contenders] == ["LogisticRegression", "LogisticRegression 2"]
    assert compared.model.error == pytest.approx(1 - model.score(X[TEST], Y[TEST]))
    assert compared.contenders[1].better == "LogisticRegression" and compared.contenders[1].seconds is None
    table = compared.table()
    assert table["loss_difference_low"].to_pylist()[1] > 0.0 and table["loss_difference"].null_count == 1


def test_peers_learn_the_training_rows():
    others = [DummyClassifier()]
    compared = tunefree.compare(fitted(), X[TEST], Y[TEST], others, train=(X[TRAIN], Y[TRAIN]), n_jobs=1)
    by_name = {one.name: one for one in compared.contenders}
    assert by_name["constant"].loss == pytest.approx(by_name["DummyClassifier"].loss)
    assert by_name["logistic regression"].loss == pytest.approx(compared.model.loss, rel=0.05)
    assert "not clearly different from logistic regression" in compared.sentence


@pytest.mark.parametrize("labels", [[False, True], [0, 1], [1, 3], ["a", "b"]])
def test_labels_of_any_kind(labels):
    y = np.array(labels)[(Y == "yes").astype(int)]
    compared = tunefree.compare(LogisticRegression(), X, y, [DummyClassifier()], peers=False)
    assert compared.contenders[1].better == "LogisticRegression" and compared.classes == labels


def test_weights_and_groups_count():
    weight = np.append(np.ones(200), np.zeros(100))
    options = {"sample_weight": weight, "groups": np.arange(300) // 3, "peers": False}
    weighed = tunefree.compare(LogisticRegression(), X, Y, [DummyClassifier()], **options)
    assert (weighed.rows, weighed.groups) == (200, 67)


def test_numbers_and_a_target_without_a_name():
    y = X[:, 0] + RANDOM.normal(size=300)
    compared = tunefree.compare(LinearRegression(), X, y, {"none": LinearRegression(positive=True)}, peers=False)
    assert compared.sentence.startswith("Predicts the target with a mean absolute error of ")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tunefree.compare(fitted(), X, Y), "which rows peers should learn"),
        (lambda: tunefree.compare(fitted(), X, Y, [LogisticRegression()]), "which rows LogisticRegression 2 should"),
        (lambda: tunefree.compare(LINEAR, X, Y, [LINEAR, LogisticRegression()]), "LogisticRegression 3 should learn"),
        (lambda: tunefree.compare(LinearSVC(), X, Y), "has no predict_proba"),
        (lambda: tunefree.compare(fitted(), X, Y, [LinearRegression()]), "predicts numbers"),
        (lambda: tunefree.compare(fitted(), X, Y, ["a.model"]), "str is no estimator; pass one, as tunefree.load"),
        (lambda: tunefree.compare(fitted(), X, Y[:5], [fitted()]), "a target for each row"),
        (lambda: tunefree.compare(fitted(), X, ["maybe"] * 300, [fitted()]), "no row has a label"),
        (lambda: tunefree.compare(fitted(), X, Y, [fitted()], sample_weight=[-1.0] * 300), "at least 0"),
        (lambda: tunefree.compare(fitted(), X, Y, [fitted()], sample_weight=np.zeros(300)), "weight of 0"),
        (lambda: tunefree.compare(fitted(), X, Y, [fitted()], groups=[1]), "value for each row"),
        (lambda: tunefree.compare(fitted(), X, Y, [fitted()], in_order=True), "is for cross-validation"),
        (lambda: tunefree.compare(fitted(), X, Y, [fitted()], n_jobs=0), "must not be 0"),
        (lambda: tunefree.compare(fitted(), X, Y, train=(X[:, :2], Y)), "other columns than X"),
        (lambda: tunefree.compare(LogisticRegression(), X[:50], ["a"] * 50), "one class"),
    ],
)
def test_what_cannot_be_compared(call, words):
    with pytest.raises(TunefreeError, match=words):
        call()
