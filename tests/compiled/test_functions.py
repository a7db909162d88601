"""Compiled functions: declared arguments, the same bits compiled and uncompiled, bitcode and machine code that do not
fit."""

from __future__ import annotations

import copy
import lzma
import math
import os
import pickle
import re
import subprocess
import sys
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import pytest

from tunefree.compiled import exporting, loading, packaging
from tunefree.compiled.declarations import functions_of, source_of
from tunefree.compiled.exporting import bitcode_of, text_of
from tunefree.compiled.functions import CHECKS_BOUNDS, IS_COMPILED, Compiled, Program
from tunefree.core.fields import State, per_coordinate, per_feature, setting

pytestmark = pytest.mark.skipif(not IS_COMPILED or CHECKS_BOUNDS, reason="there is no machine code to load")
SHRINK = 0.5


class Block(NamedTuple):
    values: Annotated[np.ndarray, "float64[rows, columns]"]
    codes: Annotated[np.ndarray, "int32[rows]"]
    factor: float


class Sums(State):
    totals = per_coordinate("sums")
    counts = per_feature("rows")
    shrink = setting(1.0, "factor")


def shrunk(number):
    return SHRINK * number


def add(state: Any, block: Block, is_counted: bool, mask: Annotated[np.ndarray, "bool[rows]"]) -> int:
    """Add rows to the sums of their codes; returns how many."""
    n = 0
    for i in range(len(block.codes)):
        if mask[i]:
            j = block.codes[i]
            for k in range(block.values.shape[1]):
                state.totals[j, k] += shrunk(block.factor * block.values[i, k]) * state.shrink[0]
            if is_counted:
                state.counts[j] += 1.0
            n += 1
    return n


ADD = Compiled(add, states={"state": Sums})


