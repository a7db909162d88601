"""Export of compiled functions as LLVM bitcode, by Numba's public API: ``njit``, ``cfunc``, ``carray``,
``inspect_llvm``.

The bitcode is for any processor. The slow optimisations of LLVM run here; loading only generates machine code from it.
Its vectors have LANES elements; for processors with shorter vectors, LLVM splits them.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable
from types import CellType, FunctionType
from typing import Any

import llvmlite.binding as llvm

from tunefree.compiled.declarations import Declaration, Parameter, globals_of, is_plain, plain
from tunefree.compiled.prefetching import instruction, prefetch
from tunefree.core.fields import LANES, views_source, views_type

# No fast-math: sums keep their order, so that results are bit-identical on any processor.
OPTIONS: dict[str, Any] = {"error_model": "numpy"}
NEUTRAL = {  # read by Numba at import: disables code for the host processor
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_OPT": "0",  # as in text_of
    "NUMBA_DISABLE_INTEL_SVML": "1",
}
_MATHEMATICAL = (
    *("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "floor", "ceil"),
    *("cos", "sin", "tan", "acos", "asin", "atan", "atan2", "cosh", "sinh", "tanh", "erf", "erfc", "lgamma", "tgamma"),
)
LIBRARY_FUNCTIONS = {  # that compiled functions may call; the suffix f means single precision
    *_MATHEMATICAL,
    *(f"{name}f" for name in _MATHEMATICAL),
    *("memset", "memcpy", "memmove"),
}
OLDEST = (0, 67)  # supported version of Numba: earlier versions lose stores (docs/decisions.md)
_exporting = threading.Lock()  # one compiled function at a time: the setting is global


@functools.cache
def obstacle() -> str:
    """The reason why Numba cannot compile here; empty if it can."""
    try:
        import numba
    except ImportError as error:
        return f"Numba cannot be imported ({error}): pip install 'tunefree[numba]'"
    if tuple(map(int, re.findall(r"\d+", numba.__version__)[:2])) < OLDEST:
        return f"Numba {numba.__version__} compiles some wrongly: pip install 'tunefree[numba]'"
    return ""


@functools.cache
def jitted(
    function: Callable[..., Any], parts: tuple[Declaration, ...] = (), is_entry: bool = False, **options: Any
) -> Any:
    """A copy of a plain function compiled by Numba, which calls compiled copies of its callees.

    Functions of ``parts`` are called as separate machine code. Only an entry is callable from Python.
    """
    import numba

    linked = {part.function: part for part in parts}
    callees = {}
    for name, value in globals_of(function).items():
        callee = plain(value)
        if callee is prefetch:
            callees[name] = instruction()
        elif is_plain(callee):
            callees[name] = call_of(linked[callee]) if callee in linked else jitted(callee, parts, **options)
    names = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    cells = tuple(CellType(callees.get(name, cell.cell_contents)) for name, cell in names)
    scope = {**function.__globals__, **callees}
    # Inline all calls, so that the compiler sees views of the same block, and axes of known lengths.
    copy = FunctionType(function.__code__, scope, function.__name__, None, cells)
    wrappers = {"no_cpython_wrapper": not is_entry, "no_cfunc_wrapper": True}
    return numba.njit(forceinline=True, **wrappers, **OPTIONS, **options)(copy)  # type: ignore[call-overload]


@functools.cache
def call_of(declaration: Declaration) -> Any:
    """A function compiled by Numba that calls the machine code of a compiled function of arrays and scalars."""
    import numba

    values, types = {}, []
    for name, dtype, axes in declaration.arguments:
        values[name] = name if axes is None else f"{name}.ctypes"
        values |= {f"length_{axis}": f"{name}.shape[{dimension}]" for dimension, axis in enumerate(axes or ())}
        number = number_type(dtype)
        types.append(number if axes is None else numba.types.Array(number, len(axes), "C"))
    names = ", ".join(argument.name for argument in declaration.arguments)
    source = f"def call({names}):\n    return code({', '.join(values[word.name] for word in declaration.words)})\n"
    scope = {"code": numba.types.ExternalFunction(symbol_of(declaration), signature_of(declaration))}
    exec(source, scope)
    # Numba links its code and aborts the process at an unresolved symbol; this address is never called.
    llvm.add_symbol(symbol_of(declaration), 1)
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit([tuple(types)], forceinline=True, **wrappers, **OPTIONS)(scope["call"])  # type: ignore[call-overload]


def entry_source(declaration: Declaration) -> str:
    """The source of the C entry point, which converts pointers to arrays, states and records."""
    lengths = {axis: f"length_{axis}" for axis in declaration.axes} | {
        axis: str(n) for axis, n in declaration.lengths.items()
    }
    if "padded" in declaration.axes:  # lets the compiler assume whole vectors
        lengths["padded"] = f"max(length_padded // {LANES}, 1) * {LANES}"
    for axis in [axis for axis in declaration.axes if axis.endswith("_features")]:
        lengths[axis] = f"max(length_{axis}, 1)"  # lets the compiler assume that views are not clipped
    lines = [f"def entry({', '.join(word.name for word in declaration.words)}):"]
    for argument in declaration.arguments:
        if argument.axes is not None:
            shape = "".join(f"{lengths.get(axis, axis)}, " for axis in argument.axes)
            lines.append(f"    {argument.name} = carray({argument.name}, ({shape}))")
        elif argument.dtype == "bool":
            lines.append(f"    {argument.name} = {argument.name} != 0")
    values = ", ".join(map(_value_source, declaration.parameters))
    return "\n".join([*lines, f"    return kernel({values})", ""])


def _value_source(parameter: Parameter) -> str:
    if parameter.kind is None:
        return parameter.name
    if parameter.is_state:
        return f"{parameter.name}_views({', '.join(views_source(parameter.kind, parameter.name + '_'))})"
    return f"{parameter.name}_record({', '.join(argument.name for argument in parameter.arguments)})"


def entry_of(declaration: Declaration) -> Any:
    """The C entry point, compiled by Numba."""
    import numba

    scope: dict[str, Any] = {"carray": numba.carray, "kernel": jitted(declaration.function, declaration.parts)}
    for parameter in declaration.parameters:
        if parameter.kind is not None:
            kind = views_type(parameter.kind) if parameter.is_state else parameter.kind
            scope[f"{parameter.name}_{'views' if parameter.is_state else 'record'}"] = kind
    exec(entry_source(declaration), scope)
    return numba.cfunc(signature_of(declaration), **OPTIONS)(scope["entry"])


def signature_of(declaration: Declaration) -> Any:
    """The Numba signature of a compiled function's machine code."""
    import numba

    types = {argument.name: numba.types.CPointer(number_type(argument.dtype)) for argument in declaration.arrays}
    numbers = {"int64": numba.int64, "float64": numba.float64, "bool": numba.int64, "": numba.void}
    return numbers[declaration.result](*[types.get(word.name) or numbers[word.dtype] for word in declaration.words])


