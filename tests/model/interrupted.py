"""Training that is interrupted and resumed."""

from __future__ import annotations

import pytest

from tunefree.stream.source import open_source
from tunefree.workflows.training import Watcher, train


class Stop(Watcher):
    """Interrupts training after some rows."""

    def step(self, trained, step):
        if trained.progress.rows >= 1100:
            raise KeyboardInterrupt


def check_that_training_goes_on_to_the_same_bytes(path, plan, folder):
    """Whether a run that was interrupted and resumed writes the model of a run that was not."""
    checkpoint = folder / "checkpoint"
    train(open_source([str(path)]), plan).save(folder / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(open_source([str(path)]), plan, Stop(), checkpoint, 500)
    train(open_source([str(path)]), plan, None, checkpoint, 500, True).save(folder / "resumed")
    assert (folder / "whole").read_bytes() == (folder / "resumed").read_bytes()
