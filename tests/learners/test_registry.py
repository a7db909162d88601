"""The registry of learners: names without costs, and learners added from outside."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import naive
from tests.extending import as_before, run_page
from tunefree import learners
from tunefree.core.errors import ModelError
from tunefree.learners.contract import Traits
from tunefree.papers.learners.gradient import GradientDescent


def test_names_cost_nothing():
    code = "import sys; from tunefree.learners import ALL; list(ALL); assert not {'numba', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_learner_has_a_twin():
    assert set(naive.ALL) | {"kernel-pistol"} == set(learners.ALL.search())


def test_a_misspelt_trait_is_an_error():
    with pytest.raises(TypeError, match="clasifies_only"):
        Traits(clasifies_only=True)
    assert GradientDescent.traits.rate == "eta"


def test_the_worked_example_runs_as_it_stands():
    with as_before(learners.ALL):
        page = run_page("learner.md")
        assert learners.ALL["kt"] is page["KT"]
        with pytest.raises(ModelError, match="a learner 'kt' already"):
            learners.register("kt", GradientDescent)


def test_what_a_test_registered_is_forgotten():
    assert "kt" not in learners.ALL
