"""Kernel learners as a model: asleep at first, then the widths are mixed, and saved."""

import copy
import pickle

import numpy as np
import pytest

from tests.papers.kernel.contracts import frozen_after
from tunefree.core import storage
from tunefree.core.rows import dense, part
from tunefree.papers.kernel.family import WIDTHS, Kernels
from tunefree.pool.model import Model, restored
from tunefree.pool.targets import Labels
from tunefree.stream.batch import Batch
from tunefree.training.one_pass import blank, end, one_pass

AXES = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]  # along which curves and pairs are no help


def rings(n, seed=0, n_classes=2):
    """Classes that lie around each other in a plane that is oblique to all columns, and columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X @ AXES, np.digitize(np.hypot(X[:, 0], X[:, 1]), np.linspace(0.0, 2.4, n_classes + 1)[1:-1])


def learned(X, y, learner="kernel-pistol", cuts=(), frozen=256, **options):
    """A model after one pass, and what it predicted on the way."""
    known = options.pop("classes", sorted(set(y.tolist())))
    made = Model("classification", learner, view="steady", n_features=X.shape[1] + 1, classes=list(known), **options)
    shown, edges = [], [0, *cuts, len(X)]
    with frozen_after(frozen):
        for start, stop in zip(edges[:-1], edges[1:], strict=True):
            block, labels = part(dense(X), start, stop), Labels.of(y[start:stop])
            shown.append(made.learn(block, labels, np.ones(stop - start)))
    width = made.n_outputs
    assert all(margins.shape[1] in (1, width) for margins, _ in shown)
    return made, shown


def model_bytes(made, path):
    storage.save(path, *made.save_state())
    return path.read_bytes()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernels_sleep_at_first_and_then_predict_what_no_line_can(n_classes):
    X, y = rings(1500, n_classes=n_classes)
    made, shown = learned(X[:1000], y[:1000])
    assert len(made.predictor.bank.members) == len(WIDTHS)
    assert np.isfinite(shown[0][0]).all() and not shown[0][0][:256, 0].any()
    wrong = made.errors(Labels.of(y[1000:]), made.predict(dense(X[1000:]))).mean()
    linear, _ = learned(X[:1000], y[:1000], "nag")
    assert wrong < 0.15
    assert wrong < 0.5 * linear.errors(Labels.of(y[1000:]), linear.predict(dense(X[1000:]))).mean()
    shares = made.predictor.shares()
    assert list(shares) == [member.name for member in made.predictor.bank.members] and sum(
        shares.values()
    ) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [100, 300, 900])
def test_cuts_and_saving_change_no_byte(n, tmp_path):
    X, y = rings(1000)
    (whole, shown), (pieces, parts) = learned(X[:n], y[:n]), learned(X[:n], y[:n], cuts=(1, 70, 99))
    assert np.concatenate([margins for margins, _ in parts]).tobytes() == shown[0][0].tobytes()
    data = model_bytes(whole, tmp_path / "whole")
    assert model_bytes(pieces, tmp_path / "pieces") == data
    arrays, header = storage.load(tmp_path / "whole")
    again = restored(arrays, header)
    rest = dense(X[n:]), Labels.of(y[n:]), np.ones(1000 - n)
    with frozen_after(256):
        for one in (again, pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
            assert model_bytes(one, tmp_path / "again") == data
            assert one.predict(dense(X)).tobytes() == whole.predict(dense(X)).tobytes()
        assert whole.learn(*rest)[0].tobytes() == again.learn(*rest)[0].tobytes()
    assert model_bytes(whole, tmp_path / "whole") == model_bytes(again, tmp_path / "again")


@pytest.mark.parametrize("frozen", [64, 400])
def test_classes_that_appear_late_change_no_prediction(frozen):
    X, y = rings(600, n_classes=4)
    order = np.argsort(y, kind="stable")[np.r_[0:300]]
    warmup_predictions = np.r_[np.sort(order), np.setdiff1d(np.arange(600), order)]
    X, y = X[warmup_predictions], y[warmup_predictions]
    first = int(np.argmax(y >= 2))
    made, _ = learned(X[:first], y[:first], frozen=frozen, classes=())
    before = made.probabilities(made.predict(dense(X)))
    made.add_class(2)
    made.add_class(3)
    after = made.probabilities(made.predict(dense(X)))
    # each member's odds of the old classes stay; those of a mixture move with the share that each gives the new ones,
    # and what kernels that still wait will have learned with more classes is not quite the same
    most = 0.02 if frozen < first else 0.1
    assert (after[:, :2].argmax(axis=1) != before.argmax(axis=1)).mean() < most
    with frozen_after(frozen):
        made.learn(dense(X[first:]), Labels.of(y[first:]), np.ones(600 - first))
    assert np.isfinite(made.predict(dense(X))).all()
    assert made.n_outputs == 4


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("n", [150, 400])
def test_the_progressive_loss_is_the_mean_loss_of_the_predictions(task, n, monkeypatch):
    """Those of rows that are kept back, too; the error on new rows is not bounded from these."""
    X, codes = rings(n)
    is_numeric, ends = task == "regression", []
    y = np.hypot(X[:, 0], X[:, 1]) + 3.0 if is_numeric else codes
    for cuts in ((0, n), (0, 1, 70, 149, n)):
        known = {"loss": "absolute"} if is_numeric else {"classes": [0, 1]}
        trained, predictions = blank(Model(task, "kernel-pistol", view="steady", n_features=5, **known)), []
        mix = Kernels._mixed

        def mix_and_note(kernels, of_members, rows, mix=mix, predictions=predictions):
            mixed = mix(kernels, of_members, rows)
            is_judged = np.isfinite(of_members).any(axis=(0, 2)) & (rows.evaluation_weight > 0.0)
            predictions.append(mixed[is_judged, 0])
            return mixed

        monkeypatch.setattr(Kernels, "_mixed", mix_and_note)
        with frozen_after(256):
            pieces = [
                Batch(part(dense(X), *of), y[slice(*of)] if is_numeric else Labels.of(y[slice(*of)]),
                      np.ones(of[1] - of[0]))
                for of in zip(cuts[:-1], cuts[1:], strict=True)
            ]  # fmt: skip
            one_pass(trained, pieces)
            end(trained)
        monkeypatch.undo()
        mixed = np.concatenate(predictions)
        losses = np.abs(mixed - y)[1:] if is_numeric else np.logaddexp(0.0, np.where(y, -mixed, mixed))
        metrics = trained.progress.progressive[0]
        assert len(mixed) == metrics.rows == n
        assert metrics.mean_loss() == pytest.approx(losses.mean(), rel=1e-12)
        assert trained.progress.points()[0].mean_loss() == pytest.approx(losses[: 64 - is_numeric].mean(), rel=1e-12)
        if not is_numeric:
            errors = (mixed > 0) != y
            assert metrics.mean_error() == pytest.approx(errors.mean())
            risk = trained.model.record.risks["error"]
            assert (risk.rows, risk.total) == (max(n - 256, 0), errors[256:].sum())
        ends.append([*trained.progress.curve, metrics])
    assert ends[0] == ends[1]
