"""Training that is interrupted and resumed."""

from __future__ import annotations

import pytest

from tunefree.stream import delimited
from tunefree.stream.lines import read_lines
from tunefree.stream.source import open_source
from tunefree.training.training import Trained, Watcher, learn_more, train

BLOCK = 1 << 14  # bytes of text that are read at a time, so that there are rows before and after an interruption


class Stop(Watcher):
    """Interrupts training after some rows, once there is a checkpoint."""

    def __init__(self, checkpoint, rows=1100):
        self.checkpoint, self.rows = checkpoint, rows

    def step(self, trained, step):
        if trained.progress.rows >= self.rows and self.checkpoint.exists():
            raise KeyboardInterrupt


def check_that_training_goes_on_to_the_same_bytes(path, plan, folder, is_ready=lambda model: True):
    """Whether a run that was interrupted and resumed writes the model of a run that was not.

    ``is_ready`` tells whether the model of the checkpoint has what is to be resumed.
    """
    checkpoint = folder / "checkpoint"
    whole = train(open_source([str(path)]), plan)
    whole.save(folder / "whole")
    with pytest.MonkeyPatch.context() as patch:
        read_small_blocks(patch)
        with pytest.raises(KeyboardInterrupt):
            train(open_source([str(path)]), plan, Stop(checkpoint), checkpoint, 500)
        check_that_rows_are_left(checkpoint, whole, is_ready)
        train(open_source([str(path)]), plan, None, checkpoint, 500, True).save(folder / "resumed")
    assert (folder / "whole").read_bytes() == (folder / "resumed").read_bytes()


def check_that_further_rows_are_learned_to_the_same_bytes(paths, plan, folder, is_ready=lambda model: True):
    """Whether the model of the first file goes on with the second one to the model of both, interrupted or not."""
    first, second = (open_source([str(path)]) for path in paths)
    checkpoint = folder / "checkpoint"
    whole = train(open_source([str(path) for path in paths]), plan)
    whole.save(folder / "whole")
    train(first, plan).save(folder / "first")
    assert is_ready(Trained.load(folder / "first").model)
    further = plan.further(plan)
    learn_more(Trained.load(folder / "first"), second, further).save(folder / "more")
    with pytest.MonkeyPatch.context() as patch:
        read_small_blocks(patch)
        with pytest.raises(KeyboardInterrupt):
            learn_more(Trained.load(folder / "first"), second, further, Stop(checkpoint, 2000), checkpoint, 300)
        check_that_rows_are_left(checkpoint, whole, is_ready)
        resumed = learn_more(Trained.load(folder / "first"), second, further, None, checkpoint, 300, True)
    resumed.save(folder / "resumed")
    assert (folder / "whole").read_bytes() == (folder / "more").read_bytes()
    assert (folder / "whole").read_bytes() == (folder / "resumed").read_bytes()


def read_small_blocks(patch):
    """Read delimited text in small blocks."""
    patch.setattr(
        delimited, "read_lines", lambda files, start, size, **options: read_lines(files, start, BLOCK, **options)
    )


def check_that_rows_are_left(checkpoint, whole, is_ready):
    """A run without a checkpoint begins anew, and one of all rows has nothing to do: neither resumes anything."""
    found = Trained.load(checkpoint)
    assert 0 < found.progress.rows < whole.progress.progressive[0].rows and is_ready(found.model)
