"""The registry of learners: names without costs, and learners added from outside."""

import pytest

from tests import naive
from tests.extending import as_before, run_page
from tunefree import learners
from tunefree.core.errors import ModelError
from tunefree.papers.learners.gradient import GradientDescent


def test_every_learner_has_a_twin():
    assert set(naive.ALL) | {"kernel-pistol"} == set(learners.ALL.search())


def test_the_worked_example_runs_as_it_stands():
    with as_before(learners.ALL):
        page = run_page("learner.md")
        assert learners.ALL["kt"] is page["KT"]
        with pytest.raises(ModelError, match="a learner 'kt' already"):
            learners.register("kt", GradientDescent)
