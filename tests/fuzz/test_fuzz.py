"""Some seconds of `make fuzz` with fixed seeds, but for killed processes, and files that once failed."""

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import models, readers
from tests.fuzz.__main__ import FAILURES, STREAMS, TARGETS
from tunefree.core.rows import dense
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

# Inputs of each target, which take half a second or so.
INPUTS = dict.fromkeys(readers.FORMATS, 150) | {f"model-{kind}": 25 for kind in models.KINDS}
INPUTS |= {"model-kernel": 36, "model-pool": 28, "model-array": 40, "model-path": 60}
INPUTS |= {"any-classification": 50, "any-regression": 120, "stream-classification": 2, "stream-regression": 2}
# Inputs that once failed.
OVERFLOW = {"any-regression": (1001, 1031, 1078, 1228, 1403)}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_of_fixed_seeds_do_no_harm(name, tmp_path_factory):
    make, argument = TARGETS[name]
    of_seed, _ = make(argument, tmp_path_factory.getbasetemp())
    found = [of_seed(seed) for seed in (*range(INPUTS[name]), *OVERFLOW.get(name, ()))]
    assert set(found) <= {"finite", "predicts", "read", "refused", "unwritable"}
    assert name.startswith("model") or {"finite", "read"} & set(found)
    assert name in (*STREAMS, ".svm", ".vw") or "refused" in found  # in lines a bad row is skipped
    assert not name.startswith("model") or found.count("refused") >= len(found) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS[:2])
def test_extreme_streams_give_finite_numbers(name, tmp_path):
    of_seed, _ = TARGETS[name][0](name, tmp_path)
    assert {of_seed(seed) for seed in range(30)} == {"finite"}


@pytest.mark.parametrize("path", sorted(FAILURES.glob("*")), ids=lambda path: path.name)
def test_files_that_once_failed(path: Path):
    found = models.outcome(path, models.columns()) if path.suffix == ".model" else readers.outcome(path)
    assert found in ("read", "predicts", "refused")


def test_newton_steps_stay_finite_whatever_the_spread_of_weights():
    """Its matrix was no longer positive once weights were spread over some 25 orders of magnitude."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 4)), Labels.of(rng.integers(0, 3, 300))
        model = Model("classification", "newton", view="steady", n_features=5)
        model.learn(dense(X), y, 10.0 ** rng.uniform(-40, 40, 300))
        assert np.isfinite(model.linear.present(dense(X)).predict(dense(X))).all()


def test_a_member_that_predicts_no_number_sleeps_for_these_rows():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(300, 4)), rng.integers(0, 2, 300), np.ones(300)
    model = Model("classification", n_features=5)
    model.learn(dense(X[:100]), Labels.of(y[:100]), weight[:100])
    learn = model.members[1].learn

    def overflow(X, y, weight, predictions, met):
        learn(X, y, weight, predictions, met)
        predictions[::3] = np.inf

    model.members[1].learn = overflow
    shown, losses = model.learn(dense(X[100:200]), Labels.of(y[100:200]), weight[100:200])
    del model.members[1].learn
    assert np.isfinite(shown).all() and np.isfinite(losses).all() and np.isfinite(model.predict(dense(X))).all()
    weights = model.predictor.shares()
    assert np.isfinite([*weights.values()]).all() and weights[model.members[1].name] > 0.0
    restored = Model.restore(*model.save_state())
    again = [one.learn(dense(X[200:]), Labels.of(y[200:]), weight[200:])[0].tobytes() for one in (model, restored)]
    assert again[0] == again[1]