def number_type(dtype: str) -> Any:
    """The Numba type of the elements of an array."""
    import numba

    return numba.boolean if dtype == "bool" else getattr(numba.types, dtype)


def bitcode_of(declaration: Declaration) -> bytes:
    """The bitcode of a compiled function: an entry for other compiled functions, and one that takes a table of
    words."""
    module = llvm.parse_assembly(f"{text_of(declaration)}\n{packed(declaration)}")
    names = llvm.create_new_module_pass_manager()
    names.add_strip_symbols_pass()
    names.run(module, llvm.create_pass_builder(target(), llvm.create_pipeline_tuning_options()))
    code: bytes = module.as_bitcode()
    return code


def text_of(declaration: Declaration) -> str:
    """The LLVM assembly of a compiled function, for any processor and system."""
    import numba

    config: Any = numba.config
    with _exporting:  # without Numba's passes, which unroll loops and obscure that lengths are whole vectors
        previous, config.OPT = config.OPT, type(config.OPT)(0)
        try:
            entry = entry_of(declaration)
        finally:
            config.OPT = previous
    module = llvm.parse_assembly(as_one_function(entry.inspect_llvm(), entry.native_name))
    for function in [function for function in module.functions if not function.is_declaration]:
        if function.name == entry.native_name:
            function.name = symbol_of(declaration)
        else:
            function.linkage = "internal"
    for variable in [variable for variable in module.global_variables if not variable.is_declaration]:
        variable.linkage = "internal"
    for _ in range(2):  # Numba's reference counts can be removed after inlining
        optimise(module, has_vectors=False)
    optimise(module, has_vectors=True)
    check_symbols(module, declaration.parts)
    named = ("target ", "source_filename", "; ModuleID")
    text = "\n".join(line for line in str(module).splitlines() if not line.startswith(named))
    text = re.sub(r'^(!\d+ = distinct !{[^"\n]*), !"[^"\n]*"}$', r"\1}", text, flags=re.MULTILINE)  # names of scopes
    if re.search(r"store (\w+|<[^>]*>) (poison|undef)", text):  # as with Numba before 0.67 (docs/decisions.md)
        raise ValueError(f"this version of Numba compiles {declaration.name} wrongly")
    return text


