"""Who learns: what a choice of learner stands for, and what does not go together."""

from __future__ import annotations

import pytest

from tunefree.core.errors import ModelError
from tunefree.learners import ALL, family_of
from tunefree.papers.kernel.family import WIDTHS, settings_of_members
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.pool.linear_members import Setting
from tunefree.pool.options import check_settings


def test_kernel_learners_have_a_family():
    assert family_of("kernel-pistol") is not None
    assert not any(family_of(name) for name in ALL)


def test_a_kernel_learner_without_a_width_has_all():
    given = {"a": 1.0}
    members = settings_of_members("kernel-pistol", given, "steady")
    assert [member.settings for member in members] == [{**given, "width": width} for width in WIDTHS]
    given = {"a": 1.0, "width": 2.0}
    assert settings_of_members("kernel-pistol", given, "level") == [Setting("kernel-pistol", given, "level")]


@pytest.mark.parametrize("named", ["poly", "linear"])
def test_kernels_that_are_no_exponentials_have_one_width(named):
    assert [s.settings["width"] for s in settings_of_members("kernel-pistol", {}, "raw", KernelConfig(named))] == [1.0]


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        (("classification", "kernel-svm", None, False, {}, "raw"), "choose one of pool, .*kernel-pistol"),
        (("classification", "pool", "hinge", False, {}, "raw"), "the pool learns probabilities"),
        (("classification", "pool", None, True, {}, "raw"), "the pool chooses settings"),
        (("classification", "kernel-pistol", None, True, {}, "flat"), "unknown view 'flat'; choose one of raw, "),
    ],
)
def test_what_does_not_go_together_is_named(chosen, problem):
    with pytest.raises(ModelError, match=problem):
        check_settings(*chosen)


def test_a_learner_of_classes_learns_no_numbers(for_classes_only):
    with pytest.raises(ModelError, match=f"{for_classes_only} learns classes only"):
        check_settings("regression", for_classes_only, None, False, {}, "raw")
