"""Rows of a pipe are learned as they come, and the model does not depend on when they came."""

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import types
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.interruptions import saves_noted
from tests.waiting import until
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.source import open_source
from tunefree.stream.text import SAMPLE
from tunefree.training import reading, training
from tunefree.training.callbacks import Callback

WIDE, N = 2500, 3400  # rows that fill more than a block, and all rows
SCINOL, GROUPED = Plan(target="y", learner="scinol2"), Plan(target="y", groups="kind")
COMMAND = [sys.executable, "-m", "tunefree", "train"]


def values():
    """Categories, numbers, texts with line ends, and classes, one of which comes late."""
    random = np.random.default_rng(0)
    for i in range(N):
        kind, x = int(random.integers(0, 300)), float(random.normal())
        late = i > 2700 and i % 50 == 0
        label = "perhaps" if late else "yes" if x + np.sin(kind) + random.normal() > 0 else "no"
        note = f'a, line\nand a "{kind % 7}"' if i % 3 == 0 else f"word{kind % 11} other{kind % 5}"
        yield {"kind": f"k{kind}", "x": round(x, 4), "note": note, "pad": "p" * 900 if i < WIDE else "q", "y": label}


def as_csv() -> list[bytes]:
    quoted = [{**row, "note": '"' + row["note"].replace('"', '""') + '"'} for row in values()]
    rows = [quoted[0], *(row.values() for row in quoted)]
    return [(",".join(map(str, row)) + "\n").encode() for row in rows]


def as_json() -> list[bytes]:
    further = ({} if i < 2800 else {"late": i % 7, "words": ["a", f"b{i % 5}"]} for i in range(N))
    return [(json.dumps({**row, **added}) + "\n").encode() for row, added in zip(values(), further, strict=True)]


def as_numbers() -> list[bytes]:
    rows = ((row["kind"], row["x"], row["pad"], round(row["x"] + len(row["note"]), 3)) for row in values())
    return [b"kind,x,pad,y\n", *((",".join(map(str, row)) + "\n").encode() for row in rows)]


class Learning(Callback):
    """Counts batches and rows that were learned."""

    def __init__(self) -> None:
        self.pieces, self.rows = 0, 0

    def step(self, trained, step):
        self.pieces, self.rows = self.pieces + 1, self.rows + len(step.row_losses)

    def has_learned(self, rows):
        return self.rows >= rows


@pytest.fixture
def pipe(monkeypatch):
    """Standard input is a pipe; what it returns writes to it in a thread."""
    monkeypatch.setattr(training, "PATIENCE", 0.0)
    threads = []

    def begin(write):
        reads, writes = os.pipe()
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=os.fdopen(reads, "rb", 0)))

        def work():
            with open(writes, "wb", buffering=0) as file:
                write(file)

        threads.append(threading.Thread(target=work))
        threads[-1].start()

    yield begin
    for thread in threads:
        thread.join()
    sys.stdin.buffer.close()


