"""Dirty files on the command line: what is recognised is told, and read the same way when the model predicts."""

import numpy as np
import pytest

from tests.interruptions import Stop
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.source import open_source
from tunefree.training.training import train

QUICK = ("--learner", "scinol2")


def rows(n: int, seed: int = 0) -> list[str]:
    """A zip code and an account that tell the target, a number, and a title; ``y`` has words of its own."""
    rng = np.random.default_rng(seed)
    zips, accounts = np.array(["01234", "1234", "80331"]), np.array([2**53 + 1, 2**53, 2**53 + 2])
    titles = [f"{a} {b} shirt {k}" for k, (a, b) in enumerate(rng.choice(["red", "blue", "old"], (n, 2)).tolist())]
    place = rng.integers(0, 3, n)
    labels = np.where(place == 0, "Y", "N")
    numbers = rng.normal(size=n).round(3)
    return [
        ",".join(map(str, of_row)) for of_row in zip(zips[place], accounts[place], numbers, titles, labels, strict=True)
    ]


HEADER = "zip,account,size,title,y"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "a.csv").write_text("\n".join([HEADER, *rows(300)]) + "\n")
    return tmp_path / "a.csv"


def kinds(path) -> dict[str, str]:
    return {column.name: column.kind for column in Trained.load(path).encoder.columns}


def test_codes_and_titles_are_what_they_are_in_training_and_prediction(run, data, tmp_path):
    model = tmp_path / "m.model"
    status, out, err = run("train", data, "-t", "y", "-o", model, *QUICK)
    assert status == 0, err
    assert kinds(model) == {"zip": "category", "account": "category", "size": "number", "title": "text"}
    assert "note: column 'zip': leading zeros, read as categories; --numeric zip reads numbers" in out
    assert "--numeric account reads rounded numbers, --ignore account leaves it out" in out
    assert out.count("read as categories") == 2 and "N, Y" in out
    names = Trained.load(model).encoder.names()
    assert {"zip=01234", "zip=1234", f"account={2**53}", f"account={2**53 + 1}"} <= set(names)
    status, out, err = run("evaluate", model, data, "--json")
    assert status == 0 and '"error": 0.0' in out
    for option, kind in (("--numeric", "number"), ("--categorical", "category")):
        status, out, err = run("train", data, "-t", "y", "-o", model, *QUICK, option, "zip", option, "account")
        assert status == 0, err
        assert (kinds(model)["zip"], kinds(model)["account"]) == (kind, kind)
        assert "read as categories" not in out


def test_a_training_that_is_resumed_tells_what_was_odd_once(run, data, tmp_path):
    names = [tmp_path / "b.csv", tmp_path / "c.csv"]
    for seed, name in enumerate(names):
        name.write_text("\n".join(["# by hand", HEADER, *rows(150, seed), HEADER, *rows(9, 2)]) + "\n")
    source, plan, checkpoint = open_source(names), Plan(target="y", learner="scinol2"), tmp_path / "m.model"

    whole = train(source, plan)
    with pytest.raises(KeyboardInterrupt):
        train(source, plan, [Stop(201)], checkpoint, 100)
    left_out = [own for own in Trained.load(checkpoint).progress.tally.oddities if "left out" in own.problem]
    assert len(left_out) == 2
    status, out, err = run("train", *names, "-t", "y", "-o", checkpoint, *QUICK, "--save-every", "100", "--resume")
    assert status == 0, err
    assert Trained.load(checkpoint).progress.tally.oddities == whole.progress.tally.oddities
    assert "note: comments before the header are left out (2 lines of" in out
    assert "note: a line that repeats the header is left out (2 rows, the first:" in out


def test_a_word_that_comes_later_beside_yes_and_no_is_a_category_and_no_end(run, tmp_path):
    lines = [f"{'yes' if k % 2 else 'No'},{k % 2}" for k in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["on,y", *lines]) + "\n")
    (tmp_path / "b.csv").write_text("on,y\nunknown,1\nYES,1\nn,0\n")
    status, out, err = run("train", tmp_path / "a.csv", tmp_path / "b.csv", "-t", "y", "-o", tmp_path / "m", *QUICK)
    assert status == 0, err
    trained = Trained.load(tmp_path / "m")
    assert trained.encoder.names() == ["(constant)", "on=false", "on=true", "on=unknown"]
    assert "true or false" in out and trained.progress.progressive[0].rows == 203
