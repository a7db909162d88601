"""The bitcode of all compiled functions in one file, written by ``python -m tunefree.compiled.packaging``.

Numba reads its settings at import, so other processes create the bitcode. LLVM reads bitcode of earlier versions only:
`make compiled` runs this with the oldest supported version of Numba.
"""

from __future__ import annotations

import functools
import json
import lzma
import os
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

import tunefree
from tunefree.compiled.declarations import Declaration
from tunefree.compiled.exporting import NEUTRAL, bitcode_of
from tunefree.core.storage import whole_file

FILE = Path(__file__).with_name("bitcode.xz")  # one file, because shared code compresses well
ABSENT = "the package has no bitcode of it"


class Bitcode(NamedTuple):
    """The bitcode of a compiled function, and the digest of its sources."""

    digest: str
    code: bytes


def packaged(declaration: Declaration) -> bytes:
    """The packaged bitcode of a compiled function; a ValueError with the reason if it is missing or outdated."""
    problem, bitcodes = unpacked(FILE)
    if problem or declaration.name not in bitcodes:
        raise ValueError(problem or ABSENT)
    if bitcodes[declaration.name].digest != declaration.digest:
        raise ValueError("its source is not the one that the bitcode in the package was made of")
    return bitcodes[declaration.name].code


def packed(bitcodes: dict[str, Bitcode]) -> bytes:
    """The content of a file with bitcode by name; it is deterministic."""
    named = sorted(bitcodes.items())
    sizes = [[name, bitcode.digest, len(bitcode.code)] for name, bitcode in named]
    header = json.dumps({"llvm": llvm.llvm_version_info[0], "kernels": sizes}).encode()
    return lzma.compress(b"\n".join([header, b"".join(bitcode.code for _, bitcode in named)]), preset=9)


@functools.cache
def unpacked(path: Path) -> tuple[str, dict[str, Bitcode]]:
    """The reason why a file is unusable, or an empty string; and the bitcode by name."""
    try:
        header, _, codes = lzma.decompress(path.read_bytes()).partition(b"\n")
        content: dict[str, Any] = json.loads(header)
        version, needed = llvm.llvm_version_info[0], content["llvm"]
        sizes = [(name, digest, size) for name, digest, size in content["kernels"]]
    except OSError as error:
        return f"{path.name} of the package cannot be read ({error.strerror})", {}
    except (lzma.LZMAError, EOFError, ValueError):
        return f"{path.name} of the package is damaged; install it anew", {}
    if version < needed:
        return f"{path.name} is for LLVM {needed} or later, and this llvmlite has LLVM {version}; upgrade llvmlite", {}
    bitcodes, start = {}, 0
    for name, digest, size in sizes:
        bitcodes[name] = Bitcode(digest, codes[start : start + size])
        start += size
    return "", bitcodes


@functools.cache
def all_compiled() -> list[Declaration]:
    """The compiled functions in the modules of the package, and those listed by their ``all_compiled``."""
    functions: dict[str, Declaration] = {}
    for info in pkgutil.walk_packages(tunefree.__path__, "tunefree."):
        if info.name.endswith(("__main__", ".packaging")):
            continue
        try:
            module: Any = import_module(info.name)
        except ModuleNotFoundError:  # an extra that is not installed, such as uvicorn
            continue
        listed = module.all_compiled() if hasattr(module, "all_compiled") else []
        for declaration in [*listed, *[value for value in vars(module).values() if isinstance(value, Declaration)]]:
            if functions.setdefault(declaration.name, declaration).function is not declaration.function:
                raise ValueError(f"two compiled functions have the name {declaration.name}")
    return [functions[name] for name in sorted(functions)]


def bitcode_named(name: str) -> Bitcode:
    """The newly compiled bitcode of the compiled function with this name."""
    declaration = next(declaration for declaration in all_compiled() if declaration.name == name)
    return Bitcode(declaration.digest, bitcode_of(declaration))


def write(path: Path, processes: int = 2) -> list[str]:
    """Write the bitcode of all compiled functions to a file."""
    os.environ.update(NEUTRAL)
    names = [declaration.name for declaration in all_compiled()]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        bitcodes = dict(zip(names, pool.map(bitcode_named, names), strict=True))
    with whole_file(path) as file:
        file.write(packed(bitcodes))
    return names


if __name__ == "__main__":
    names = write(FILE)
    print(f"{len(names)} compiled functions, {FILE.stat().st_size / 1024:.0f} KiB: {FILE}")
