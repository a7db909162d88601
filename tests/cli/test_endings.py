"""Commands that end early: interrupted, or with an output that takes no more."""

import os
import signal
import subprocess
import sys

import pytest
from pyarrow import csv

from tunefree.cli import app as cli
from tunefree.training import training

pytestmark = pytest.mark.usefixtures("heard")
QUICK = ("--learner", "scinol2")


def interrupt(monkeypatch, after):
    """Let Ctrl-C come when so many batches have been learned."""
    ahead = training.ahead

    def interrupted(batches, *arguments):
        for number, read in enumerate(ahead(batches, *arguments)):
            if number == after:
                signal.raise_signal(signal.SIGINT)
            yield read

    monkeypatch.setattr(training, "ahead", interrupted)


def test_ctrl_c_without_a_checkpoint(run, data, tmp_path, monkeypatch):
    (tmp_path / "m").write_text("an earlier model")
    interrupt(monkeypatch, 0)
    status, out, err = run("train", data, "-t", "rich", "-o", tmp_path / "m", "--quiet", *QUICK)
    assert (status, out) == (130, "")
    assert "no row was learned, and no model was written" in err and len(err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "people.csv"]
    assert (tmp_path / "m").read_text() == "an earlier model"


def test_ctrl_c_with_a_checkpoint_and_resumed(run, done, data, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in range(12):  # more than are read ahead
        csv.write_csv(csv.read_csv(data).slice(167 * number, 167), parts / f"{number:02d}.csv")
    command = ("train", parts, "-t", "rich", "-o", tmp_path / "m", *QUICK, "--save-every", 100)
    done(*command)
    whole = (tmp_path / "m").read_bytes()
    with monkeypatch.context() as patch:
        interrupt(patch, 3)
        status, out, err = run(*command)
    last = err.splitlines()[-1]
    assert (status, out) == (130, "")
    assert "m.checkpoint holds the model after" in last and "rows" in last and "--resume" in last
    assert (tmp_path / "m").read_bytes() == whole
    (tmp_path / "m").unlink()
    done(*command, "--resume")
    assert (tmp_path / "m").read_bytes() == whole
    assert not (tmp_path / "m.checkpoint").exists()


def is_told_of_a_full_device(status, err):
    return status == 2 and "No space left" in err and len(err.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_device_is_one_line(done, data, tmp_path, monkeypatch, capfd):
    model = tmp_path / "m"
    done("train", data, "-t", "rich", "-o", model, *QUICK, "-q")
    for command in (["predict", model, data], ["--help"]):
        with open("/dev/full", "w") as full:  # a process also writes at its end
            program = [sys.executable, "-m", "tunefree", *command]
            done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert is_told_of_a_full_device(done.returncode, done.stderr), done.stderr
    for options in ([], ["--json"]):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["tunefree", "inspect", str(model), *options])
            patch.setattr(sys, "stdout", full)
            with pytest.raises(SystemExit) as end:
                cli.main()
        err = capfd.readouterr().err
        assert is_told_of_a_full_device(end.value.code, err), err


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_a_reader_of_the_output_that_has_gone_is_no_error_to_tell(words):
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-m", "tunefree", *words]
    ended = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


READING = """
import io, sys, threading, time
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from tunefree.__main__ import main

begun = threading.Event()


class Slow(io.RawIOBase):
    def readable(self):
        return True

    def read(self, n=-1):
        begun.set()
        time.sleep(0.2)
        return b"1,2\\n"


def read():
    csv.open_csv(pa.PythonFile(Slow(), mode="r"))


if sys.argv.pop(1) == "reading":
    threading.Thread(target=read, daemon=True).start()
    begun.wait()
main()
"""


@pytest.mark.parametrize(
    ("thread", "words", "status", "end"),
    [
        ("reading", ["inspect", "no.model"], 2, "tunefree: no.model: "),
        ("reading", ["--version"], 0, ""),
        ("none", ["train", "--hash-bit", "3"], 2, ""),
    ],
)
def test_threads_of_arrow_that_read_on_do_not_abort_the_end(thread, words, status, end):
    """They take Python's lock for what is Python's, and abort the process where there is no Python any more."""
    done = subprocess.run([sys.executable, "-c", READING, thread, *words], capture_output=True, text=True)
    assert done.returncode == status and done.stderr.startswith(end), done.stderr
    assert "abort" not in done.stderr.lower() and bool(done.stdout) == (status == 0)


INTERRUPTED_AT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests themselves ignore it
sys.meta_path.insert(0, Finder())
sys.argv = ["tunefree", "--version"]
from tunefree.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["typer", "tunefree.cli.options"])
def test_while_the_program_is_loaded(name):
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_AT.format(name=name)], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "tunefree: interrupted; nothing was written\n")
