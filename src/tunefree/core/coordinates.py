"""Records of features and outputs, (d, K), whose fields lie as rows of outputs.

``block[j, k].name`` is a number, as it is of any array of records. Here field ``name`` of feature j is a row of K
adjacent numbers, so that a loop over k works on whole vectors. NumPy sees records that overlap: the fields of one are
as far apart as a row is long, and the next record begins one number further on.

In compiled code a block is an address and two distances. Nothing counts references to it, one specialisation serves any
number of outputs, and the compiler is told that fields do not overlap. There a row has room for whole vectors of LANES
numbers, and ``len`` of :class:`Outputs` counts them all: loops over outputs have no remainder. What is written beyond K
is never read.
"""

from __future__ import annotations

from operator import getitem
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
    typeof_impl,
    unbox,
)

from tunefree.core import compiled

# Numbers in a vector. Where code checks bounds, loops over outputs end at K, since what lies beyond is out of bounds.
LANES = 1 if numba.config.BOUNDSCHECK else 4  # type: ignore[attr-defined]
_SIZE = np.dtype(np.float64).itemsize


@compiled.inline
def room(n_outputs: int) -> int:
    """Length of a row with room for whole vectors; one output needs one number.

    Examples
    --------
    >>> room(1), room(3) in (3, 4), room(20)
    (1, True, 20)
    """
    return n_outputs if n_outputs == 1 else -(-n_outputs // LANES) * LANES


class Coordinates(np.recarray):
    """Records (d, K) of numbers, made by :func:`coordinates`."""


class Outputs(np.ndarray):
    """The numbers of several outputs, made by :func:`outputs`."""


def outputs(n_outputs: int) -> tuple[int, ...] | Outputs:
    """What a learner loops over, output by output: ``range(len(state.outputs))``.

    For one output it is a tuple, whose length the compiler knows, so that the loop is dropped. For several one
    compilation serves any number.
    """
    return (0,) if n_outputs == 1 else np.arange(n_outputs).view(Outputs)


def row_of_outputs(n_outputs: int) -> np.ndarray:
    """An array (1, K) of zeros with room for whole vectors."""
    return np.zeros((1, room(n_outputs)))[:, :n_outputs]


def coordinates(names: tuple[str, ...], block: np.ndarray, first: int, n_outputs: int) -> Any:
    """Records (d, K) in a block.

    Parameters
    ----------
    names : tuple of str
        The fields, at least one.
    block : (d, line) array
        A line for each feature.
    first : int
        Where in a line the fields begin; there must be room for ``len(names) * room(n_outputs)`` numbers.
    n_outputs : int
    """
    row = room(n_outputs) * _SIZE
    fields = np.dtype(
        {
            "names": list(names),
            "formats": [np.float64] * len(names),
            "offsets": [row * f for f in range(len(names))],
            "itemsize": row * (len(names) - 1) + _SIZE,
        }
    )
    place = first * _SIZE
    shape, strides = (len(block), n_outputs), (block.strides[0], _SIZE)
    return np.ndarray(shape, fields, block.data, place, strides).view(Coordinates)


class BlockType(types.Type):
    """A block in compiled code."""

    def __init__(self, fields: tuple[str, ...], single: bool) -> None:
        self.fields, self.single = fields, single  # whether there is one output
        super().__init__(f"Coordinates({', '.join(fields)}; {'one output' if single else 'outputs'})")


class RecordType(types.Type):
    """One record of a block in compiled code."""

    def __init__(self, block: BlockType) -> None:
        self.block = block
        super().__init__(f"record of {block.name}")


class OutputsType(types.Type):
    """Several outputs in compiled code."""

    def __init__(self) -> None:
        super().__init__("Outputs")


@typeof_impl.register(Coordinates)
def _type_of_block(value, context):
    return BlockType(value.dtype.names, value.shape[1] == 1)


@typeof_impl.register(Outputs)
def _type_of_outputs(value, context):
    return OutputsType()


_ADDRESS = types.CPointer(types.float64)


@register_model(BlockType)
class _BlockModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("first", _ADDRESS), ("line", types.intp), ("row", types.intp)])


@register_model(RecordType)
class _RecordModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("first", _ADDRESS), ("row", types.intp)])


@register_model(OutputsType)
class _OutputsModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("padded", types.intp)])


def _array_of(kind, ndim, obj, c):
    """The structure of a NumPy array, whether reading it failed, and what gives the array back."""
    plain = types.Array(kind, ndim, "A")
    array = c.context.make_array(plain)(c.context, c.builder)
    place = c.builder.bitcast(array._getpointer(), c.pyapi.voidptr)
    failed = cgutils.is_not_null(c.builder, c.pyapi.nrt_adapt_ndarray_from_python(obj, place))
    value = array._getvalue()
    return array, failed, lambda: c.context.nrt.decref(c.builder, plain, value)


