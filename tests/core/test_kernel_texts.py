"""The texts in the package: exported from the sources as they stand, all of them, and nothing else."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from tunefree.cli.kernel_texts import all_kernels
from tunefree.core.loading import TEXTS, packaged_text, unpacked

KERNELS = {kernel.name: kernel for kernel in all_kernels()}


def test_each_kernel_has_a_text_and_each_text_a_kernel():
    assert sorted(unpacked(TEXTS)) == sorted(KERNELS), "run make kernels"


def test_texts_are_of_the_sources_as_they_stand():
    digests = {name: re.findall("[0-9a-f]{64}", text.partition("\n")[0])[1] for name, text in unpacked(TEXTS).items()}
    stale = [
        name for name, kernel in KERNELS.items() if digests.get(name) != kernel.digest or not packaged_text(kernel)
    ]
    assert not stale, "run make kernels"


def test_texts_make_no_pointers_of_numbers():
    """Of which LLVM may take the wrong one for the pointer (docs/decisions.md)."""
    assert not [name for name, text in unpacked(TEXTS).items() if "inttoptr" in text]


def test_texts_name_no_system():
    for name, text in unpacked(TEXTS).items():
        module = llvm.parse_assembly(text)
        assert module.triple == module.data_layout == "", name
