"""Kernels as machine code: kept on disk, or made from the LLVM text in the package, or compiled anew by Numba.

Only the last of the three imports Numba. A digest tells from which sources text was exported; the name of a file of
machine code tells the fingerprint of the sources, the processor and the compiler. What does not match is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import lzma
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from tunefree.core import compilation
from tunefree.core.declarations import Declaration
from tunefree.core.errors import ModelError
from tunefree.core.exporting import check_symbols, jitted, symbol_of, text_of
from tunefree.core.fields import State, views_type
from tunefree.core.storage import whole_file

TEXTS = Path(__file__).with_name("kernel_texts.xz")  # one after the other: they have much in common
MOST_AGE = 90 * 24 * 3600.0  # seconds that a file of machine code is kept without being used


class Code(NamedTuple):
    """Machine code in memory."""

    address: int
    engine: Any  # which keeps it


@functools.cache
def processor() -> tuple[str, str, str]:
    """The system, the processor and its features, as LLVM compiles for them."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def host() -> Any:
    """What writes machine code for this machine."""
    triple, cpu, features = processor()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def machine_code(text: str, machine: Any, parts: Iterable[Declaration] = ()) -> bytes:
    """Machine code of LLVM text, which names no system or the one of the machine, and calls these kernels."""
    module = llvm.parse_assembly(text)
    if module.triple not in ("", machine.triple):
        raise ValueError(f"text for {module.triple}, not {machine.triple}")
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    check_symbols(module, parts)
    code: bytes = machine.emit_object(module)
    return code


def packaged_text(kernel: Declaration) -> str:
    """The text in the package, if it was exported from these sources and is whole."""
    first, _, text = unpacked(TEXTS)[kernel.name].partition("\n")
    fingerprint, digest, checksum = re.findall("[0-9a-f]{64}", first)
    if checksum != hashlib.sha256(text.encode()).hexdigest():
        raise ValueError("the text is damaged")
    if fingerprint != kernel.fingerprint and digest != kernel.digest:
        raise ValueError("the text was exported from other sources")
    return text


def packed(texts: dict[str, str]) -> bytes:
    """Texts by name as the content of a file, the same for the same texts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "texts"
    >>> _ = path.write_bytes(packed({"b": "two", "a": "one"}))
    >>> unpacked(path)
    {'a': 'one', 'b': 'two'}
    """
    return lzma.compress("\f".join(f"{name}\n{texts[name]}" for name in sorted(texts)).encode(), preset=9)


@functools.cache
def unpacked(path: Path) -> dict[str, str]:
    """The texts in a file, by name."""
    texts = lzma.decompress(path.read_bytes()).decode().split("\f")
    return {name: text for name, _, text in (text.partition("\n") for text in texts)}


def first_line(kernel: Declaration, text: str) -> str:
    """What stands before the text of a kernel in its file."""
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return f"; files {kernel.fingerprint}, sources {kernel.digest}, text {checksum}"


def new_code(kernel: Declaration) -> bytes:
    """Machine code of the text in the package, or else of the text that Numba writes now."""
    machine = host()
    with contextlib.suppress(OSError, KeyError, ValueError, RuntimeError, lzma.LZMAError, EOFError):
        return machine_code(packaged_text(kernel), machine, kernel.parts)
    # a kernel from outside, or text that is stale, damaged, or of a later LLVM, which cannot be read
    compilation.begins()
    return machine_code(text_of(kernel), machine, kernel.parts)


def cache_folder() -> Path | None:
    """Where machine code is kept: ``TUNEFREE_CACHE``, or the user's folder of such things; None without a home."""
    if folder := os.environ.get("TUNEFREE_CACHE"):
        return Path(folder)
    with contextlib.suppress(RuntimeError):  # of a user without a home, as in some containers
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tunefree"
    return None


def cache_path(kernel: Declaration, folder: Path) -> Path:
    """Where the machine code of a kernel is kept, for this processor and compiler."""
    key = hashlib.sha256(repr((kernel.fingerprint, llvmlite.__version__, processor())).encode()).hexdigest()
    return folder / f"{re.sub(r'[^0-9A-Za-z.]', '-', kernel.name)}-{key[:32]}.code"


def cached_code(path: Path) -> bytes | None:
    """Machine code in a file; None if there is none, or its checksum differs."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if content[:32] != hashlib.sha256(path.name.encode() + content[32:]).digest():
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return content[32:]


def write_code(path: Path, code: bytes) -> None:
    """Write a file whole or not at all; a folder that cannot be written to is no error."""
    with contextlib.suppress(OSError, ModelError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(hashlib.sha256(path.name.encode() + code).digest() + code)
        remove_old(path.parent)


def remove_old(folder: Path) -> None:
    """Remove machine code that has not been used for long, and what crashes left."""
    before = time.time() - MOST_AGE
    for path in [*folder.glob("*.code"), *folder.glob("*.part")]:
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()


def machine_code_of(kernel: Declaration) -> bytes:
    """The machine code of a kernel, by the quickest way that there is."""
    folder = cache_folder()
    path = None if folder is None else cache_path(kernel, folder)
    code = None if path is None else cached_code(path)
    if code is None:
        code = new_code(kernel)
        if path is not None:
            write_code(path, code)
    return code


machine_code_of_part = functools.cache(machine_code_of)  # several kernels call it


def load(kernel: Declaration) -> Code:
    """A kernel in machine code, with that of the kernels which it calls."""
    codes = machine_code_of(kernel), *map(machine_code_of_part, kernel.parts)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host())  # one that compiled would keep what it needed
    for code in codes:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Code(engine.get_function_address(symbol_of(kernel)), engine)


def with_checked_bounds(kernel: Declaration) -> Any:
    """A kernel that Numba compiles with checks of bounds, over the same arrays; it may not write where two overlap."""
    compiled = jitted(kernel.function, is_entry=True, boundscheck=True)

    def views(value: Any) -> Any:
        kind = type(value)
        is_state = isinstance(value, State)
        return views_type(kind)(*[getattr(value, field.name) for field in kind.fields]) if is_state else value  # type: ignore[arg-type]

    def checked(*values: Any) -> Any:
        overlaps = overlaps_of([array for value in values for array in arrays_of(value)])
        before = [array.tobytes() for array in overlaps]
        result = compiled(*map(views, values))
        if before != [array.tobytes() for array in overlaps]:
            raise ValueError(f"{kernel.name} writes to one of two arrays that overlap")
        return result

    return checked


def arrays_of(value: Any) -> list[np.ndarray]:
    """The arrays of an argument of a kernel."""
    if isinstance(value, State):
        return [*value.blocks]
    return [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, np.ndarray)]


def overlaps_of(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays that share memory with another one.

    Examples
    --------
    >>> numbers = np.arange(4.0)
    >>> overlaps_of([numbers[:2], numbers[1:], numbers.copy(), numbers[:0]])
    [array([0., 1.]), array([1., 2., 3.])]
    """
    return [
        array
        for place, array in enumerate(arrays)
        if any(np.may_share_memory(array, other) for other in arrays[:place] + arrays[place + 1 :])
    ]
