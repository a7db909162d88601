"""What `tunefree inspect` shows: what a model has learned, and what a model file holds."""

from __future__ import annotations

import os
from typing import Any

from tunefree.core import storage
from tunefree.explanation.decomposition import Decomposition
from tunefree.model_files.trained import Trained
from tunefree.report.document import Block, Column, Data, Fact, Facts, Table
from tunefree.report.formats import COUNT
from tunefree.report.learned import story
from tunefree.report.members import blocks_of_members
from tunefree.report.terms import blocks_of_features, blocks_of_terms
from tunefree.workflows.certification import order_of


def blocks_of_model(trained: Trained, decomposition: Decomposition | None, top: int, label: Any = None) -> list[Block]:
    """Rows, losses, members, and what columns and features matter.

    ``top``: most columns and features that are listed; 0 for all.
    """
    blocks = story(trained, top)
    if not hasattr(trained.model, "facts"):
        blocks += blocks_of_members(trained.model)
        blocks += [Data(name, value) for name, value in order_of(trained).items()]
    blocks += blocks_of_terms(decomposition, top, label)
    return [*blocks, *blocks_of_features(trained.model, trained.encoder.names(), top)]


def blocks_of_file(path: str | os.PathLike[str]) -> list[Block]:
    """What a model file says of itself, and its arrays."""
    arrays, header = storage.load(path)
    facts = [Fact("kind of model", header["kind"]), Fact("kind of rows", header["source"])]
    facts += [
        Fact("format", header["format"]),
        Fact("estimator", header.get("estimator", {}).get("class", "that of the plan")),
        Fact("plan", ", ".join(f"{name}={value!r}" for name, value in header["plan"].items() if value)),
    ]
    shape = Column("shape", lambda shape: " x ".join(map(str, shape)))
    columns = [Column("array", key="name"), Column("type"), shape, Column("bytes", COUNT)]
    rows = [[name, str(array.dtype), array.shape, array.nbytes] for name, array in sorted(arrays.items())]
    title = f"{len(rows):,} arrays, {sum(array.nbytes for array in arrays.values()):,} bytes"
    return [Facts(facts), Table(title, columns, rows, key="arrays"), Data("header", header)]
