"""The columns of a table as inputs of a graph, and the states of a column.

A category is known from training, missing, or unknown. A number is present or missing. The encoder encodes a table with
all states, so the graph looks up its results instead of reimplementing it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from onnx import TensorProto

from tunefree.core.errors import ModelError
from tunefree.core.numbers import MOST
from tunefree.core.rows import Block, part
from tunefree.export.graph import ML, Graph
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.columns import Boolean, Category, Number
from tunefree.stream.keys import MOST_CODES
from tunefree.stream.spellings import MISSING, NULLS, TRUTHS

REFUSED = {"moment": "dates", "time": "times", "text": "texts", "bag": "lists of words", "vector": "lists of numbers"}


class Coded(NamedTuple):
    """A column of categories."""

    source: int  # the index of its column of codes
    n_states: int  # the last one is an unknown category, the one before a missing value
    state: str  # tensor (N, 1) of state numbers


class States(NamedTuple):
    """The columns of a model as tensors, and rows that cover all their states."""

    numbers: str | None  # tensor (N, p), missing numbers replaced; None without columns of numbers
    missing: str | None  # tensor (N, p) of booleans
    categories: list[Coded]
    block: Block  # row i has each column in state i, or in state 0 if it has fewer states
    places: np.ndarray  # (features,) the column index of each feature

    @property
    def n_numbers(self) -> int:
        """Number of columns of numbers."""
        return self.block.numbers.shape[1]

    @property
    def sources(self) -> np.ndarray:
        """The indices (p,) of the columns of codes that indicate missing numbers."""
        return MOST_CODES * self.places[1 : 1 + self.n_numbers].astype(np.int64)

    def only(self, source: int, n: int) -> Block:
        """The first n rows with a single column of codes, and its words; everything else is missing."""
        block = part(self.block, 0, n)
        is_kept = MOST_CODES * self.places[block.features] == source
        return block._replace(
            numbers=np.zeros_like(block.numbers),
            codes=np.where(block.code_columns == source, block.codes, np.int32(0)),
            pointers=np.append(0, np.cumsum(is_kept))[block.pointers],
            features=block.features[is_kept],
            values=block.values[is_kept],
        )


def check_columns(encoder: Any) -> None:
    """Raise a ModelError for the first column that does not hold numbers or categories."""
    for column in encoder.columns:
        if not isinstance(column, (Number, Category)):
            problem = f"column {column.name!r} holds {REFUSED.get(column.kind, column.kind)}, which are not exported"
            remedy = "leave it out (`ignore`), or train on numbers and categories made of it"
            raise ModelError(f"{problem}; {remedy}")
        if isinstance(column, Number) and column.since:
            problem = f"column {column.name!r} has no number before row {column.since:,}, which is not exported"
            raise ModelError(f"{problem}; train on rows that have it from the start")
        if not column.name:
            raise ModelError("a column has no name, which inputs need; give it one, and train again")
    if encoder.hash_bits:
        raise ModelError("hashed categories are not exported; train without `hash_bits`")


def add_columns(graph: Graph, encoder: Any) -> States:
    """Add an input for each column, and the operators that compute the states of columns."""
    texts = {
        column.name: encoder.ids.names.categories(index, column.name)
        for index, column in enumerate(encoder.columns)
        if isinstance(column, Category)
    }
    block = _states(encoder, texts)
    raw = [graph.input(column.name, TensorProto.DOUBLE) for column in encoder.columns if column.name not in texts]
    numbers = missing = None
    if raw:
        joined = graph.joined(raw)
        missing = graph.add("IsNaN", joined)
        numbers = graph.add("Where", missing, block.numbers[1:2], joined)
        numbers = graph.add("Clip", numbers, np.float64(-MOST), np.float64(MOST))
    categories = []
    for index, column in enumerate(encoder.columns):
        if column.name in texts:
            graph.input(column.name, TensorProto.STRING)
            state = graph.add("LabelEncoder", column.name, domain=ML, **_numbering(encoder, column, texts[column.name]))
            categories.append(Coded(MOST_CODES * index, len(texts[column.name]) + 2, state))
    return States(numbers, missing, categories, block, encoder.column_of())


def _numbering(encoder: Any, column: Any, texts: list[str]) -> dict[str, Any]:
    """Attributes of a LabelEncoder that maps texts to state numbers."""
    numbers = dict.fromkeys(MISSING, len(texts))
    if not encoder.typed and column.name not in encoder.kept:
        numbers |= dict.fromkeys(NULLS, len(texts))
    numbers |= dict.fromkeys(encoder.na_values, len(texts)) | {text: number for number, text in enumerate(texts)}
    if isinstance(column, Boolean):
        words = {word: numbers[TRUTHS[k % 2]] for k, word in enumerate(TRUTHS) if TRUTHS[k % 2] in numbers}
        numbers |= {form: number for word, number in words.items() for form in (word, word.upper(), word.capitalize())}
    return {"keys_strings": [*numbers], "values_int64s": [*numbers.values()], "default_int64": len(texts) + 1}


def _states(encoder: Any, texts: dict[str, list[str]]) -> Block:
    """Rows that cover all states of the columns."""
    n_rows = max([2, *(len(categories) + 2 for categories in texts.values())])
    arrays = {}
    for column in encoder.columns:
        if column.name in texts:
            categories, unknown = texts[column.name], "unknown"
            while unknown in categories or unknown.lower() in ("true", "false"):
                unknown += "'"
            # a column of booleans has no unknown category: any other text is missing
            states = [*categories, None, None if isinstance(column, Boolean) and not column.words else unknown]
            array = pa.array(states + states[:1] * (n_rows - len(states)), pa.string())
        else:
            array = pa.array([0.0, np.nan] + [0.0] * (n_rows - 2))
        arrays[column.name] = array
    chunk = Chunk(pa.record_batch(arrays), "", 1, Position())
    block: Block = encoder.encode(chunk, False, BadRows()).rows
    return block
