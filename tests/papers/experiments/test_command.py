"""The command, as a user types it."""

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


def test_missing_data_end_with_status_2_after_the_rest(run, tmp_path, monkeypatch):
    monkeypatch.delenv("TUNEFREE_DATA", raising=False)
    monkeypatch.setattr(running, "NAMES", ("sgd-fig1", "scinol-table2"))
    status, _, err = run("reproduce", "--all", "--quick", "-q", "-o", tmp_path)
    assert status == 2 and "scinol-table2 was left out" in err and "--data DIR" in err
    assert (tmp_path / "sgd-fig1.md").exists()
