"""Whatever a model file says, with a right checksum, it is refused or it predicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import raw
from tests.fuzz.models import columns, lie, outcome, saved
from tunefree.core.errors import ModelError
from tunefree.workflows import model_files

KEPT = sorted((Path(__file__).parent / "failures").glob("*.model"))  # files that `make fuzz` found
QUICK = ("linear", "svmlight", "vw", "path", "prediction")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("kind", QUICK)
def test_lies_are_refused_or_harmless(folder, kind):
    arrays, header, data = saved(kind, str(folder))
    raw.save(folder / "lie", arrays, header)
    found = [outcome(folder / "lie", data)]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        changed = lie(arrays, header, rng)
        try:
            raw.save(folder / "lie", *changed)
        except Exception:  # safetensors cannot write it
            continue
        found.append(outcome(folder / "lie", data))
    assert found[0] == "predicts" and found.count("refused") > 30


def set_features(arrays, header):
    header["model"]["n_features"] = 2**40


def set_more_features(arrays, header):
    header["model"]["n_features"] = 2**30


def set_kind(arrays, header):
    header["kind"] = ["linear"]


def set_plan(arrays, header):
    header["plan"] = {**header["plan"], "learner": ["scinol2"]}


def spoil_shares(arrays, header):
    arrays["model.mixture.means"] = np.full(1, np.nan)


def add_ids(arrays, header):
    arrays["encoder.keys"] = np.append(arrays["encoder.keys"], np.arange(9, dtype=np.uint64))
    arrays["encoder.name_ends"] = np.append(arrays["encoder.name_ends"], [arrays["encoder.name_ends"][-1]] * 9)
    arrays["encoder.name_columns"] = np.append(arrays["encoder.name_columns"], np.zeros(9, np.int32))


def cut_weights(arrays, header):
    name = "model.0.learner.coordinates.wealth"
    arrays[name] = arrays[name][:2]


def count_members(arrays, header):
    header["model"]["member_settings"] *= 900
    for name in ("shares", "means", "losses"):
        arrays[f"model.mixture.{name}"] = np.tile(arrays[f"model.mixture.{name}"], 900)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_features, "model.n_features is 1099511627776, not a whole number from 2 to"),
        (set_more_features, r"has the shape .*, where other parts ask for 1073741824"),
        (set_kind, r"a model of kind \['linear'\], which this tunefree does not know"),
        (set_plan, "plan.learner is a list, not a string"),
        (spoil_shares, "model.mixture.means has a number that is not finite"),
        (add_ids, "the encoder has features that the model does not have"),
        (cut_weights, "model.0.learner.coordinates.wealth has the shape 2 x 3, where other parts ask for"),
        (count_members, "model.member_settings and model.members differ in number"),
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


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_models_that_once_failed(path):
    assert outcome(path, columns()) in ("refused", "predicts")
