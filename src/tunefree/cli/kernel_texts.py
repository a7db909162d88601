"""The LLVM text of all kernels of the package, written beside it: ``python -m tunefree.cli.kernel_texts``.

Numba reads its settings when it is imported, so texts are written by processes of their own, which have those of
:data:`tunefree.core.exporting.NEUTRAL`. Text that is older than the LLVM of a user's llvmlite is read there, newer text
is not: `make kernels` therefore runs this with the oldest version of Numba that is supported.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType

import tunefree
from tunefree.core.exporting import NEUTRAL, text_of
from tunefree.core.kernels import Kernel
from tunefree.core.loading import TEXTS, first_line, packed
from tunefree.core.storage import whole_file


def all_kernels() -> list[Kernel]:
    """The kernels of the package: those that its modules declare, and those that a module's ``all_kernels`` lists.

    >>> "generations.trees.walk" in [kernel.name for kernel in all_kernels()]
    True
    """
    kernels: dict[str, Kernel] = {}
    for module in _modules():
        listed = module.all_kernels() if hasattr(module, "all_kernels") and module.__name__ != __name__ else []
        for kernel in [*listed, *[value for value in vars(module).values() if isinstance(value, Kernel)]]:
            if kernels.setdefault(kernel.name, kernel).function is not kernel.function:
                raise ValueError(f"two kernels have the name {kernel.name}")
    return [kernels[name] for name in sorted(kernels)]


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(tunefree.__path__, "tunefree."):
        if not module.name.endswith("__main__") and module.name != __name__:
            with contextlib.suppress(ModuleNotFoundError):  # of an extra that is not installed, such as uvicorn
                yield import_module(module.name)


def write(path: Path, processes: int = 2) -> list[str]:
    """Write the texts of all kernels to a file."""
    environment = os.environ | NEUTRAL

    def part(number: int) -> str:
        command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "tunefree.cli.kernel_texts"]
        arguments = [str(number), str(processes)]
        return subprocess.run(
            [*command, *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    with ThreadPoolExecutor(processes) as pool:
        texts = "".join(pool.map(part, range(processes))).split("\f")
    named = dict(text.split("\n", 1) for text in texts if text)
    with whole_file(path) as file:
        file.write(packed(named))
    return sorted(named)


def print_part(number: int, processes: int) -> None:
    """Print the texts of the kernels with these numbers, each after its name and before a form feed."""
    for kernel in all_kernels()[number::processes]:
        text = text_of(kernel)
        print(f"{kernel.name}\n{first_line(kernel, text)}\n{text}", end="\f")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print_part(int(sys.argv[1]), int(sys.argv[2]))
    else:
        names = write(TEXTS)
        print(f"{len(names)} kernels, {TEXTS.stat().st_size / 1024:.0f} KiB: {TEXTS}")