def learned(plan, callbacks, path, format, **options):
    training.train(open_source("-", format), plan, callbacks, **options).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("text", "format", "plan"),
    [
        (as_csv, "csv", SCINOL),
        pytest.param(as_csv, "csv", replace(SCINOL, text=("note",), hash_bits=8), marks=pytest.mark.slow),
        (as_json, "json", SCINOL),
        (as_numbers, "csv", Plan(target="y")),  # the pool, with intervals
        pytest.param(as_csv, "csv", GROUPED, marks=pytest.mark.slow),
    ],
)
def test_a_model_does_not_depend_on_when_its_rows_came(tmp_path, pipe, text, format, plan):
    rows, learning = text(), Learning()
    content, n_headers = b"".join(rows), len(rows) - N
    pipe(lambda file: file.write(content))
    whole = learned(plan, [], tmp_path / "m", format)
    ends = np.cumsum([len(row) for row in rows])
    edges = np.sort(np.random.default_rng(1).integers(SAMPLE + 50_000, len(content), 30)).tolist()

    def slowly(file):
        for start, stop in itertools.pairwise([0, *edges, len(content)]):
            file.write(content[start:stop])
            n_rows = int(np.searchsorted(ends, stop, "right")) - n_headers
            until(partial(learning.has_learned, n_rows - (N // 64 + 1 if plan.groups else 0)))  # of groups some wait

    pipe(slowly)
    assert learned(plan, [learning], tmp_path / "m", format) == whole
    assert learning.pieces > 10


def test_rows_are_learned_and_saved_before_others_come(tmp_path, pipe, monkeypatch):
    rows, learning, kept, saves = as_csv(), Learning(), tmp_path / "kept", saves_noted(monkeypatch)

    def in_turn(file):
        file.write(b"".join(rows[: WIDE + 1]))
        for row in range(WIDE + 1, WIDE + 4):
            until(partial(learning.has_learned, row - 1))
            until(lambda saved=row - 1: saves[-1:] == [saved])
            file.write(rows[row][:9])
            file.write(rows[row][9:])

    pipe(in_turn)
    training.train(open_source("-"), SCINOL, [learning], kept, 1)
    assert learning.rows == WIDE + 3 and saves == sorted(set(saves))


@pytest.mark.parametrize(
    ("text", "plan", "change"),
    [
        (as_numbers, Plan(target="y"), lambda row: row.replace(b",", b",,", 1)),  # too many fields
        pytest.param(as_csv, GROUPED, lambda row: row.replace(b",", b",oops", 1), marks=pytest.mark.slow),
        (as_csv, replace(SCINOL, classes=("no", "perhaps", "yes")), lambda row: row[:-1] + b"s\n"),
    ],
)
def test_rows_of_a_pipe_before_one_that_cannot_be_used_are_saved(tmp_path, pipe, text, plan, change):
    rows, kept, bad = text(), tmp_path / "kept", N - 500
    pipe(lambda file: file.write(b"".join([*rows[:bad], change(rows[bad]), *rows[bad + 1 :]])))
    with pytest.raises(DataError, match=f"row {bad}"):
        training.train(open_source("-"), plan, checkpoint=kept)
    trained = Trained.load(kept)
    n_rows = trained.progress.position.row
    assert WIDE - 500 < n_rows < bad
    pipe(lambda file: file.write(b"".join([rows[0], *rows[n_rows + 1 :]])))
    training.learn_more(trained, open_source("-")).save(tmp_path / "rest")
    pipe(lambda file: file.write(b"".join(rows)))
    whole = learned(plan, [], tmp_path / "m", "csv")
    assert plan.classes or (tmp_path / "rest").read_bytes() == whole  # what rows of the refused chunk told is kept
    assert Trained.load(tmp_path / "rest").progress.progressive[0].rows == N


@pytest.mark.slow
def test_a_disk_that_is_full_while_it_learns_and_at_the_end(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"".join(as_numbers()))
    command = [*COMMAND, "a.csv", "-t", "y", "--learner", "scinol2", "-o", "m", "--save-every", "1000"]

    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    environment = {**os.environ, "TUNEFREE_CACHE": str(tmp_path / "cache")}
    ended = subprocess.run(command, cwd=tmp_path, stderr=-1, text=True, preexec_fn=full, env=environment)
    lines = ended.stderr.splitlines()
    assert ended.returncode == 2 and "m: " in lines[-1] and "File too large" in lines[-1]
    assert [line for line in lines if "not saved" in line and "the next save tries again" in line]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["a.csv"]


def test_readers_end_with_the_program_that_left_them(monkeypatch):
    at_exit = []
    monkeypatch.setattr(reading.atexit, "register", at_exit.append)
    left = reading.ahead(itertools.count())
    assert next(left) == 0
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "tunefree-reader")
    (end,) = at_exit
    end()
    assert not thread.is_alive()
