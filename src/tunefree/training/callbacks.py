"""Callbacks of a training, such as progress bars, checkpoints, notes, and user-defined ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.stream.batch import Batch


class Step(NamedTuple):
    """A batch that was learned."""

    batch: Batch  # as read
    learned: Batch  # with targets and weights as used by the model
    predictions: np.ndarray  # (n, K), computed before each row was learned
    row_losses: np.ndarray  # (n,)


class Callback:
    """A callback that does nothing; subclasses define the methods that they need.

    Attributes
    ----------
    may_end : bool
        Whether ``step`` may end a pass. Rows of files are read ahead only if no callback may.
    points : sequence of int
        Rows of a pass, in ascending order, after which ``fit`` and ``partial_fit`` also call ``step``.

    Examples
    --------
    >>> class Rows(Callback):
    ...     def step(self, trained, step):
    ...         print(trained.progress.rows, "rows")
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.stream.source import open_source
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> _ = train(open_source(table), Plan(target="rich", learner="scinol2"), [Rows()])
    200 rows
    """

    may_end = True
    points: Sequence[int] = ()

    def begin(self, trained: Any, source: Any) -> None:
        """Called when training begins or resumes; the source is None if rows are in memory."""

    def step(self, trained: Any, step: Step) -> bool | None:
        """Called after each learned batch; if it returns True, the training ends with the current model."""
        return None

    def end(self, trained: Any) -> None:
        """Called when training has ended."""


def checked(callbacks: Sequence[Callback] | None) -> Sequence[Callback]:
    """Validate callbacks; None means no callbacks."""
    if callbacks is None:
        return ()
    if not isinstance(callbacks, Sequence) or not all(isinstance(callback, Callback) for callback in callbacks):
        raise ModelError(
            "`callbacks` must be a list of objects of subclasses of tunefree.training.callbacks.Callback; leave out "
            "callbacks of other packages: early stopping is not needed, and verbose=True and history() tell of the pass"
        )
    return callbacks
