"""Whatever a model file says, with a right checksum, it is refused or it predicts."""

import copy
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import raw
from tests.fuzz.models import columns, lie, outcome, saved
from tunefree.core.errors import ModelError
from tunefree.model_files import trained as model_files

KEPT = sorted((Path(__file__).parent / "failures").glob("*.model"))  # files that `make fuzz` found
QUICK = ("linear", "array", "svmlight", "vw", "path", "prediction", "groups", "kernel")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("kind", QUICK)
def test_lies_are_refused_or_harmless(folder, kind):
    arrays, header, data = saved(kind, str(folder))
    raw.save(folder / "lie", arrays, header)
    found = [outcome(folder / "lie", data)]
    for seed in range(25):
        rng = np.random.default_rng(seed)
        changed = lie(arrays, header, rng)
        try:
            raw.save(folder / "lie", *changed)
        except Exception:  # it has no bytes, or no JSON
            continue
        found.append(outcome(folder / "lie", data))
    assert found[0] == "predicts" and found.count("refused") > 12


def set_features(arrays, header):
    header["model"]["n_features"] = 2**40


def set_more_features(arrays, header):
    header["model"]["n_features"] = 2**30


def set_kind(arrays, header):
    header["kind"] = ["linear"]


def set_plan(arrays, header):
    header["plan"] = {**header["plan"], "learner": ["scinol2"]}


def reduce_members(arrays, header):
    n_features, n_outputs = arrays["model.linear.members.0.state.wealth"].shape
    for name in [name for name in arrays if name.startswith("model.linear.members.0.")]:
        del arrays[name]
    arrays["model.linear.members.0.fixed_weights"] = np.zeros((n_features, n_outputs), np.float32)
    arrays["model.linear.members.0.fixed_units"] = np.ones(n_features)
    header["model"] = copy.deepcopy(header["model"])
    header["model"]["linear"]["members"][0] |= {"state": None, "fixed_weights": True, "fixed_units": True}


def add_ids(arrays, header):
    arrays["encoder.keys"] = np.append(arrays["encoder.keys"], np.arange(9, dtype=np.uint64))
    arrays["encoder.name_ends"] = np.append(arrays["encoder.name_ends"], [arrays["encoder.name_ends"][-1]] * 9)
    arrays["encoder.name_columns"] = np.append(arrays["encoder.name_columns"], np.zeros(9, np.int32))


def cut_weights(arrays, header):
    name = "model.linear.members.0.state.wealth"
    arrays[name] = arrays[name][:2]


def count_members(arrays, header):
    header["model"]["member_settings"] *= 900


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_features, "model.n_features is 1099511627776, not a whole number from 2 to"),
        (set_more_features, r"has the shape .*, where other parts ask for 1024"),
        (set_kind, r"a model of kind \['linear'\], which this tunefree does not know"),
        (set_plan, "`learner` must be a string, not \\['scinol2'\\]"),
        (reduce_members, "members learn in a model that only predicts, or the other way"),
        (add_ids, "the encoder has features that the model does not have"),
        (cut_weights, "model.linear.members.0.state.wealth has the shape 2 x 3, where other parts ask for"),
        (count_members, "model.member_settings and model.linear.members differ in number"),
    ],
)
def test_lies_are_named_before_memory_is_taken(folder, change, problem):
    arrays, header, _ = saved("linear", str(folder))
    arrays, header = dict(arrays), {**header, "model": dict(header["model"])}
    change(arrays, header)
    raw.save(folder / "lie", arrays, header)
    with pytest.raises(ModelError, match=problem) as caught:
        model_files.load(folder / "lie")
    assert str(caught.value).startswith(str(folder / "lie"))


def test_a_kernel_learner_with_numbers_of_other_outputs_is_refused(folder):
    arrays, header, _ = saved("kernel", str(folder))
    name = "model.predictor.bank.members.0.state.norms"
    raw.save(folder / "lie", arrays | {name: np.append(arrays[name], 1.0)}, header)
    with pytest.raises(ModelError, match=f"{name} has the shape .*, where other parts ask for"):
        model_files.load(folder / "lie")


def of_member(name, change):
    """A change of an array of the first member of a pool that only predicts."""

    def of_arrays(arrays, header):
        key = f"model.linear.members.0.fixed_{name}"
        arrays[key] = change(arrays[key])

    return of_arrays


def of_pool(value, *path):
    """Another value in the header of a pool."""

    def of_header(arrays, header):
        *parts, last = "model", "predictor", *path
        for part in parts:
            header = header[part]
        header[last] = value

    return of_header


def of_growth(value, *path):
    """Another value in the header of the generations of a pool."""
    return of_pool(value, "members", "growth", *path)


def learn_on(arrays, header):
    header["model"]["predictor"]["only_predicts"] = False


def leave_out_units(arrays, header):
    del arrays["model.linear.members.0.fixed_units"]


def broadcast(arrays, header):
    arrays["model.predictor.contexts.0.mixture.base.weights"] = arrays[
        "model.predictor.contexts.0.mixture.base.means"
    ] = np.ones(1)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (of_member("weights", lambda weights: weights[:2]), "fixed_weights has the shape 2 x 3"),
        (of_member("weights", lambda weights: weights.astype(np.int64)), "fixed_weights is of type int64"),
        (of_member("weights", lambda weights: weights * np.float32(np.nan)), "fixed_weights has a number"),
        (of_member("units", lambda units: units[1:]), "fixed_(units|weights) has the shape"),
        (of_member("units", lambda units: -units), "fixed_units has -.*, where all are at least 0"),
        (leave_out_units, "fixed_units is missing"),
        (learn_on, "model.record.evidence.gradients has the shape 0 x 3"),
        (broadcast, "base.means has the shape|base.weights has the shape"),
        (of_pool(0.0, "unit"), "model.predictor.unit is 0.0, not a finite number from 1"),
        (of_pool(2.0, "unit"), "classes have no unit"),
        (
            of_pool(["linear"], "members", "growth", "kinds"),
            "trees of some kinds are grown that are not grown together",
        ),
        (of_growth(["randomised"], "kinds"), "trees of some kinds are grown that are not grown together"),
        (of_growth(["boosted"], "kinds"), "a generation is of a kind that is not grown"),
        (
            of_pool(0, "members", "growth", "n_ages"),
            "model.predictor.members.growth.n_ages is 0, not a whole number from 1 to 2",
        ),
        (of_growth(1, "n_ages"), "more generations than may be awake"),
    ],
)
def test_lies_about_a_pool_that_only_predicts_are_named(folder, change, problem):
    arrays, header, _ = saved("prediction", str(folder))
    arrays, header = dict(arrays), copy.deepcopy(header)
    change(arrays, header)
    raw.save(folder / "lie", arrays, header)
    with pytest.raises(ModelError, match=problem):
        model_files.load(folder / "lie")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_models_that_once_failed(path):
    assert outcome(path, columns()) in ("refused", "predicts")
