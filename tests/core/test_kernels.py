"""Kernels: declared arguments, the same bits compiled and uncompiled, texts and machine code that are not trusted."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
import subprocess
import sys
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from tunefree.core import loading
from tunefree.core.exporting import check_symbols, text_of
from tunefree.core.fields import State, per_coordinate, per_feature, setting
from tunefree.core.kernels import IS_COMPILED, Kernel, kernel
from tunefree.core.prefetching import fetch_line, prefetch

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
SHRINK = 0.5


class Block(NamedTuple):
    """A record of arrays and a number."""

    values: Annotated[np.ndarray, "float64[rows, columns]"]
    codes: Annotated[np.ndarray, "int32[rows]"]
    factor: float


class Sums(State):
    """A state."""

    totals = per_coordinate("sums")
    counts = per_feature("rows")
    shrink = setting(1.0, "factor")


def shrunk(number):
    """A helper that kernels call."""
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


ADD = Kernel(add, states={"state": Sums})


def spread(state: Sums, steps: Annotated[np.ndarray, "float64[rows, padded]"]) -> None:
    """Add the roots of rows."""
    for i in range(len(steps)):
        for k in range(steps.shape[1]):
            state.totals[i, k] += math.sqrt(steps[i, k])


def ahead(state: Sums, steps: Annotated[np.ndarray, "float64[rows]"]) -> None:
    """Add rows, of which the memory of those to come is fetched."""
    for i in range(len(steps)):
        prefetch(state.counts, i + 1000, 0)
        fetch_line(state.totals, 1, i + 10**12)  # of no memory
        state.totals[i, 0] += steps[i]
        state.counts[i] += 1.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for machine code of a test's own."""
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
    assert Kernel(add, "test.add_one", {"state": Sums}, {"padded": 1})(one, block, True, mask) == 50
    np.testing.assert_allclose(one.totals.sum(), SHRINK * 1.5 * block.values.sum())


def test_arguments_of_another_type_layout_or_size_are_refused(folder):
    state, block, mask = Sums(4, 3), rows(), np.ones(50, bool)
    with pytest.raises(TypeError, match=r"block_codes must be a contiguous array int32\[rows\], not int64\[50\]"):
        ADD(state, block._replace(codes=block.codes.astype(np.int64)), True, mask)
    with pytest.raises(TypeError, match="contiguous"):
        ADD(state, block._replace(values=np.asfortranarray(block.values)), True, mask)
    with pytest.raises(ValueError, match="mask has 49 rows, not 50"):
        ADD(state, block, True, mask[1:])
    with pytest.raises(TypeError, match="state must be Sums, not Block"):
        ADD(block, block, True, mask)
    assert not state.totals.any()


def test_a_state_of_a_class_with_more_fields_is_refused_which_is_laid_out_otherwise(folder):
    class Wider(Sums):
        rates = per_feature("rates")

    with pytest.raises(TypeError, match="state must be Sums, not Wider"):
        ADD(Wider(4, 3), rows(), True, np.ones(50, bool))


def test_no_array_of_a_state_is_replaced_and_copies_have_their_own(folder):
    state, block, mask = Sums(4, 3), rows(), np.ones(50, bool)
    ADD(state, block, True, mask)
    with pytest.raises(AttributeError, match="totals of Sums is changed in place, not replaced"):
        state.totals = np.zeros((4, 4))
    for other in (copy.deepcopy(state), state.grown(6, 3), pickle.loads(pickle.dumps(state))):
        ADD(other, block, True, mask)
        np.testing.assert_array_equal(other["counts"][:4], 2.0 * state["counts"])


@cache
def text_of_add() -> str:
    """The text that would be in the package."""
    return text_of(ADD)


def change(folder, monkeypatch, changed) -> None:
    """A package whose text of a kernel is changed."""
    text = text_of_add()
    path = folder / "texts.xz"
    path.write_bytes(loading.packed({ADD.name: changed(loading.first_line(ADD, text) + "\n" + text)}))
    monkeypatch.setattr(loading, "TEXTS", path)


