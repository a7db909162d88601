"""A graph of ONNX operators; adding an operator returns the name of its output tensor."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPERATORS, ML_OPERATORS = 20, 4  # opset versions, supported since ONNX Runtime 1.17
FILE_VERSION = 9  # IR version, the first with these opsets
ML = "ai.onnx.ml"
BYTE = 8
TYPES = {np.dtype(kind): helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in (np.float64, np.int32, np.int64)}


class Graph:
    """An ONNX graph under construction: operators, and deduplicated constants.

    ``names`` are reserved for inputs and outputs.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.taken, self.nodes, self.inputs = set(names), list[NodeProto](), list[ValueInfoProto]()
        self.constants: dict[tuple[Any, ...], TensorProto] = {}

    def add(self, operator: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
        """Add an operator, whose inputs are names of tensors or arrays; returns the name of its output."""
        names = [part if isinstance(part, str) else self.constant(np.asarray(part)) for part in inputs]
        output = name or self._name()
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant tensor with these values."""
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(np.array(array, order="C"), self._name())
        return str(self.constants[key].name)

    def input(self, name: str, kind: int) -> str:
        """Add an input (N, 1) of this ONNX type."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["N", 1]))
        return name

    def bits(self, table: np.ndarray) -> str:
        """A tensor of booleans (a, b), stored as bits in the file; b is rounded up to a multiple of eight."""
        packed = np.packbits(table, axis=1, bitorder="little")
        bits = self.add("BitwiseAnd", packed[:, :, None], (1 << np.arange(BYTE)).astype(np.uint8)[None, None])
        return self.add("Reshape", self.add("Cast", bits, to=TensorProto.BOOL), np.array([len(table), -1]))

    def flat_bits(self, array: np.ndarray) -> str:
        """A tensor of booleans (n,), stored as bits in the file."""
        return self.sliced(self.add("Reshape", self.bits(array[None]), np.array([-1])), 0, len(array), axis=0)

    def packed(self, array: np.ndarray) -> str:
        """A tensor of rows, stored in the shorter form: nonzero rows and a bit for each row, or all rows."""
        is_filled = (array != 0).any(axis=1)
        if array.nbytes * is_filled.mean() + len(array) / BYTE >= array.nbytes:
            return self.constant(array)
        filled = self.cast(self.flat_bits(is_filled), np.int32)
        index = self.add("Mul", self.add("CumSum", filled, np.int32(0)), filled)
        return self.add("Gather", np.concatenate([np.zeros_like(array[:1]), array[is_filled]]), index)

    def cast(self, tensor: str, kind: Any) -> str:
        """A tensor cast to another dtype."""
        return self.add("Cast", tensor, to=TYPES[np.dtype(kind)])

    def sliced(self, tensor: str, start: int, stop: int, axis: int = 1) -> str:
        """A slice of a tensor along an axis."""
        return self.add("Slice", tensor, *(np.array([number]) for number in (start, stop, axis)))

    def joined(self, tensors: list[str], axis: int = 1) -> str:
        """The concatenation of tensors."""
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=axis)

    def model(self, outputs: list[ValueInfoProto], metadata: dict[str, str], description: str) -> Any:
        """The ONNX model, with metadata."""
        graph = helper.make_graph(self.nodes, "tunefree", self.inputs, outputs, [*self.constants.values()])
        versions = [helper.make_opsetid("", OPERATORS), helper.make_opsetid(ML, ML_OPERATORS)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=FILE_VERSION, producer_name="tunefree")
        model.doc_string = description
        helper.set_model_props(model, metadata)
        return model

    def _name(self) -> str:
        """A new tensor name, which is short, because nodes repeat the names of their inputs."""
        name = str(len(self.taken))
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name
