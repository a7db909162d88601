"""The bitcode in the package: made of the sources as they stand, of all of them, and nothing else."""

import os
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from tunefree.compiled.packaging import FILE, all_compiled, unpacked

COMPILED = {kernel.name: kernel for kernel in all_compiled()}
PROBLEM, BITCODES = unpacked(FILE)


def test_bitcode_is_of_each_compiled_function_and_of_the_sources_as_they_stand():
    digests, in_package = ({name: one.digest for name, one in group.items()} for group in (COMPILED, BITCODES))
    assert not PROBLEM and in_package == digests, "run make compiled"


def test_bitcode_names_no_system_and_makes_no_pointers_of_numbers():
    """Of which LLVM may take the wrong one for the pointer (docs/decisions.md)."""
    for name, bitcode in BITCODES.items():
        module = llvm.parse_bitcode(bitcode.code)
        assert module.triple in ("", "unknown-unknown-unknown") and module.data_layout == "", name
        assert "inttoptr" not in str(module), name


FIT = """
import sys
{before}
import numpy as np
from tunefree import TuneFreeClassifier
X = np.random.default_rng(0).normal(size=(200, 3))
print(TuneFreeClassifier().fit(X, X[:, 0] + X[:, 1] > 0).predict_proba(X).tobytes().hex())
print(getattr(sys.modules.get("numba"), "__version__", None))
"""


@pytest.mark.parametrize(
    "version", [None, pytest.param("0.55.0", marks=pytest.mark.slow)], ids=["no Numba", "an old Numba"]
)
def test_what_the_package_has_needs_no_numba(version, tmp_path):
    """Nothing is told, since all that is needed is there; an old Numba is not even imported."""
    before = 'sys.modules["numba"] = None'
    if version:
        (tmp_path / "numba.py").write_text(f"raise RuntimeError('Numba {version} was imported')")
        before = f"sys.path.insert(0, {str(tmp_path)!r})"
    run = {"capture_output": True, "text": True, "check": True}
    command = [sys.executable, "-c", FIT.format(before=before)]
    cold = subprocess.run(command, env=os.environ | {"TUNEFREE_CACHE": str(tmp_path / "cache")}, **run)
    assert cold.stdout.splitlines()[1] == "None" and not cold.stderr
