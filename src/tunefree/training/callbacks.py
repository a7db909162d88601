"""Callbacks of a training: a progress bar, the checkpoint, notes on the columns, a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.stream.batch import Batch


class Step(NamedTuple):
    """A batch that was learned."""

    batch: Batch  # as it was read
    learned: Batch  # with targets and weights as the model takes them
    predictions: np.ndarray  # (n, K), made before each row was learned
    row_losses: np.ndarray  # (n,)


class Callback:
    """A callback that does nothing; subclasses define the methods that they need.

    Attributes
    ----------
    may_end : bool
        Whether ``step`` may end a pass. Rows of files are read ahead only where no callback may.
    points : sequence of int
        Rows of a pass, in ascending order, after which ``fit`` and ``partial_fit`` call ``step``, beside their pieces.

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
        """Training begins, or is resumed, with this model; the source is None where rows are in memory."""

    def step(self, trained: Any, step: Step) -> bool | None:
        """A batch was learned. If the method returns True, the training ends here with the model so far."""
        return None

    def end(self, trained: Any) -> None:
        """Training has ended."""


def checked(callbacks: Sequence[Callback] | None) -> Sequence[Callback]:
    """The callbacks, none for None; an error if they are anything else."""
    if callbacks is None:
        return ()
    if not isinstance(callbacks, Sequence) or not all(isinstance(callback, Callback) for callback in callbacks):
        raise ModelError(
            "`callbacks` must be a list of objects of subclasses of tunefree.training.callbacks.Callback; leave out "
            "those of other packages: early stopping is not needed, and verbose=True and history() tell of the pass"
        )
    return callbacks
