"""Some seconds of `make fuzz` with fixed seeds: learners with any loss and view, and models of every kind.

Files are tried by the tests of readers and of models; killed processes by `make fuzz` alone.
"""

import pytest

from tests.fuzz.__main__ import TARGETS

# Inputs of each target, which take half a second or so.
INPUTS = {"any-classification": 50, "any-regression": 120, "stream-classification": 2, "stream-regression": 2}
INPUTS |= dict.fromkeys(("model-averaged", "model-steady", "model-calibrated", "model-regression"), 20)
INPUTS |= {"model-kernel": 36, "model-pool": 28, "model-array": 40, "model-path": 60}
# Inputs that once failed.
OVERFLOW = {"any-regression": (1001, 1031, 1078, 1228, 1403)}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_of_fixed_seeds_do_no_harm(name, tmp_path):
    make, argument = TARGETS[name]
    of_seed, _ = make(argument, tmp_path)
    found = [of_seed(seed) for seed in (*range(INPUTS[name]), *OVERFLOW.get(name, ()))]
    assert set(found) <= {"finite", "predicts", "refused", "unwritable"}
    assert {"finite", "predicts"} & set(found)
