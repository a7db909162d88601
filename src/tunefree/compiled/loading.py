"""Compiled functions as machine code: kept on disk, or made of the bitcode in the package, or compiled anew by Numba.

Only the last of the three imports Numba. Where it is needed and not there, compiled functions run as Python, and a line
tells so. A digest tells from which sources bitcode was made; the name of a file of machine code tells this digest,
the processor and the compiler. What does not match is not used.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from tunefree.compiled import exporting, packaging
from tunefree.compiled.declarations import Declaration
from tunefree.core.errors import ModelError
from tunefree.core.fields import State, views_type
from tunefree.core.storage import whole_file

log = logging.getLogger(__name__)
logged: set[tuple[str, ...]] = set()  # reasons for which code was compiled


@functools.cache
def processor() -> tuple[str, str, str]:
    """The system, the processor and its features, as LLVM compiles for them."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def host() -> Any:
    """LLVM's target machine, which writes machine code for this machine."""
    triple, cpu, features = processor()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def machine_code(code: bytes | str, parts: Iterable[Declaration] = ()) -> bytes:
    """Machine code of bitcode, or of LLVM text, that names no system and calls these compiled functions."""
    module, machine = llvm.parse_bitcode(code) if isinstance(code, bytes) else llvm.parse_assembly(code), host()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    exporting.check_symbols(module, parts)
    result: bytes = machine.emit_object(module)
    return result


def new_code(declaration: Declaration) -> bytes | None:
    """Machine code by the bitcode in the package, or else by Numba; None where neither is possible."""
    try:
        return machine_code(packaging.packaged(declaration), declaration.parts)
    except (ValueError, RuntimeError) as error:  # the second one of LLVM
        reason = " ".join(str(error).split())  # in one line
    if obstacle := exporting.obstacle():
        tell(logging.WARNING, f"{declaration.name} runs as Python, which is slow, and so may others", reason, obstacle)
        return None
    line = f"compiling {declaration.name}, and others that need it, some seconds each; they are kept on disk"
    tell(logging.INFO if reason == packaging.ABSENT else logging.WARNING, line, reason)
    return machine_code(exporting.bitcode_of(declaration), declaration.parts)


def tell(level: int, line: str, *reasons: str) -> None:
    """Log that code is compiled, which takes seconds, or is not, unless another one was for these reasons."""
    if reasons not in logged:
        logged.add(reasons)
        log.log(level, "%s, since %s", line, ", and ".join(reasons))


def cache_path(declaration: Declaration) -> Path | None:
    """The file of the machine code of a compiled function for this processor and compiler: in ``TUNEFREE_CACHE``, or
    the user's cache; None without a home."""
    folder = os.environ.get("TUNEFREE_CACHE", "")
    if not folder:
        try:
            folder = f"{os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'}/tunefree"
        except RuntimeError:  # of a user without a home, as in some containers
            return None
    key = hashlib.sha256(repr((declaration.digest, llvmlite.__version__, processor())).encode()).hexdigest()
    return Path(folder) / f"{re.sub(r'[^0-9A-Za-z.]', '-', declaration.name)}-{key[:32]}.code"


def cached_code(path: Path) -> bytes | None:
    """Machine code in a file; None if there is none, or its checksum differs."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if content[:32] != hashlib.sha256(path.name.encode() + content[32:]).digest():
        return None
    return content[32:]


def write_code(path: Path, code: bytes) -> None:
    """Write a file whole or not at all; a folder that cannot be written to is no error."""
    with contextlib.suppress(OSError, ModelError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(hashlib.sha256(path.name.encode() + code).digest() + code)


def machine_code_of(declaration: Declaration) -> bytes | None:
    """The machine code of a compiled function, by the quickest way; None where it cannot be compiled."""
    path = cache_path(declaration)
    code = None if path is None else cached_code(path)
    if code is None:
        code = new_code(declaration)
        if path is not None and code is not None:
            write_code(path, code)
    return code


machine_code_of_part = functools.cache(machine_code_of)  # several compiled functions call it


def load(declaration: Declaration) -> Any:
    """A compiled function with those that it calls, in memory; None where it cannot be compiled."""
    codes = [code for code in (machine_code_of(declaration), *map(machine_code_of_part, declaration.parts)) if code]
    return linked(codes, exporting.packed_symbol_of(declaration)) if len(codes) > len(declaration.parts) else None


def linked(codes: Sequence[bytes], symbol: str) -> Any:
    """A function of machine code that takes a table, with its ``address``."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host())  # one that compiled would keep what it needed
    for code in codes:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(symbol)
    function: Any = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(address)
    function.address, function.engine = address, engine  # which keeps the code
    return function


def with_checked_bounds(declaration: Declaration) -> Callable[..., Any]:
    """A compiled function that Numba compiles with checks of bounds, over the same arrays."""
    if obstacle := exporting.obstacle():
        raise RuntimeError(f"no bounds can be checked: {obstacle}")
    compiled = exporting.jitted(declaration.function, is_entry=True, boundscheck=True)

    def views(value: Any) -> Any:
        kind = type(value)
        is_state = isinstance(value, State)
        return views_type(kind)(*[getattr(value, field.name) for field in kind.fields]) if is_state else value  # type: ignore[arg-type]

    return lambda *values: compiled(*map(views, values))
