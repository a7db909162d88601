"""A training that is asked to end: what was learned is saved, and goes on with the rest of the stream to the byte."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.interruptions import Asking, saves_noted
from tests.training.test_forgetting import SCINOL, stream, written
from tests.workflows.test_training import model_bytes
from tunefree.model_files.trained import Trained
from tunefree.stream import tables
from tunefree.stream.source import open_source
from tunefree.training.stopping import Interrupted, Stop
from tunefree.training.training import learn_more, train

N, PIECES = 1200, 12
LINES = stream(N, seed=3)  # without a rise, which would name its file


def parts(folder: Path) -> list[Path]:
    """Files of the stream."""
    return written(folder, LINES, range(N // PIECES + 1, N, N // PIECES))


@pytest.mark.parametrize(("learner", "batches"), [("pool", 2), ("scinol2", 2), ("scinol2", PIECES - 1)])
def test_the_rest_of_a_stream_goes_on_to_the_byte(tmp_path, learner, batches):
    plan, paths = replace(SCINOL, learner=learner), parts(tmp_path)
    whole = model_bytes(train(open_source(paths), plan), tmp_path / "m")
    stop = Stop()
    with pytest.raises(Interrupted) as caught:
        train(open_source(paths), plan, [Asking(stop, batches)], tmp_path / "kept", stop=stop)
    assert caught.value.status == 128 + signal.SIGTERM
    kept = Trained.load(tmp_path / "kept")
    assert not kept.progress.complete and 100 * batches <= kept.progress.rows < N
    (tmp_path / "rest.csv").write_text(LINES[0] + "".join(LINES[1 + kept.progress.rows :]))
    assert model_bytes(learn_more(kept, open_source(tmp_path / "rest.csv")), tmp_path / "m") == whole
    resumed = train(open_source(paths), plan, checkpoint=tmp_path / "kept", resume=True)
    assert model_bytes(resumed, tmp_path / "m") == whole


def test_a_save_that_fails_is_told_and_tried_again(tmp_path, monkeypatch):
    source, saves = open_source(parts(tmp_path)), saves_noted(monkeypatch)
    flush, calls, told = os.fsync, [], []

    def full(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        flush(handle)

    monkeypatch.setattr(os, "fsync", full)
    trained = train(source, SCINOL, (), tmp_path / "kept", 300, tell=told.append)
    assert saves == [300, 900, 1200] and trained.progress.complete
    assert [line for line in told if "not saved" in line and "No space" in line] == [told[0]]
    assert not list(tmp_path.glob("*.part"))


def test_intervals_of_saves_in_one_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tunefree.training.memory_limit.CHUNK_SIZE", 2**12)
    monkeypatch.setattr(tables, "Options", partial(tables.Options, block_size=2**15))
    (tmp_path / "a.csv").write_text("".join(LINES))
    source, saves, stop = open_source(tmp_path / "a.csv"), saves_noted(monkeypatch), Stop()
    train(source, SCINOL).save(tmp_path / "whole")
    with pytest.raises(Interrupted, match="kept holds the model after"):
        train(source, SCINOL, [Asking(stop, 3)], tmp_path / "kept", 100, stop=stop)
    assert len(saves) == 3 and saves[-1] < 1000
    train(source, SCINOL, (), tmp_path / "kept", 100, resume=True).save(tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_while_a_pipe_delivers_nothing(tmp_path, number):
    many = LINES[0] + "".join(LINES[1:] * 120)
    command = [sys.executable, "-m", "tunefree", "train", "-", "-t", "y", "--learner", "scinol2", "-o", "m"]
    process = subprocess.Popen([*command, "--save-every", "1"], cwd=tmp_path, stdin=-1, stderr=-1, text=True)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(many)  # several blocks, the last of which stays open
    process.stdin.flush()
    while not (tmp_path / "m.checkpoint").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(number)
    if number != signal.SIGINT:
        process.send_signal(signal.SIGHUP)
    last = process.stderr.read().splitlines()[-1]
    assert process.wait() in (128 + number, 128 + signal.SIGHUP)
    learned = Trained.load(tmp_path / "m.checkpoint").progress.rows
    assert f"the model after {learned:,} rows. Go on with the rows from number {learned + 1:,} on" in last
    process.stdin.close()


def test_signals_that_are_ignored_stay_so():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Stop().on_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
