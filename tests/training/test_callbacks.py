"""Callbacks of `fit`, `partial_fit` and `train`: what they are told, and that they can end a pass."""

import numpy as np
import pytest

import tunefree
from tunefree import OnlineRegressor, TuneFreeClassifier, TuneFreeRegressor
from tunefree.core.errors import DataError, ModelError
from tunefree.training.callbacks import Callback


class Log(Callback):
    """Notes what it is told; ends a pass after so many rows."""

    def __init__(self, most=np.inf):
        self.most, self.rows, self.losses, self.told = most, 0, 0.0, []

    def begin(self, trained, source):
        self.told.append(("begin", trained.progress.rows, source is None))

    def step(self, trained, step):
        self.rows += len(step.row_losses)
        self.losses += np.nansum(step.row_losses)
        return self.rows >= self.most

    def end(self, trained):
        self.told.append(("end", trained.progress.complete))


def data(n=400):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 3.0


@pytest.mark.parametrize("cls", [TuneFreeClassifier, TuneFreeRegressor])
def test_a_fit_is_told_of_and_is_as_without_callbacks(cls):
    X, y = data(200)
    y, log = (y > 3.0 if cls is TuneFreeClassifier else y), Log()
    model = cls().fit(X, y, callbacks=[log])
    assert log.rows == 200 and log.losses > 0.0
    assert log.told == [("begin", 0, True), ("end", True)]
    assert cls().fit(X, y).predict(X).tolist() == model.predict(X).tolist()


def test_a_step_ends_a_pass_and_learned_rows_stay():
    X, y = data(40_000)
    log = Log(most=1)
    model = OnlineRegressor("scinol2", passes=5, shuffle=False).fit(X, y, callbacks=[log])
    first = OnlineRegressor("scinol2", shuffle=False).fit(X[: log.rows], y[: log.rows])
    assert 0 < log.rows < 40_000 and model.n_iter_ == 1 and log.told[-1] == ("end", True)
    assert model.predict(X[:9]).tolist() == first.predict(X[:9]).tolist()


def test_rows_of_a_stream_are_told_of():
    X, y = data()
    log, model = Log(), TuneFreeRegressor()
    model.partial_fit(X[:100], y[:100], callbacks=[log]).partial_fit(X[100:150], y[100:150], callbacks=[log])
    assert log.rows == 150 and model.t_ == 150
    assert log.told == [("begin", 0, True), ("end", False), ("begin", 100, True), ("end", False)]


def test_a_training_of_files_ends_with_the_rows_that_were_learned(tmp_path):
    X, y = data(2000)
    lines = [f"{a:.6f},c{k},{t:.6f}" for k, ((a, *_), t) in enumerate(zip(X, y, strict=True))]
    paths = [tmp_path / f"{k}.csv" for k in range(5)]
    for k, path in enumerate(paths):
        path.write_text("\n".join(["a,c,y", *lines[400 * k : 400 * (k + 1)]]))
    models = []
    for _ in range(2):
        log = Log(most=500)
        model = tunefree.train(paths, target="y", learner="scinol2", callbacks=[log])
        assert log.rows == 800 and log.told == [("begin", 0, False), ("end", True)]
        model.save(tmp_path / "m")
        models.append((tmp_path / "m").read_bytes())
    assert models[0] == models[1]  # also where rows could have been read ahead
    first = tunefree.train(paths[:2], target="y", learner="scinol2")
    assert first._encoder.n_features == model._encoder.n_features
    assert first.predict({"a": [0.5], "c": ["c1"]}).tolist() == model.predict({"a": [0.5], "c": ["c1"]}).tolist()


@pytest.mark.parametrize("learner", ["pool", "scinol2", "kernel-pistol"])
@pytest.mark.parametrize("targets", [["no", "yes"], [1.5, 2.25]])
def test_rows_that_weigh_nothing_are_an_error_of_a_training(learner, targets):
    table = {"a": list(range(80)), "y": targets * 40, "w": [0.0] * 80}
    with pytest.raises(DataError, match=r"column 'w': all rows have a weight of 0.*leave `sample_weight` out"):
        tunefree.train(table, target="y", sample_weight="w", learner=learner)


def test_a_fit_of_rows_that_weigh_nothing_is_an_error_and_a_piece_of_a_stream_may_be():
    X, y = data(50)
    with pytest.raises(ValueError, match="at least one non-zero"):
        TuneFreeRegressor().fit(X, y, sample_weight=np.zeros(50))
    model = TuneFreeRegressor().partial_fit(X, y, sample_weight=np.zeros(50)).partial_fit(X, y)
    assert model.predict(X).tolist() == TuneFreeRegressor().partial_fit(X, y).predict(X).tolist()


@pytest.mark.parametrize("callbacks", [Log(), [print], print])
def test_other_objects_are_refused_before_anything_is_learned(callbacks):
    X, y = data(50)
    model = TuneFreeRegressor().fit(X, y)
    before = model.predict(X).tolist()
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ModelError, match="`callbacks` must be a list of objects of subclasses of"):
            learn(X, y, callbacks=callbacks)
    with pytest.raises(ModelError, match="`callbacks` must be a list"):
        tunefree.train({"x": X[:, 0], "y": y}, target="y", callbacks=callbacks)
    assert model.predict(X).tolist() == before
