"""Compiled functions as machine code: cached on disk, generated from the packaged bitcode, or compiled by Numba.

Only the last of the three imports Numba. If it is needed but not installed, compiled functions run as Python, with a
warning in the log. Bitcode is used only if the digest of its sources matches. The name of a cached file contains a hash
of this digest, the processor and the compiler.
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
logged: set[tuple[str, ...]] = set()  # reasons for compilation that have been logged


@functools.cache
def processor() -> tuple[str, str, str]:
    """The LLVM target triple, the processor and its features."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def host() -> Any:
    """The LLVM target machine of this host."""
    triple, cpu, features = processor()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def machine_code(code: bytes | str, parts: Iterable[Declaration] = ()) -> bytes:
    """Machine code from bitcode or LLVM assembly without a target, which may call the compiled functions ``parts``."""
    module, machine = llvm.parse_bitcode(code) if isinstance(code, bytes) else llvm.parse_assembly(code), host()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    exporting.check_symbols(module, parts)
    result: bytes = machine.emit_object(module)
    return result


def new_code(declaration: Declaration) -> bytes | None:
    """Machine code from the packaged bitcode, or else from Numba; None if neither is possible."""
    try:
        return machine_code(packaging.packaged(declaration), declaration.parts)
    except (ValueError, RuntimeError) as error:  # LLVM raises RuntimeError
        reason = " ".join(str(error).split())  # on one line
    if obstacle := exporting.obstacle():
        tell(logging.WARNING, f"{declaration.name} runs as Python, which is slow, and so may others", reason, obstacle)
        return None
    line = f"compiling {declaration.name}, and others that need it, some seconds each; they are kept on disk"
    tell(logging.INFO if reason == packaging.ABSENT else logging.WARNING, line, reason)
    return machine_code(exporting.bitcode_of(declaration), declaration.parts)


def tell(level: int, line: str, *reasons: str) -> None:
    """Log that a function is compiled or runs as Python, once for the same reasons."""
    if reasons not in logged:
        logged.add(reasons)
        log.log(level, "%s, since %s", line, ", and ".join(reasons))


def cache_path(declaration: Declaration) -> Path | None:
    """The cache file of a compiled function for this processor and compiler, in ``TUNEFREE_CACHE`` or the user's cache
    directory; None without a home directory."""
    directory = os.environ.get("TUNEFREE_CACHE", "")
    if not directory:
        try:
            directory = f"{os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'}/tunefree"
        except RuntimeError:  # no home directory, as in some containers
            return None
    key = hashlib.sha256(repr((declaration.digest, llvmlite.__version__, processor())).encode()).hexdigest()
    return Path(directory) / f"{re.sub(r'[^0-9A-Za-z.]', '-', declaration.name)}-{key[:32]}.code"


def cached_code(path: Path) -> bytes | None:
    """Machine code from a file; None if the file is missing or its checksum differs."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if content[:32] != hashlib.sha256(path.name.encode() + content[32:]).digest():
        return None
    return content[32:]


def write_code(path: Path, code: bytes) -> None:
    """Write a file atomically; a read-only folder is not an error."""
    with contextlib.suppress(OSError, ModelError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(hashlib.sha256(path.name.encode() + code).digest() + code)


def machine_code_of(declaration: Declaration) -> bytes | None:
    """The machine code of a compiled function from the fastest source; None if it cannot be compiled."""
    path = cache_path(declaration)
    code = None if path is None else cached_code(path)
    if code is None:
        code = new_code(declaration)
        if path is not None and code is not None:
            write_code(path, code)
    return code


machine_code_of_part = functools.cache(machine_code_of)  # cached: several compiled functions call the same part


def load(declaration: Declaration) -> Any:
    """A compiled function linked with its parts, in memory; None if it cannot be compiled."""
    codes = [code for code in (machine_code_of(declaration), *map(machine_code_of_part, declaration.parts)) if code]
    return linked(codes, exporting.packed_symbol_of(declaration)) if len(codes) > len(declaration.parts) else None


def linked(codes: Sequence[bytes], symbol: str) -> Any:
    """A function of machine code that takes a table; it has an attribute ``address``."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host())  # an engine that compiles would keep its data
    for code in codes:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(symbol)
    function: Any = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(address)
    function.address, function.engine = address, engine  # keeps the code alive
    return function


def with_checked_bounds(declaration: Declaration) -> Callable[..., Any]:
    """A function with the same arguments, compiled by Numba with bounds checking."""
    if obstacle := exporting.obstacle():
        raise RuntimeError(f"no bounds can be checked: {obstacle}")
    compiled = exporting.jitted(declaration.function, is_entry=True, boundscheck=True)

    def views(value: Any) -> Any:
        kind = type(value)
        is_state = isinstance(value, State)
        return views_type(kind)(*[getattr(value, field.name) for field in kind.fields]) if is_state else value  # type: ignore[arg-type]

    return lambda *values: compiled(*map(views, values))
