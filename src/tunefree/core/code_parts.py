"""Functions that only compiled code calls: parts of the entry points that use them, and no machine code of their own.

Numba optimises each function by itself, makes machine code of it and of a wrapper for calls from Python, and optimises
it again wherever it is inlined. What only compiled code calls needs the last of these alone. So a part is lowered and
linked with what it calls, and the entry point that reaches it optimises the whole. That takes about 0.7 of the time.
Parts whose arguments do not overlap are optimised before they are linked: once they are inlined, nothing says so any
more, and their loops would not become vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from numba.core import codegen, compiler


class PartLibrary(codegen.JITCodeLibrary):
    """The module of a part: linked into entry points, and never given to the processor by itself."""

    apart = False  # whether its arguments do not overlap

    def finalize(self) -> None:
        """Link what the part calls, where other libraries are then optimised and made machine code."""
        self._raise_if_finalized()
        for called in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(called._get_module_for_linking(), preserve=True)
        if self.apart:
            self._optimize_final_module()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No function is ever at an address."""
        return 0

    @property
    def codegen(self) -> Any:
        """Where Numba would keep what a function needs of Python, at an address that a part has not."""
        return _NoEnvironment()


class _NoEnvironment:
    """Parts use nothing of Python, as compiled code from the disk could not either."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


class PartCompiler(compiler.Compiler):
    """Compiles a function as far as its module."""

    def define_pipelines(self) -> Any:
        """Numba's own passes, for another kind of library."""
        state = self.state
        part = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        part.apart = state.flags.noalias
        state["library"] = part
        return super().define_pipelines()


OF_A_PART: dict[str, Any] = {"no_cpython_wrapper": True, "pipeline_class": PartCompiler}


class Part:
    """A function that is a part in compiled code; called from Python it runs as Python.

    Parameters
    ----------
    function : function
    options : dict
        Numba's.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._compiled = numba.njit(**options | OF_A_PART)(function)
        self._numba_type_ = numba.types.Dispatcher(self._compiled)  # what Numba asks of a constant

    def __call__(self, *arguments: Any) -> Any:
        """Call the function itself."""
        return self.py_func(*arguments)
