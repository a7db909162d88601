"""Parts are computed once, kept while code and data stay, and taken up again; the command as a user types it."""

import numpy as np
import pytest

from tests.papers.experiments.example import Settings, parts, stops_at_two, work
from tunefree.papers.experiments import NAMES, running, sources
from tunefree.papers.experiments import experiment as experiments
from tunefree.papers.experiments.experiment import Claim, Experiment, Report, Request, Store


def report(settings, results):
    rows = [{"part": name, "square": float(arrays["square"])} for (name, _), arrays in sorted(results.items())]
    (last,) = (row["square"] for row in rows if row["part"] == "last")
    claim = Claim("The last is 9", last == 9, f"last {last:g}")
    return Report(lambda figure: figure.subplots().plot([0, 1], [0, 1]), (3.0, 2.0), rows, [claim], "none")


EXAMPLE = Experiment("example", "An example", Settings(2), report, parts, work)


def test_several_processes_compute_the_same_as_one(tmp_path):
    one = experiments.compute(EXAMPLE, Request(tmp_path / "one"))
    two = experiments.compute(EXAMPLE, Request(tmp_path / "two", jobs=2))
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name]["square"], two[name]["square"]) for name in one)


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    stopped = Experiment("example", "", Settings(), report, parts, stops_at_two)
    with pytest.raises(KeyboardInterrupt):
        experiments.compute(stopped, Request(tmp_path))

    def progress():
        numbers = []
        experiments.compute(EXAMPLE, Request(tmp_path), lambda *counts: numbers.append(counts))
        return numbers

    assert progress()[0] == (2, 4, 2)  # 0 and 1 were done
    assert progress() == [(4, 4, 4), (5, 5, 5)]
    experiments.store_of(EXAMPLE, Request(tmp_path)).clear()
    assert progress()[-1] == (5, 5, 0)


def test_parts_of_other_settings_or_damaged_ones_are_not_taken(tmp_path):
    experiments.compute(EXAMPLE, Request(tmp_path, quick=True))
    other = Experiment("example", "", Settings(scale=2.0), report, parts, work)
    path = tmp_path / "parts" / "example-quick" / "square-6.arrays"
    for _ in range(2):
        results = experiments.compute(other, Request(tmp_path, quick=True))
        assert float(results["square", 6.0]["square"]) == 36.0
        path.write_bytes(path.read_bytes()[:-4])


def test_what_is_written(tmp_path):
    files = running.run(EXAMPLE, Request(tmp_path, quick=True))
    assert sorted(path.name for path in files) == ["example.csv", "example.md", "example.png", "example.svg"]
    text = (tmp_path / "example.md").read_text()
    assert all(words in text for words in ("An example", "The last is 9. Not so here: last 1.", "quick", "parts 2"))
    assert (tmp_path / "example.csv").read_text().splitlines()[0] == "part,square"
    before = {path.name: path.read_bytes() for path in files}
    experiments.store_of(EXAMPLE, Request(tmp_path, quick=True)).clear()
    running.run(EXAMPLE, Request(tmp_path, quick=True))
    assert before == {path.name: path.read_bytes() for path in files}


def test_a_change_of_anything_that_is_imported_changes_the_digest(tmp_path, monkeypatch):
    files = {"tunefree.one": "from tunefree.two import f\nimport numpy\n", "tunefree.two": "f = 1\n"}

    def digest(**changed):
        for name, text in (files | {f"tunefree.{key}": text for key, text in changed.items()}).items():
            (tmp_path / name).write_text(text)
        sources.code_digest.cache_clear()
        return sources.code_digest("tunefree.one")

    monkeypatch.setattr(sources, "_file_of", lambda name: tmp_path / name if name in files else None)
    first = digest()
    assert digest(two="f = 2\n") != first == digest()
    sources.code_digest.cache_clear()


def test_parts_of_other_sources_are_computed_again(tmp_path):
    point = ("one", 1)
    Store(tmp_path, None, "before").save(point, {})
    assert Store(tmp_path, None, "before").load(point) is not None
    assert Store(tmp_path, None, "now").load(point) is None


def test_without_a_name_it_lists_all_names(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [line.split()[0] for line in done("reproduce")[0].splitlines()] == list(NAMES)
    assert not list(tmp_path.iterdir())


def test_missing_data_end_with_status_2_after_the_rest(run, tmp_path, monkeypatch):
    monkeypatch.delenv("TUNEFREE_DATA", raising=False)
    monkeypatch.setattr(running, "NAMES", ("sgd-fig1", "scinol-table2"))
    status, _, err = run("reproduce", "--all", "--quick", "-q", "-o", tmp_path)
    assert status == 2 and "scinol-table2 was left out" in err and "--data DIR" in err
    assert "Not so here" not in (tmp_path / "sgd-fig1.md").read_text()
