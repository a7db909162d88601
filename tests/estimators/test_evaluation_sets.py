"""Sets of rows that are evaluated along the pass: they change nothing, and their last loss is that of the model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, mean_absolute_error, mean_poisson_deviance, mean_squared_error

import tunefree
from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.core.errors import DataError, ModelError
from tunefree.training.callbacks import Callback

N, NEW = 240, 60
RNG = np.random.default_rng(0)
X = pd.DataFrame({"size": RNG.normal(size=N + NEW), "town": RNG.choice(["Bath", "Ely", "York"], N + NEW)})
LABELS = np.where(X["size"] + (X["town"] == "Ely") + 0.5 * RNG.normal(size=N + NEW) > 0.5, "yes", "no")
NUMBERS = 3.0 * X["size"].to_numpy() + RNG.normal(size=N + NEW)
COUNTS = RNG.poisson(np.exp(X["size"].to_numpy()))
WEIGHTS = RNG.integers(1, 4, NEW).astype(float)
LEARNED, SET = slice(N), slice(N, None)


def written(model, path):
    """The bytes of the model's file, without what sets say."""
    model._learned.progress.evaluated.clear()
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("model", "y", "options"),
    [
        (TuneFreeClassifier(), LABELS, {}),
        (TuneFreeClassifier(shuffle=False), LABELS, {}),
        (TuneFreeClassifier(), LABELS, {"groups": np.arange(N) // 7}),
        (TuneFreeRegressor(), NUMBERS, {"sample_weight": 1.0 + np.arange(N) % 3}),
        (TuneFreeRegressor(loss="poisson"), COUNTS, {}),
    ],
)
def test_a_set_changes_nothing(model, y, options, tmp_path):
    alone = written(model.fit(X[LEARNED], y[LEARNED], **options), tmp_path / "alone.model")
    model.fit(X[LEARNED], y[LEARNED], eval_set=(X[SET], y[SET]), **options)
    table = model.history()
    assert table["valid_0_loss"].null_count < table.num_rows - 2
    assert written(model, tmp_path / "evaluated.model") == alone


def test_the_last_loss_is_the_loss_of_the_model_and_is_printed(capsys):
    sets = [(X[SET], LABELS[SET]), (X[LEARNED], LABELS[LEARNED])]
    options = {"eval_set": sets, "eval_names": ["new", "old"], "eval_sample_weight": [WEIGHTS, None]}
    model = TuneFreeClassifier(verbose=True).fit(X[LEARNED], LABELS[LEARNED], **options)
    last = model.history().to_pandas().iloc[-1]
    assert last["rows"] == N
    *before, line = capsys.readouterr().out.splitlines()
    words = f"{N} rows learned, progressive loss {model.progressive_loss_:.6g}, loss of new {last['new_loss']:.6g}, "
    assert len(before) == 4 and line.startswith("[TuneFreeClassifier]") and words in line
    probabilities = model.predict_proba(X[SET])
    assert last["new_loss"] == pytest.approx(log_loss(LABELS[SET], probabilities, sample_weight=WEIGHTS))
    assert last["old_error"] == pytest.approx(1.0 - model.score(X[LEARNED], LABELS[LEARNED]))


@pytest.mark.parametrize(
    ("loss", "y", "of_loss"),
    [
        ("absolute", NUMBERS, mean_absolute_error),
        ("square", NUMBERS, lambda y, predictions: mean_squared_error(y, predictions)),
        ("poisson", COUNTS, lambda y, predictions: mean_poisson_deviance(y, predictions) / 2),
    ],
)
def test_a_regressor_has_the_loss_that_it_learns(loss, y, of_loss):
    model = TuneFreeRegressor(loss=loss).fit(X[LEARNED], y[LEARNED], eval_set=(X[SET], y[SET]))
    last, before = (model.history()["valid_0_loss"].drop_null().to_pylist()[place] for place in (-1, 0))
    unit = last / of_loss(y[SET], model.predict(X[SET]))
    assert unit == pytest.approx(1.0) or unit == pytest.approx(0.5)
    assert last < before


def test_exposures_of_a_set_make_rates():
    years = 1.0 + np.arange(N + NEW) % 3
    learned = {"X": X[LEARNED], "y": COUNTS[LEARNED], "exposure": years[LEARNED], "eval_set": (X[SET], COUNTS[SET])}
    model = TuneFreeRegressor(loss="poisson").fit(**learned, eval_exposure=[years[SET]])
    rates, predicted = COUNTS[SET] / years[SET], model.predict(X[SET])
    expected = np.average(np.abs(rates - predicted), weights=years[SET])
    assert model.history()["valid_0_error"].to_pylist()[-1] == pytest.approx(expected)
    with pytest.raises(ValueError, match="pass eval_exposure"):
        model.fit(**learned)


def test_callbacks_see_losses_of_sets_and_may_end_the_pass(tmp_path):
    class Until(Callback):
        def step(self, trained, step):
            return bool(trained.progress.evaluated) and trained.progress.evaluated[-1].rows >= 128

    model = TuneFreeClassifier().fit(X[LEARNED], LABELS[LEARNED], eval_set=(X[SET], LABELS[SET]), callbacks=[Until()])
    assert model.history()["rows"].to_pylist()[-1] == model.t_ == 128
    model.save(tmp_path / "a.model")
    assert tunefree.load(tmp_path / "a.model").history() == model.history()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"eval_set": (X[["town"]], LABELS)}, DataError, r"eval_set\[0\].*column 'size' missing"),
        ({"eval_set": (X[:0], LABELS[:0])}, DataError, r"eval_set\[0\].*no rows"),
        (
            {"eval_set": (X[:2], ["no", "maybe"])},
            DataError,
            r"eval_set\[0\]: y, row 2: 'maybe' is not.*name it in classes",
        ),
        ({"eval_set": [(X, LABELS), (X, LABELS[:5])]}, DataError, r"eval_set\[1\].*inconsistent numbers"),
        ({"eval_set": [X, LABELS]}, ValueError, "pair"),
        ({"eval_set": (X, LABELS), "eval_names": ["a", "b"]}, ValueError, "eval_names"),
        ({"eval_set": (X, LABELS), "eval_sample_weight": [WEIGHTS, WEIGHTS]}, ValueError, "for each of the 1 sets"),
        ({"eval_names": ["a"]}, ValueError, "one for each of the 0 sets of eval_set"),
        ({"eval_metric": "auc"}, TypeError, "eval_metric"),
        ({"callbacks": [print]}, ModelError, "early stopping is not needed"),
    ],
)
def test_a_wrong_set_is_an_error_before_a_row_is_learned(options, error, message):
    model = TuneFreeClassifier()
    with pytest.raises(error, match=message):
        model.fit(X[LEARNED], LABELS[LEARNED], **options)
    with pytest.raises(NotFittedError):
        model.predict(X)
