"""The command, as a user types it."""

from __future__ import annotations

import pytest

from tunefree.papers.experiments import NAMES, running


def test_without_a_name_it_lists_what_there_is(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("reproduce")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(NAMES)
    assert not list(tmp_path.iterdir())


def test_a_figure_is_written(run, tmp_path):
    status, _, err = run("reproduce", "sgd-fig1", "--quick", "-o", tmp_path / "out")
    assert status == 0
    assert "sgd-fig1: Nitanda, Suzuki 2019" in err and "sgd-fig1.svg" in err
    assert (tmp_path / "out" / "sgd-fig1.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig1"], "no experiment is called 'fig1'"),
        (["sgd-fig1", "--all"], "--all and sgd-fig1 contradict each other"),
    ],
)
def test_mistakes_are_named(run, tmp_path, arguments, message):
    status, _, err = run("reproduce", *arguments, "-o", tmp_path)
    assert status == 2 and message in err


def test_missing_data_end_with_status_2_after_the_rest(run, tmp_path, monkeypatch):
    monkeypatch.delenv("TUNEFREE_DATA", raising=False)
    monkeypatch.setattr(running, "NAMES", ("sgd-fig1", "scinol-table2"))
    status, _, err = run("reproduce", "--all", "--quick", "-q", "-o", tmp_path)
    assert status == 2 and "scinol-table2 was left out" in err and "--data DIR" in err
    assert (tmp_path / "sgd-fig1.md").exists()


def test_an_interrupted_run_says_what_is_kept(run, tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", interrupted)
    status, _, err = run("reproduce", "sgd-fig1", "-q", "-o", tmp_path)
    assert status == 2 and "finished parts are kept" in err