def for_arm(text: str) -> str:
    """Text with the right checksums, for another processor."""
    body = 'target triple = "aarch64-unknown-linux-gnu"\n' + text.partition("\n")[2]
    return loading.first_line(ADD, body) + "\n" + body


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: re.sub("[0-9a-f]{64}", 64 * "0", text, count=2),
        lambda text: text.replace("fmul", "fadd", 1),
        lambda text: text[: len(text) // 2],
        for_arm,
        lambda text: "",
    ],
    ids=["stale", "damaged", "cut", "another processor", "empty"],
)
def test_text_that_does_not_fit_is_compiled_anew(changed, folder, monkeypatch):
    change(folder, monkeypatch, changed)
    state, plain, block, mask = Sums(4, 3), Sums(4, 3), rows(), np.ones(50, bool)
    notices: list[str] = []
    monkeypatch.setattr(loading.compilation, "begins", lambda: notices.append("compiled"))
    monkeypatch.setattr(loading, "text_of", lambda kernel: text_of_add())
    Kernel(add, states={"state": Sums})(state, block, True, mask)
    add(plain, block, True, mask)
    assert state.totals.tobytes() == plain.totals.tobytes() and notices == ["compiled"]


@pytest.mark.parametrize("count", [0, 1], ids=["as exported", "after a change of comments"])
def test_text_that_fits_is_not_compiled_anew(count, folder, monkeypatch):
    def touched(text):
        return re.sub("files [0-9a-f]{64}", "files " + 64 * "0", text, count=count) if count else text

    change(folder, monkeypatch, touched)
    monkeypatch.setattr(loading.compilation, "begins", lambda: pytest.fail("compiled"))
    Kernel(add, states={"state": Sums})(Sums(4, 3), rows(), True, np.ones(50, bool))


def test_what_is_compiled_anew_has_vectors_and_leaves_no_setting_of_numba_changed():
    import numba

    before = numba.config.OPT
    text = text_of(Kernel(spread))
    assert "<4 x double> @llvm.sqrt" in text and "double @sqrt(" not in text
    assert numba.config.OPT is before


def test_fetching_memory_ahead_is_a_hint_that_changes_nothing_even_where_there_is_no_memory(folder):
    kernel, state, steps = Kernel(ahead), Sums(5, 6), np.arange(5.0)
    assert "call void @llvm.prefetch" in text_of(kernel)
    kernel(state, steps)
    uncompiled = Sums(5, 6)
    ahead(uncompiled, steps)
    assert state["totals"].tobytes() == uncompiled["totals"].tobytes() and state.counts.tolist() == [1.0] * 5


def test_damaged_machine_code_is_replaced(folder, monkeypatch):
    change(folder, monkeypatch, lambda text: text)
    loading.load(ADD)
    (path,) = folder.glob("*.code")
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"", whole[:500] + bytes([whole[500] ^ 1]) + whole[501:], b"foreign"):
        path.write_bytes(damaged)
        loading.load(ADD)
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path, monkeypatch):
    change(tmp_path, monkeypatch, lambda text: text)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUNEFREE_CACHE", str(tmp_path / "file" / "folder"))
    loading.load(ADD)


def test_a_user_without_a_home_compiles_in_each_process(tmp_path, monkeypatch):
    change(tmp_path, monkeypatch, lambda text: text)
    for name in ("TUNEFREE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(loading.Path, "home", no_home)
    assert loading.cache_folder() is None and loading.load(ADD).address


def test_a_full_disk_leaves_no_part_of_a_file(folder, monkeypatch):
    change(folder, monkeypatch, lambda text: text)

    def is_full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", is_full)
    loading.load(ADD)
    assert [path.name for path in folder.iterdir()] == ["texts.xz"]


def test_machine_code_that_was_not_used_for_long_is_removed(folder, monkeypatch):
    change(folder, monkeypatch, lambda text: text)
    for name in ("old-1.code", "left.part", "other.txt"):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (0, 0))
    loading.load(ADD)
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".code") == ["other.txt", "texts.xz"]
    assert len(list(folder.glob("*.code"))) == 1


@pytest.mark.slow
def test_processes_that_compile_at_once_do_not_disturb_each_other(folder):
    program = """
from tests.core.test_kernels import *
state = Sums(4, 3)
ADD(state, rows(), True, np.ones(50, bool))
print(state.totals.sum().hex())
"""
    runs = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = {run.communicate()[0] for run in runs}
    assert len(results) == 1 and all(run.returncode == 0 for run in runs) and len(list(folder.iterdir())) == 1


