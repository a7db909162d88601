"""Rows without a label in a stream to learn from: errors, or skipped and counted."""

import re

import pytest

from tests.interruptions import Stop
from tunefree import Plan, open_source
from tunefree.model_files.trained import Trained
from tunefree.stream import shuffle
from tunefree.training.training import train

N = 300
LABELS = ["no" if i % 50 < 20 else "yes" for i in range(N)]
WITHOUT = [i % 7 == 3 or 100 <= i < 130 for i in range(N)]
KINDS = {
    "csv": ("age,job,y", lambda i, label: f"{20 + i % 50},{'cook' if i % 3 else 'clerk'},{label}"),
    "jsonl": (
        None,
        lambda i, label: f'{{"age": {20 + i % 50}, "y": {f"{chr(34)}{label}{chr(34)}" if label else "null"}}}',
    ),
    "vw": (None, lambda i, label: f"{({'yes': '1 ', 'no': '-1 '}).get(label, '')}| age:{20 + i % 50} n{i % 11}"),
}


def write(folder, kind, skipped, name):
    """A file in which the rows WITHOUT have no label, or from which they are left out."""
    header, line = KINDS[kind]
    rows = [line(i, "" if none else label) for i, (label, none) in enumerate(zip(LABELS, WITHOUT, strict=True))]
    kept = [row for row, none in zip(rows, WITHOUT, strict=True) if not (skipped and none)]
    (folder / f"{name}.{kind}").write_text("\n".join([header, *kept] if header else kept) + "\n")
    return folder / f"{name}.{kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_skipped_rows_leave_the_model_as_if_they_had_not_been_there(run, tmp_path, kind):
    given, without = write(tmp_path, kind, False, "given"), write(tmp_path, kind, True, "without")
    options = [*([] if kind == "vw" else ["-t", "y"]), "--learner", "scinol2"]
    status, _, err = run("train", given, *options, "-o", tmp_path / "m")
    assert status == 2 and "row 4" in err and "--unlabelled skip" in err
    status, out, err = run("train", given, *options, "-o", tmp_path / "m", "--unlabelled", "skip")
    assert status == 0, err
    assert re.search(rf"without a label, skipped +{sum(WITHOUT)}\s", out)
    assert run("train", without, *options, "-o", tmp_path / "n")[0] == 0
    models = [Trained.load(tmp_path / name) for name in "mn"]
    states = [trained.model.save_state() for trained in models]
    assert states[0][1] == states[1][1]
    assert all((states[0][0][name] == states[1][0][name]).all() for name in states[1][0])
    assert models[0].encoder.names() == models[1].encoder.names()
    assert [own.progress.tally.count for own in models] == [0, 0]


def test_the_count_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "CHUNK_ROWS", 50)
    source = open_source(write(tmp_path, "csv", False, "given"))
    plan = Plan(target="y", learner="scinol2", unlabelled="skip", shuffle=True)
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        train(source, plan, [Stop(101)], checkpoint, 20)
    assert 0 < Trained.load(checkpoint).progress.tally.unlabelled < sum(WITHOUT)
    assert train(source, plan, None, checkpoint, 20, resume=True).progress.tally.unlabelled == sum(WITHOUT)
