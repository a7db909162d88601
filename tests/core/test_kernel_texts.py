"""The texts in the package: exported from the sources as they stand, all of them, and nothing else."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from tunefree.cli.kernel_texts import all_kernels
from tunefree.core.loading import TEXTS, packaged_text, unpacked

KERNELS = {kernel.name: kernel for kernel in all_kernels()}


def test_each_kernel_has_a_text_and_each_text_a_kernel():
    assert sorted(unpacked(TEXTS)) == sorted(KERNELS), "run make kernels"


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_text_is_of_the_sources_as_they_stand(name):
    _, digest, _ = re.findall("[0-9a-f]{64}", unpacked(TEXTS)[name].partition("\n")[0])
    assert digest == KERNELS[name].digest and packaged_text(KERNELS[name]), "run make kernels"


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_text_makes_no_pointers_of_numbers(name):
    """Of which LLVM may take the wrong one for the pointer (docs/decisions.md)."""
    assert "inttoptr" not in unpacked(TEXTS)[name]


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_text_names_no_system(name):
    module = llvm.parse_assembly(unpacked(TEXTS)[name])
    assert module.triple == "" and module.data_layout == ""