def packed(declaration: Declaration) -> str:
    """LLVM assembly of a void function that loads words from a table, and calls a compiled function with them.

    The result of the compiled function is stored at the address in an additional last word.
    """
    types = {"": "ptr", "int64": "i64", "bool": "i64", "float64": "double"}
    kinds = [types[word.dtype] for word in declaration.words]
    lines = [f"define void @{packed_symbol_of(declaration)}(ptr %table) {{"]
    for k, kind in enumerate([*kinds, "ptr"] if declaration.result else kinds):
        lines += [f"%at{k} = getelementptr i64, ptr %table, i64 {k}", f"%word{k} = load {kind}, ptr %at{k}"]
    values = ", ".join(f"{kind} %word{k}" for k, kind in enumerate(kinds))
    if declaration.result:
        result = types[declaration.result]
        lines += [f"%value = call {result} @{symbol_of(declaration)}({values})"]
        lines += [f"store {result} %value, ptr %word{len(kinds)}"]
    else:
        lines += [f"call void @{symbol_of(declaration)}({values})"]
    return "\n".join([*lines, "ret void", "}"])


def as_one_function(text: str, name: str) -> str:
    """LLVM assembly in which Numba's function is inlined into the C entry point.

    Its arrays are declared as not overlapping, so that LLVM omits checks in loops.

    >>> print(as_one_function("define void @cfunc.f(ptr %x, ptr %y) {\\n  call i32 @f(ptr %x, ptr %y) #0", "cfunc.f"))
    define void @cfunc.f(ptr noalias %x, ptr noalias %y) {
      call i32 @f(ptr %x, ptr %y) alwaysinline
    """
    lines = []
    for line in text.splitlines():
        if line.startswith("define") and f"@{name}(" in line:
            line = line.replace("ptr %", "ptr noalias %")
        elif f"call i32 @{name.removeprefix('cfunc.')}(" in line:
            line = re.sub(r" #\d+$", " alwaysinline", line)
        lines.append(line)
    return "\n".join(lines)


def symbol_of(declaration: Declaration) -> str:
    """The symbol of a compiled function in its bitcode."""
    return re.sub(r"\W", "_", declaration.name)


def packed_symbol_of(declaration: Declaration) -> str:
    """The symbol of the function that takes a table of words."""
    return f"{symbol_of(declaration)}.packed"


def check_symbols(module: Any, parts: Iterable[Declaration]) -> None:
    """Reject code that calls functions outside the C library and the parts: linking it would abort the process."""
    declared = {function.name for function in module.functions if function.is_declaration}
    declared |= {variable.name for variable in module.global_variables if variable.is_declaration}
    foreign = {name for name in declared if not name.startswith("llvm.")} - LIBRARY_FUNCTIONS
    foreign -= set(map(symbol_of, parts))
    if foreign:
        raise ValueError(f"a compiled function refers to {', '.join(sorted(foreign))}")


def target() -> Any:
    """A target machine for any processor of this architecture."""
    llvm.initialize_native_target()
    triple = llvm.get_process_triple()
    features = "+avx2" if triple.startswith("x86_64") else ""  # vectors of LANES elements; the default is shorter
    return llvm.Target.from_triple(triple).create_target_machine(cpu="generic", features=features)


def optimise(module: Any, has_vectors: bool) -> None:
    """Inline all calls, simplify for any processor, and optionally vectorise loops."""
    options = llvm.create_pipeline_tuning_options(speed_level=3 if has_vectors else 2)
    options.loop_vectorization = has_vectors
    options.loop_interleaving = options.slp_vectorization = options.loop_unrolling = False  # only larger code
    builder = llvm.create_pass_builder(target(), options)
    builder.getModulePassManager().run(module, builder)
    references = llvm.create_new_module_pass_manager()
    references.add_refprune_pass()
    references.run(module, builder)
