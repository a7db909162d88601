"""Each run gives what is recorded of it."""

import pytest

from tests.golden.recording import before, differences, versions
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
