"""Trainings that are interrupted, and resumed."""

import signal

import pytest

from tunefree.model_files.trained import Trained
from tunefree.training.callbacks import Callback
from tunefree.training.resuming import Checkpoints
from tunefree.training.training import train


class Stop(Callback):
    """Interrupts a training once so many rows of a pass are learned."""

    def __init__(self, rows):
        self.rows = rows

    def step(self, trained, step):
        if trained.progress.rows >= self.rows:
            raise KeyboardInterrupt


class Asking(Callback):
    """Asks the training to end after so many batches."""

    def __init__(self, stop, batches):
        self.stop, self.left = stop, batches

    def step(self, trained, step):
        self.left -= 1
        if self.left == 0:
            self.stop.ask(signal.SIGTERM)


def saves_noted(patch):
    """A list to which the number of rows is added whenever a training is saved on the way."""
    rows, save = [], Checkpoints._save

    def noted(checkpoints, encoder=None):
        learned = checkpoints._latest[0].progress.rows
        save(checkpoints, encoder)
        rows.append(learned)

    patch.setattr(Checkpoints, "_save", noted)
    return rows


class Crash(Exception):
    """Nothing that a training expects."""


def resumed(source, plan, checkpoint, save_every, each=1, learn=train):
    """A training that crashes each so many times after it has saved, and is resumed until it ends.

    Returns what was trained, and which rows each checkpoint held until their runs are complete.
    """
    saves, save = [], Trained.save

    def save_and_crash(trained, *arguments, **options):
        save(trained, *arguments, **options)
        saves.append(trained.held)
        if len(saves) % each == 0:
            raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trained, "save", save_and_crash)
        while True:
            try:
                return learn(source, plan, (), checkpoint, save_every, resume=True), saves
            except Crash:
                continue


def assert_resumed(source, plan, folder, save_every, each=1, learn=train):
    """Assert that a resumed training gives the bytes of one that was not interrupted; returns what ``resumed`` does."""
    learn(source, plan).save(folder / "whole")
    trained, saves = resumed(source, plan, folder / "checkpoint", save_every, each, learn)
    trained.save(folder / "resumed")
    assert (folder / "resumed").read_bytes() == (folder / "whole").read_bytes() and len(saves) > 1
    return trained, saves
