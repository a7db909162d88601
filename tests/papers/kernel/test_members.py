"""Who learns: what a choice of learner stands for, and what does not go together."""

from __future__ import annotations

import pytest

from tunefree.model.members import Setting
from tunefree.papers.kernel.family import WIDTHS, settings_of_members
from tunefree.papers.kernel.kernel_bank import KernelConfig


def test_a_kernel_learner_without_a_width_has_all():
    given = {"a": 1.0}
    members = settings_of_members("kernel-pistol", given, "steady")
    assert [member.settings for member in members] == [{**given, "width": width} for width in WIDTHS]
    given = {"a": 1.0, "width": 2.0}
    assert settings_of_members("kernel-pistol", given, "level") == [Setting("kernel-pistol", given, "level")]


@pytest.mark.parametrize("named", ["poly", "linear"])
def test_kernels_that_are_no_exponentials_have_one_width(named):
    assert [s.settings["width"] for s in settings_of_members("kernel-pistol", {}, "raw", KernelConfig(named))] == [1.0]
