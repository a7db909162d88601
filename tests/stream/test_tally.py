"""Rows that cannot be used are counted by reason, in bounded memory, whatever the order in which rows are read."""

from dataclasses import replace

import pytest

from tests.interruptions import Stop
from tests.workflows.test_training import model_bytes
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream import delimited
from tunefree.stream.batch import MOST_REASONS, OTHER, Tally, reason_of
from tunefree.stream.source import open_source
from tunefree.stream.text import read_lines
from tunefree.training.training import train

N = 1400
PLAN = Plan(target="y", learner="scinol2", on_bad_row="skip")


@pytest.fixture
def damaged(tmp_path):
    """A table whose every seventh row has a field too many, and a few of whose weights are wrong."""
    path = tmp_path / "d.csv"
    rows = [f"{i % 50},1,{'yes' if i % 3 else 'no'}" for i in range(N)]
    rows[5::100] = ["2,-1,no"] * len(rows[5::100])
    rows[3::7] = ["1,1,no,more"] * len(rows[3::7])
    path.write_text("a,w,y\n" + "\n".join(rows) + "\n")
    return path


def counted(progress):
    return progress.tally.count, {reason.problem: (reason.rows, reason.row) for reason in progress.tally.reasons}


MANY = "the row has … fields, the header …"
NEGATIVE = "the weight is …, not a finite number from …"


def test_reasons_do_not_depend_on_the_order_of_rows(damaged):
    plan = replace(PLAN, sample_weight="w")
    wide = [i for i in range(N) if i % 7 == 3]
    negative = [i for i in range(N) if i % 100 == 5 and i % 7 != 3]
    expected = len(wide) + len(negative), {MANY: (len(wide), 4), NEGATIVE: (len(negative), 6)}
    assert counted(train(open_source(damaged), plan).progress) == expected
    mixed = train(open_source(damaged), replace(plan, shuffle=True)).progress
    assert mixed.tally.count == expected[0] and {reason.file for reason in mixed.tally.reasons} == {str(damaged)}
    assert all(reason.row - 1 in (wide if reason.problem == MANY else negative) for reason in mixed.tally.reasons)


def test_a_reason_keeps_options_and_no_values():
    error = DataError("'x' is not a number (`categorical='age'` takes the column for categories)", "a.csv", row=7)
    assert reason_of(error).problem == "… is not a number (`categorical='age'` takes the column for categories)"


def test_a_checkpoint_knows_of_no_row_that_comes_after_it(damaged, tmp_path, monkeypatch):
    """Rows that were read ahead were counted in the checkpoint, and again after it."""
    monkeypatch.setattr(delimited, "read_lines", lambda *a, **o: read_lines(*a[:2], 1000, **o))
    source, checkpoint = open_source(damaged), tmp_path / "checkpoint"
    whole = train(source, PLAN)
    with pytest.raises(KeyboardInterrupt):
        train(source, PLAN, [Stop(500)], checkpoint, 100)
    kept = Trained.load(checkpoint).progress
    assert 0 < kept.tally.count == kept.position.row - kept.rows
    resumed = train(source, PLAN, None, checkpoint, 100, resume=True)
    assert counted(resumed.progress) == counted(whole.progress)
    assert model_bytes(whole, tmp_path / "m") == model_bytes(resumed, tmp_path / "m")


def test_memory_is_bounded():
    tally, letters = Tally(), "abcdefghijklmnopqrstuvwxyz"
    for row in range(5000):
        tally.add(DataError(f"it {letters[row % 26]}{letters[row // 26 % 26]}" + "s" * 900, "f", row + 1, "c" * 999))
    assert tally.count == 5000 == sum(reason.rows for reason in tally.reasons)
    assert len(tally.reasons) == MOST_REASONS + 1 and tally.reasons[-1].problem == OTHER
    assert all(len(reason.problem) + len(reason.column) <= 400 for reason in tally.reasons)
