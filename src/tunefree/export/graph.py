"""A graph of ONNX operators, to which tensors are added by the operators that compute them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPERATORS, ML_OPERATORS = 20, 4  # versions of the operators, which ONNX Runtime has had since 1.17
FILE_VERSION = 9  # of the format, from which on there are these versions
ML = "ai.onnx.ml"
BYTE = 8
TYPES = {np.dtype(kind): helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in (np.float64, np.int32, np.int64)}


class Graph:
    """The operators so far, and the constants, each of which is stored once.

    Parameters
    ----------
    names : collection of str
        Of inputs and outputs, which no other tensor has.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.taken, self.nodes, self.inputs = set(names), list[NodeProto](), list[ValueInfoProto]()
        self.constants: dict[tuple[Any, ...], TensorProto] = {}

    def add(self, operator: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
        """The name of the output of one more operator, whose inputs are names of tensors, or arrays."""
        names = [part if isinstance(part, str) else self.constant(np.asarray(part)) for part in inputs]
        output = name or self._name(operator)
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def constant(self, array: np.ndarray) -> str:
        """The name of a tensor with these values."""
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(np.array(array, order="C"), self._name("constant"))
        return str(self.constants[key].name)

    def input(self, name: str, kind: int) -> str:
        """An input, a column of values of this type."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["N", 1]))
        return name

    def bits(self, table: np.ndarray) -> str:
        """A tensor of booleans (a, b), of which the file has bits; b is rounded up to a multiple of eight."""
        packed = np.packbits(table, axis=1, bitorder="little")
        bits = self.add("BitwiseAnd", packed[:, :, None], (1 << np.arange(BYTE)).astype(np.uint8)[None, None])
        return self.add("Reshape", self.add("Cast", bits, to=TensorProto.BOOL), np.array([len(table), -1]))

    def packed(self, array: np.ndarray) -> str:
        """A tensor of numbers, of which the file has places in a table if they are few, two bytes each."""
        values, places = np.unique(array, return_inverse=True)
        if array.itemsize <= 2 or len(values) > 2**16 or len(values) > array.size // 2:
            return self.constant(array)
        table = self.constant(values)
        return self.add(
            "Gather", table, self.cast(self.constant(places.reshape(array.shape).astype(np.uint16)), np.int32)
        )

    def cast(self, tensor: str, kind: Any) -> str:
        """A tensor as numbers of another type."""
        return self.add("Cast", tensor, to=TYPES[np.dtype(kind)])

    def sliced(self, tensor: str, start: int, stop: int, axis: int = 1) -> str:
        """A part of a tensor along an axis."""
        return self.add("Slice", tensor, *(np.array([number]) for number in (start, stop, axis)))

    def joined(self, tensors: list[str], axis: int = 1) -> str:
        """Tensors beside each other."""
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=axis)

    def model(self, outputs: list[ValueInfoProto], metadata: dict[str, str]) -> Any:
        """The whole, with lines about it."""
        graph = helper.make_graph(self.nodes, "tunefree", self.inputs, outputs, [*self.constants.values()])
        versions = [helper.make_opsetid("", OPERATORS), helper.make_opsetid(ML, ML_OPERATORS)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=FILE_VERSION, producer_name="tunefree")
        helper.set_model_props(model, metadata)
        return model

    def _name(self, stem: str) -> str:
        name = f"{stem}_{len(self.taken)}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name