def spread(state: Sums, steps: Annotated[np.ndarray, "float64[rows, padded]"]) -> None:
    for i in range(len(steps)):
        for k in range(steps.shape[1]):
            state.totals[i, k] += math.sqrt(steps[i, k])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for the machine code of one test."""
    monkeypatch.setenv("TUNEFREE_CACHE", str(tmp_path))
    return tmp_path


def rows(n: int = 50, width: int = 3) -> Block:
    random = np.random.default_rng(1)
    return Block(random.normal(size=(n, width)), random.integers(0, 4, n, np.int32), 1.5)


def test_states_records_and_truth_values_have_the_same_bits_uncompiled(folder):
    block, mask = rows(), np.arange(50) % 3 > 0
    compiled, plain = Sums(4, 3, shrink=0.75), Sums(4, 3, shrink=0.75)
    assert ADD(compiled, block, True, mask) == ADD.function(plain, block, True, mask) == int(mask.sum())
    assert compiled.totals.tobytes() == plain.totals.tobytes() and compiled.counts.sum() == mask.sum()
    assert ADD(compiled, block, False, mask) and compiled.counts.sum() == mask.sum()


def test_a_kernel_of_several_outputs_refuses_one_which_is_laid_out_otherwise(folder):
    block, mask = rows(width=1), np.ones(50, bool)
    with pytest.raises(ValueError, match="is for several outputs: their padded number is a multiple of 4"):
        ADD(Sums(4, 1), block, True, mask)
    one = Sums(4, 1)
    assert Compiled(add, "test.add_one", {"state": Sums}, {"padded": 1})(one, block, True, mask) == 50
    np.testing.assert_allclose(one.totals.sum(), SHRINK * 1.5 * block.values.sum())


def test_arguments_of_another_type_layout_or_size_are_refused(folder):
    state, block, mask = Sums(4, 3), rows(), np.ones(50, bool)
    long_codes, fortran = block.codes.astype(np.int64), np.asfortranarray(block.values)
    for arguments, error, problem in (
        ((state, block._replace(codes=long_codes), True, mask), TypeError, r"int32\[rows\], not int64\[50\]"),
        ((state, block._replace(values=fortran), True, mask), TypeError, "block_values must be a contiguous array"),
        ((state, block._replace(factor="x"), True, mask), TypeError, r"takes the numbers block_factor .*, not 'x', T"),
        ((state, block, True, mask[1:]), ValueError, "mask has 49 rows, not 50"),
        ((block, block, True, mask), TypeError, "state must be Sums, not Block"),
        ((state, block, True), TypeError, "takes 4 arguments, not 3"),
    ):
        with pytest.raises(error, match=problem):
            ADD(*arguments)
    with pytest.raises(TypeError, match="add returns a number, which a program has no place for"):
        Program([(ADD, state, block, True, mask)])
    with pytest.raises(TypeError, match="the annotation of number must be a number, or an Annotated array"):
        Compiled(shrunk)(1.0)
    assert not state.totals.any()


def test_no_array_of_a_state_is_replaced_and_copies_have_their_own(folder):
    state, block, mask = Sums(4, 3), rows(), np.ones(50, bool)
    ADD(state, block, True, mask)
    with pytest.raises(AttributeError, match="totals of Sums is changed in place, not replaced"):
        state.totals = np.zeros((4, 4))
    for other in (copy.deepcopy(state), state.grown(6, 3), pickle.loads(pickle.dumps(state))):
        ADD(other, block, True, mask)
        np.testing.assert_array_equal(other["counts"][:4], 2.0 * state["counts"])


@cache
def bitcode_of_add() -> packaging.Bitcode:
    """The bitcode that would be in the package."""
    return packaging.Bitcode(ADD.digest, bitcode_of(ADD))


def write_package(folder, monkeypatch, changed=lambda content: content, **fields) -> None:
    """A package of one compiled function, whose bitcode and file are changed."""
    path = folder / "bitcode.xz"
    path.write_bytes(changed(packaging.packed({ADD.name: bitcode_of_add()._replace(**fields)})))
    packaging.unpacked.cache_clear()
    monkeypatch.setattr(packaging, "FILE", path)


@pytest.fixture
def log(monkeypatch, caplog) -> Any:
    """What is logged of compilation in a test."""
    monkeypatch.setattr(loading, "logged", set())
    return caplog


def of_later_llvm(content: bytes) -> bytes:
    return lzma.compress(re.sub(rb'"llvm": \d+', b'"llvm": 999', lzma.decompress(content)))


STALE = {"digest": ""}
MISFITS: dict[str, Any] = {
    "its source is not the one": STALE,
    "is damaged": {"changed": lambda content: content[:500] + bytes([content[500] ^ 1]) + content[501:]},
    "xz of the package is damaged": {"changed": lambda content: content[: len(content) // 2]},
    "is for LLVM 999 or later, and this llvmlite has LLVM": {"changed": of_later_llvm},
    "file doesn't start with bitcode header": {"code": b"BC no bitcode at all"},
}


@pytest.mark.parametrize("reason", MISFITS)
def test_bitcode_that_does_not_fit_is_told_with_the_reason_and_compiled_anew(reason, folder, monkeypatch, log):
    write_package(folder, monkeypatch, **MISFITS[reason])
    monkeypatch.setattr(exporting, "bitcode_of", lambda kernel: bitcode_of_add().code)
    state, plain, block, mask = Sums(4, 3), Sums(4, 3), rows(), np.ones(50, bool)
    for _ in range(2):
        Compiled(add, states={"state": Sums})(state, block, True, mask)
        add(plain, block, True, mask)
    assert state.totals.tobytes() == plain.totals.tobytes()
    (line,) = log.messages
    assert line.startswith(f"compiling {ADD.name}, ")
    assert reason in line and "\n" not in line


@pytest.mark.parametrize("numba", [None, SimpleNamespace(__version__="0.66.1")])
def test_without_a_fit_numba_a_kernel_runs_as_python_and_a_warning_tells_why(folder, monkeypatch, log, numba):
    write_package(folder, monkeypatch, **STALE)
    monkeypatch.setitem(sys.modules, "numba", numba)  # importing None raises ImportError
    exporting.obstacle.cache_clear()
    with pytest.raises(RuntimeError, match="no bounds can be checked: Numba"):
        loading.with_checked_bounds(ADD)
    state, plain, block, mask = Sums(4, 3), Sums(4, 3), rows(), np.ones(50, bool)
    Compiled(add, states={"state": Sums})(state, block, True, mask)
    assert re.search(r"add runs as Python.*its source is not.*pip install 'tunefree\[numba\]'", log.text)
    add(plain, block, True, mask)
    assert state.totals.tobytes() == plain.totals.tobytes() and not list(folder.glob("*.code"))
    exporting.obstacle.cache_clear()


def test_bitcode_that_fits_is_not_compiled_anew(folder, monkeypatch, log):
    assert packaging.unpacked(folder / "no.xz")[0] == "no.xz of the package cannot be read (No such file or directory)"
    write_package(folder, monkeypatch)
    Compiled(add, states={"state": Sums})(Sums(4, 3), rows(), True, np.ones(50, bool))
    assert not log.messages


def test_bitcode_is_the_same_each_time_and_has_no_names_of_values():
    assert bitcode_of(ADD) == bitcode_of_add().code
    assert "%state" not in str(llvm.parse_bitcode(bitcode_of_add().code))


def test_what_is_compiled_anew_has_vectors_and_leaves_no_setting_of_numba_changed(folder):
    import numba

    before = numba.config.OPT
    function, state, steps = Compiled(spread), Sums(5, 4), np.arange(20.0).reshape(5, 4)
    text = text_of(function)
    assert "<4 x double> @llvm.sqrt" in text and "double @sqrt(" not in text
    function(state, steps)
    np.testing.assert_array_equal(state.totals, np.sqrt(steps))
    assert numba.config.OPT is before


def test_damaged_machine_code_is_replaced(folder, monkeypatch):
    write_package(folder, monkeypatch)
    monkeypatch.setenv("TUNEFREE_CACHE", str(folder / "new" / "cache"))
    loading.load(ADD)
    (path,) = folder.glob("new/cache/*.code")
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"", whole[:500] + bytes([whole[500] ^ 1]) + whole[501:], b"foreign"):
        path.write_bytes(damaged)
        loading.load(ADD)
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path, monkeypatch):
    write_package(tmp_path, monkeypatch)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUNEFREE_CACHE", str(tmp_path / "file" / "folder"))
    loading.load(ADD)
    monkeypatch.delenv("TUNEFREE_CACHE")
    for name, folder in (("XDG_CACHE_HOME", "tunefree"), ("HOME", ".cache/tunefree")):
        monkeypatch.setenv(name, str(tmp_path))
        assert loading.cache_path(ADD).parent == tmp_path / folder
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "getuid", lambda: 2**31)  # of nobody, who has no home either
    assert loading.cache_path(ADD) is None and loading.load(ADD)


def test_code_that_calls_functions_outside_the_library_is_refused():
    call = "%y = call double @system(double %x)\nret double %y"
    text = f"declare double @system(double)\ndefine double @f(double %x) {{\n{call}\n}}"
    with pytest.raises(ValueError, match="system"):
        loading.machine_code(text)


def test_digest_follows_functions_and_constants(monkeypatch):
    def digest() -> str:
        functions_of.cache_clear()
        return Compiled(add, states={"state": Sums}).digest

    before = digest()
    assert digest() == before
    digests = [before]
    for shrink in (0.25, np.float32(0.25), np.float32(0.5)):
        monkeypatch.setitem(add.__globals__, "SHRINK", shrink)
        digests.append(digest())
    assert len(set(digests)) == 4
    monkeypatch.undo()
    assert digest() == before
    monkeypatch.setitem(add.__globals__, "shrunk", lambda number: SHRINK * number)
    assert digest() != before
    functions_of.cache_clear()


def test_digest_follows_no_comments_and_no_other_functions(tmp_path):
    def source(text: str) -> str:
        path = tmp_path / f"{len(text)}.py"
        path.write_text(text)
        scope: dict[str, Any] = {}
        exec(compile(text, path, "exec"), scope)
        return source_of(scope["f"])

    text = "def f(\n    x,\n):\n    y = 2 * x\n\n    return y\n"
    assert source(f"# first\n{text}") == text.replace("\n\n", "\n").strip()
    assert source(text.replace("x,", "x,  # a number") + "\n\ndef g():\n    pass\n") == source(text)
    assert source(text.replace("2", "33")) != source(text)


def halve(number: float, halves: Annotated[np.ndarray, "float64[n]"]) -> float:
    """Write a number, and return its half."""
    for i in range(len(halves)):
        halves[i] = SHRINK * number
    return SHRINK * number


def sum_halves(
    numbers: Annotated[np.ndarray, "float64[rows]"], halves: Annotated[np.ndarray, "float64[rows, n]"]
) -> float:
    total = 0.0
    for i in range(len(numbers)):
        total += halve(numbers[i], halves[i])
    return total


def test_a_kernel_calls_the_machine_code_of_its_parts(folder):
    part = Compiled(halve, "test.halve")
    whole, alone = (Compiled(sum_halves, "test.sum_halves", parts=parts) for parts in ((part,), ()))
    assert whole.parts == (part,) and "@test_halve" in text_of(whole) and "@test_halve" not in text_of(alone)
    assert whole.digest != alone.digest
    numbers = np.random.default_rng(0).normal(size=5)
    answers = []
    for function in (whole, alone, sum_halves):
        halves = np.zeros((5, 3))
        answers.append((function(numbers, halves), halves.tobytes()))
    assert answers[0] == answers[1] == answers[2]
    assert len(list(folder.glob("test.halve-*.code"))) == 1


def write_beyond(numbers: Annotated[np.ndarray, "float64[n]"]) -> None:
    numbers[len(numbers)] = 1.0


def test_with_checked_bounds_wrong_arguments_indices_and_writes_where_two_arrays_overlap_are_errors():
    program = """
import numpy as np, pytest, tests.overlaps
from tests.compiled.test_functions import Compiled, sum_halves, write_beyond
sums, numbers = Compiled(sum_halves), np.ones(15)
assert sums(numbers[:5].copy(), numbers.reshape(5, 3)) == 2.5
for function, arguments, error, problem in (
    (sums, (numbers[:5], numbers.reshape(5, 3)), ValueError, "writes to one of two arrays that overlap"),
    (sums, (numbers[:4].copy(), numbers.reshape(5, 3)), ValueError, "halves has 5 rows, not 4"),
    (Compiled(write_beyond), (numbers,), IndexError, "out of bounds"),
):
    with pytest.raises(error, match=problem):
        function(*arguments)
"""
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"NUMBA_BOUNDSCHECK": "1"}, check=True)
