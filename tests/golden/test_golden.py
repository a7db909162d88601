"""Each run gives what is recorded of it."""

import pytest

from tests.golden.recording import before, difference, differences, recorded, versions
from tests.golden.runs import RUNS


@pytest.mark.all_trees
@pytest.mark.parametrize(
    "run", [pytest.param(run, id=run.name, marks=[pytest.mark.slow] * run.is_slow) for run in RUNS]
)
def test_results_are_those_recorded(run):
    found = differences(run)
    if found and versions() != before()["versions"]:
        found.append(f"recorded with {before()['versions']}, and here are {versions()}")
    if found:
        pytest.fail("\n".join([f"{run.name}:", *found]), pytrace=False)


def test_each_record_is_of_a_run():
    assert before()["runs"].keys() == {run.name for run in RUNS}


def test_differences_are_told_by_their_size():
    values, text = recorded([1.0, 2.0, 3.0]), recorded("loss 0.25\nrows 7")
    assert difference(values, values, True) == difference(text, text, True) == ""
    assert "differs in rounding only" in difference(values, recorded([1.0, 2.0, 3.0 + 1e-14]), True)
    assert difference(values, recorded([1.0, 2.0, 3.0 + 1e-14]), False) == ""
    assert "differs by 0.1" in difference(values, recorded([1.0, 2.0, 3.3]), False)
    assert "the shape was 3" in difference(values, recorded([1.0, 2.0]), True)
    assert "line 1" in difference(text, recorded("loss 0.2501\nrows 7"), True)
    assert difference(text, recorded("loss 0.2501\nrows 7"), False) == ""
    assert "line 2" in difference(text, recorded("loss 0.25\ncolumns 7"), False)
    assert "recorded was None" in difference(None, text, False)
