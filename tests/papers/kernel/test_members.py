"""Who learns: what a choice of learner stands for, and what does not go together."""

from __future__ import annotations

import pytest

from tunefree.core.errors import ModelError
from tunefree.learners import ALL, family_of
from tunefree.model.members import Setting
from tunefree.model.pool import check_settings, settings_of_members
from tunefree.papers import kernel
from tunefree.papers.kernel.family import FOLLOW_THE_LEADER, PENALTIES, WIDTHS
from tunefree.papers.kernel.kernel_bank import KernelConfig


def test_kernel_learners_have_names_of_their_own():
    assert not set(ALL) & set(kernel.NAMES)
    assert all(family_of(name) is not None for name in kernel.NAMES)
    assert not any(family_of(name) for name in ALL)
    assert set(kernel.NAMES) <= set(ALL.search())


@pytest.mark.parametrize("name", sorted(kernel.NAMES))
def test_a_kernel_learner_without_a_width_has_all(name):
    given = {"penalty": 1.0}
    assert [s.settings for s in settings_of_members(name, given, "steady")] == [{**given, "width": w} for w in WIDTHS]
    given = {"penalty": 1.0, "width": 2.0}
    assert settings_of_members(name, given, "level") == [Setting(name, given, "level")]


def test_regularised_sgd_has_every_penalty_at_every_width():
    found = [(s.settings["penalty"], s.settings["width"]) for s in settings_of_members(FOLLOW_THE_LEADER, {}, "steady")]
    assert found == [(penalty, width) for penalty in PENALTIES for width in WIDTHS]
    assert [s.settings["penalty"] for s in settings_of_members(FOLLOW_THE_LEADER, {"width": 2.0}, "steady")] == list(
        PENALTIES
    )


@pytest.mark.parametrize("named", ["poly", "linear"])
def test_kernels_that_are_no_exponentials_have_one_width(named):
    assert [s.settings["width"] for s in settings_of_members("kernel-pistol", {}, "raw", KernelConfig(named))] == [1.0]


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        (("regression", "kernel-perceptron", None, False, {}, "raw"), "kernel-perceptron learns classes only"),
        (("classification", "kernel-svm", None, False, {}, "raw"), "choose one of pool, .*kernel-pistol"),
        (("classification", "pool", "hinge", False, {}, "raw"), "the pool learns probabilities"),
        (("classification", "pool", None, True, {}, "raw"), "the pool chooses settings"),
        (("classification", "kernel-pistol", None, True, {}, "flat"), "unknown view 'flat'; choose one of raw, "),
    ],
)
def test_what_does_not_go_together_is_named(chosen, problem):
    with pytest.raises(ModelError, match=problem):
        check_settings(*chosen)
