"""Outputs that would destroy an input, or cannot be written: refused before anything is read."""

import os
import sys

import pytest

from tunefree.core.errors import DataError
from tunefree.model_files.trained import Trained
from tunefree.stream.files import check_not_read

NOT_READ = b"a table that would end in an error if it were read\0"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files that no command can read, under every kind of name."""
    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "people.model", "plot.svg", "m.checkpoint"):
        (tmp_path / name).write_bytes(NOT_READ + name.encode())
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to("data.csv")
    os.link(tmp_path / "data.csv", tmp_path / "hard.csv")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


NAMES = ["data.csv", "./folder/../data.csv", "link.csv", "hard.csv"]
OVERWRITING = [
    *[("train", "data.csv", "-t", "y", "-o", name) for name in NAMES],
    ("train", "*.csv", "-t", "y", "-o", "data.csv"),
    ("train", ".", "-t", "y", "-o", "data.csv"),
    ("train", "m.checkpoint", "-t", "y", "-o", "m"),
    ("report", "people.model", "data.csv", "-o", "people.model"),
    *[("predict", "people.model", "data.csv", "-o", name) for name in NAMES],
    ("predict", "people.model", "data.csv", "-o", "people.model"),
    ("explain", "people.model", "data.csv", "-o", "link.csv"),
    ("learners", "plot.svg", "-t", "y", "--learner", "scinol2", "--plot", "plot.svg"),
    ("inspect", "plot.svg", "--plot", "plot.svg"),
]


@pytest.mark.parametrize("command", OVERWRITING, ids=" ".join)
def test_an_output_that_is_an_input_is_refused_and_stays(run, files, command):
    before = contents(files)
    status, out, err = run(*command)
    assert (status, out) == (2, "")
    assert "would be written over" in err and len(err.splitlines()) == 1
    assert contents(files) == before


def test_standard_input_is_not_written_over(files, monkeypatch):
    with open("data.csv") as text:
        monkeypatch.setattr(sys, "stdin", text)
        with pytest.raises(DataError, match="over standard input"):
            check_not_read("link.csv", ["-"])
        check_not_read("plot.svg", ["-"])


# A folder in which nobody may write, root included, wherever tests run.
READ_ONLY = "/proc/self" if sys.platform == "linux" else "/dev/fd"
UNWRITABLE = {
    "folder": "is a directory",
    ".": "is a directory",
    "none/m.csv": "parent is not a directory",
    "data.csv/m.csv": "parent is not a directory",
    f"{READ_ONLY}/m.csv": "cannot be written",
}
WRITING = [
    ("train", "data.csv", "-t", "y", "-o"),
    ("predict", "people.model", "data.csv", "-o"),
    ("explain", "people.model", "data.csv", "-o"),
    ("report", "people.model", "data.csv", "-o"),
    ("inspect", "people.model", "--weights"),
    ("learners", "data.csv", "-t", "y", "--learner", "scinol2", "--report"),
]


@pytest.mark.parametrize("command", WRITING, ids=lambda command: command[0])
@pytest.mark.parametrize("output", UNWRITABLE)
def test_what_cannot_be_written_is_told_before_anything_is_read(run, files, command, output):
    before = contents(files)
    status, out, err = run(*command, output)
    assert (status, out) == (2, "")
    assert f"{output}: " in err and UNWRITABLE[output] in err
    assert contents(files) == before and list((files / "folder").iterdir()) == []


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files have no names here")
def test_a_model_is_written_through_a_pipe_where_there_is_no_place_for_a_checkpoint(run, tmp_path):
    rows = (f"{i % 2} 1:{i % 7} 2:1" for i in range(200))
    (tmp_path / "rows.svm").write_text("\n".join(rows))
    begins, ends = os.pipe()
    command = ("train", tmp_path / "rows.svm", "--learner", "scinol2", "-o", f"/dev/fd/{ends}", "-q")
    assert f"/dev/fd/{ends}.checkpoint: cannot be written" in run(*command, "--save-every", 100)[2]
    assert run(*command) == (0, "", "")
    os.close(ends)
    with open(begins, "rb") as pipe:
        (tmp_path / "m").write_bytes(pipe.read())
    assert Trained.load(tmp_path / "m").progress.progressive[0].rows == 200