@unbox(BlockType)
def _unbox_block(kind, obj, c):
    array, failed, give_back = _array_of(types.float64, 2, obj, c)
    block, size = cgutils.create_struct_proxy(kind)(c.context, c.builder), c.context.get_constant(types.intp, _SIZE)
    line, step = cgutils.unpack_tuple(c.builder, array.strides, 2)
    rows = c.context.get_constant(types.intp, _SIZE * max(len(kind.fields) - 1, 1))
    block.first, block.line = array.data, c.builder.sdiv(line, size)
    block.row = c.builder.sdiv(c.builder.sub(array.itemsize, size), rows)
    if not kind.single:
        with c.builder.if_then(c.builder.icmp_signed("!=", step, size)):
            c.pyapi.err_set_string("PyExc_TypeError", "a copy of coordinates has another layout; use contract.grow")
        failed = c.builder.or_(failed, c.builder.icmp_signed("!=", step, size))
    return NativeValue(block._getvalue(), is_error=failed, cleanup=give_back)


@unbox(OutputsType)
def _unbox_outputs(kind, obj, c):
    array, failed, give_back = _array_of(types.intp, 1, obj, c)
    made = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    last = c.builder.add(array.nitems, c.context.get_constant(types.intp, LANES - 1))
    made.padded = c.builder.and_(last, c.context.get_constant(types.intp, -LANES))
    return NativeValue(made._getvalue(), is_error=failed, cleanup=give_back)


@type_callable(len)
def _type_len(context):
    return lambda value: types.intp if isinstance(value, OutputsType) else None


@lower_builtin(len, OutputsType)
def _lower_len(context, builder, signature, args):
    padded = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).padded
    return builder.and_(padded, context.get_constant(types.intp, -LANES))  # so that the compiler sees what it is


@type_callable(getitem)
def _type_getitem(context):
    def typer(block, index):
        two = isinstance(block, BlockType) and isinstance(index, types.BaseTuple) and len(index) == 2
        return RecordType(block) if two else None

    return typer


@lower_builtin(getitem, BlockType, types.BaseTuple)
def _lower_getitem(context, builder, signature, args):
    kind, indices = signature.args
    pairs = zip(cgutils.unpack_tuple(builder, args[1], 2), indices, strict=True)
    j, k = (context.cast(builder, number, given, types.intp) for number, given in pairs)
    block = cgutils.create_struct_proxy(kind)(context, builder, args[0])
    record = cgutils.create_struct_proxy(signature.return_type)(context, builder)
    line = builder.gep(block.first, [builder.mul(j, block.line)], inbounds=True)
    record.first, record.row = line if kind.single else builder.gep(line, [k], inbounds=True), block.row
    return record._getvalue()


@infer_getattr
class _Fields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind: RecordType, name: str) -> Any:  # type: ignore[override]
        return types.float64 if name in kind.block.fields else None


@lower_getattr_generic(RecordType)
def _lower_getattr(context, builder, kind, value, name):
    found = builder.load(_place(context, builder, kind, value, name))
    _tell_apart(builder, kind.block, name, found)
    return found


@lower_setattr_generic(RecordType)
def _lower_setattr(context, builder, signature, args, name):
    kind, given = signature.args
    number = context.cast(builder, args[1], given, types.float64)
    stored = builder.store(number, _place(context, builder, kind, args[0], name))
    _tell_apart(builder, kind.block, name, stored)


def _place(context, builder, kind, value, name):
    """Where a number is."""
    record = cgutils.create_struct_proxy(kind)(context, builder, value)
    rows = context.get_constant(types.intp, kind.block.fields.index(name))
    return builder.gep(record.first, [rows if kind.block.single else builder.mul(record.row, rows)], inbounds=True)


def _tell_apart(builder, block, name, instruction):
    """Let the compiler know that the fields of a block do not overlap (alias scopes)."""
    module = builder.module
    domain = module.add_metadata([ir.MetaDataString(module, f"tunefree {block.name}")])
    scopes = {f: module.add_metadata([ir.MetaDataString(module, f"{block.name} {f}"), domain]) for f in block.fields}
    own = scopes.pop(name)
    instruction.set_metadata("alias.scope", module.add_metadata([own]))
    if scopes:
        instruction.set_metadata("noalias", module.add_metadata(list(scopes.values())))