def test_code_that_calls_what_is_not_in_the_library_is_refused():
    call = "%y = call double @system(double %x)\nret double %y"
    text = f"declare double @system(double)\ndefine double @f(double %x) {{\n{call}\n}}"
    with pytest.raises(ValueError, match="system"):
        loading.machine_code(text, loading.host())
    assert check_symbols is not None


@kernel
def apart(numbers: Annotated[np.ndarray, "float64[n]"]) -> float:
    """The sum of hyperbolic tangents."""
    total = 0.0
    for number in numbers:
        total += math.tanh(number)
    return total


class Nothing(NamedTuple):
    """A record without fields."""


def test_a_record_may_have_no_fields(folder):
    def doubled(pair: Nothing, number: float) -> float:
        return 2.0 * number

    assert Kernel(doubled, "test.doubled")(Nothing(), 1.5) == 3.0


def test_a_kernel_may_return_a_number(folder):
    numbers = np.linspace(-3.0, 4.0, 11)
    assert apart(numbers) == apart.function(numbers)


def test_digest_follows_functions_and_constants_and_no_comments(monkeypatch):
    from tunefree.core.declarations import functions_of

    def digests() -> tuple[str, str]:
        functions_of.cache_clear()
        kernel = Kernel(add, states={"state": Sums})
        return kernel.digest, kernel.fingerprint

    def differ(others: tuple[str, str]) -> bool:
        return all(one != other for one, other in zip(digests(), others, strict=True))

    before = digests()
    assert digests() == before
    monkeypatch.setitem(add.__globals__, "SHRINK", 0.25)
    assert differ(before)
    monkeypatch.undo()
    assert digests() == before
    monkeypatch.setitem(add.__globals__, "shrunk", lambda number: SHRINK * number)
    assert differ(before)
    functions_of.cache_clear()


def test_fingerprint_follows_the_file(tmp_path):
    from tunefree.core.declarations import place_of_source

    def place(source: str) -> tuple[str, ...]:
        path = tmp_path / "written.py"
        path.write_text(source)
        scope: dict[str, Any] = {}
        exec(compile(source, path, "exec"), scope)
        return place_of_source(scope["f"])

    source = "def f():\n    return 1\n"
    assert place(source) == place(source) != place(source + "# a comment\n")


def halve(number: float, halves: Annotated[np.ndarray, "float64[n]"]) -> float:
    """Write a number, and return its half."""
    for i in range(len(halves)):
        halves[i] = SHRINK * number
    return SHRINK * number


def sum_halves(
    numbers: Annotated[np.ndarray, "float64[rows]"], halves: Annotated[np.ndarray, "float64[rows, n]"]
) -> float:
    """The sum of halves."""
    total = 0.0
    for i in range(len(numbers)):
        total += halve(numbers[i], halves[i])
    return total


def test_a_kernel_calls_the_machine_code_of_its_parts(folder):
    part = Kernel(halve, "test.halve")
    whole, alone = (Kernel(sum_halves, "test.sum_halves", parts=parts) for parts in ((part,), ()))
    assert whole.parts == (part,) and "@test_halve" in text_of(whole) and "@test_halve" not in text_of(alone)
    assert whole.digest != alone.digest and whole.fingerprint != alone.fingerprint
    numbers = np.random.default_rng(0).normal(size=5)
    answers = []
    for function in (whole, alone, sum_halves):
        halves = np.zeros((5, 3))
        answers.append((function(numbers, halves), halves.tobytes()))
    assert answers[0] == answers[1] == answers[2]
    assert len(list(folder.glob("test.halve-*.code"))) == 1


def test_with_checked_bounds_a_kernel_may_not_write_where_two_arrays_overlap():
    checked, numbers = loading.with_checked_bounds(Kernel(sum_halves, "test.sum_halves")), np.ones(15)
    assert checked(numbers[:5].copy(), numbers.reshape(5, 3)) == 2.5
    with pytest.raises(ValueError, match=r"test\.sum_halves writes to one of two arrays that overlap"):
        checked(numbers[:5], numbers.reshape(5, 3))
