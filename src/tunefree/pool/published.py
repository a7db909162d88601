"""What predicts of a model, apart from the model, which learns on meanwhile.

Arrays that learning changes are copied. What it replaces as a whole, or never reads again in a prediction, is shared:
the nodes of trees, the rows that are kept for growing them, and the records of the pass. A generation that is being
grown is not waited for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.part import FIXED, RECORD
from tunefree.pool.model import Model
from tunefree.pool.snapshot import Copies
from tunefree.pool.waiting import Waiting


class Remembered(NamedTuple):
    """What members predicted of a row whose target is still to come."""

    digest: int  # of its observation
    predictions: np.ndarray  # (M, K)


def published(model: Model) -> Model:
    """A model that predicts what this one predicts now, to the bit, whatever this one learns later.

    Parameters
    ----------
    model : Model
        Nothing must learn meanwhile.

    >>> from tunefree.core.rows import dense
    >>> from tunefree.pool.targets import Labels
    >>> model, X, y = Model("classification"), dense(np.array([[0.0], [1.0]] * 50)), Labels.of(["no", "yes"] * 50)
    >>> _ = model.learn(X, y, np.ones(100))
    >>> before = published(model)
    >>> predictions = before.predict(X)
    >>> _ = model.learn(X, y, np.ones(100))
    >>> bool((before.predict(X) == predictions).all()), bool((model.predict(X) == predictions).all())
    (True, False)
    """
    other = object.__new__(type(model))  # copy.copy would write the model down, and wait for what is being grown
    other.__dict__.update(model.__dict__)
    other.classes = list(model.classes)
    memo: dict[int, Any] = {id(model.options): model.options}
    other.linear = model.linear.copied(memo=memo)
    other.predictor = model.predictor.copied((FIXED, RECORD), memo)
    if other.pool is not None:
        other.pool.waiting, other.pool.copies = Waiting(), Copies(other.pool.members)
    return other


def remembered(model: Model, X: Any) -> list[Remembered | None]:
    """What the members of a model that is :func:`published` predicted of rows, which was the last that it predicted.

    None of each row if nothing is to be remembered: evidence is then what is predicted as the row is learned.
    """
    if model.pool is None or not model.pool.waiting.rows or model.pool.members.growth is None:
        return [None] * len(X.pointers[1:])
    waiting, model.pool.waiting = model.pool.waiting, Waiting()
    digests = model.pool.members.growth.observed(X).digests.tolist()
    kept = [waiting.rows.get(digest) for digest in digests]
    pairs = zip(digests, kept, strict=True)
    return [
        None if row_predictions is None else Remembered(digest, row_predictions) for digest, row_predictions in pairs
    ]


def remember(model: Model, rows: list[Remembered]) -> None:
    """Let a model know what was predicted of rows that it learns next; what does not fit its members is left out."""
    if model.pool is not None:
        members = model.pool.members
        shape = len(members.names), max(members.width, 1)
        for digest, predictions in rows:
            if predictions.shape == shape:
                model.pool.waiting.keep(np.array([digest], np.uint64), predictions[None])
