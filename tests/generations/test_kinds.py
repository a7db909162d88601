"""Kinds of generations from outside."""

from importlib import metadata
from importlib.metadata import EntryPoint

import pytest

import tunefree
from tests.extending import as_before, run_page
from tunefree.core.errors import ModelError
from tunefree.generations.kinds import KINDS, registered
from tunefree.pool.model import Model, restored
from tunefree.report.learned import facts_of_rows


def test_the_worked_example_runs_as_it_stands():
    with as_before(KINDS):
        run_page("member.md")
        assert registered() == ("category-means",)
        arrays, header = Model("regression").save_state()
        names = restored(arrays, header).pool.members.names
    assert "category-means, previous" in names
    assert registered() == () and "category-means, previous" not in Model("regression").pool.members.names
    with pytest.raises(ModelError, match="unknown kind of generation 'category-means'"):
        restored(arrays, header)


def test_kinds_that_are_not_monotone_are_left_out_and_named_where_columns_are():
    rows = {"x": [0.5 * (k % 7) for k in range(40)], "y": [0.1 * (k % 9) for k in range(40)]}
    with as_before(KINDS):
        KINDS.register("ordered", KINDS["boosted"])
        KINDS.register("disordered", KINDS["randomised"])
        trained = tunefree.train(rows, target="y", monotone={"x": 1})
        names = trained.trained_.model.pool.members.names
        assert "ordered, newest" in names and "disordered, newest" not in names
        [text] = [fact.text() for fact in facts_of_rows(trained.trained_) if fact.name == "monotone"]
        without = "without randomised trees, disordered trees and learners on leaves"
        assert text == f"the prediction rises with 'x'; {without}"
        assert restored(*trained.trained_.model.save_state()).pool.members.names == names


def test_a_kind_that_a_file_names_is_found_by_an_entry_point(monkeypatch):
    point = EntryPoint("elsewhere", "tunefree.generations.randomised:KIND", "tunefree.generations")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [point])
    with as_before(KINDS):
        saved = Model("regression", kinds=["elsewhere"]).save_state()
    with as_before(KINDS):
        assert "elsewhere, newest" in restored(*saved).pool.members.names
        assert registered() == ()  # pools that are made do not have it


@pytest.mark.parametrize("names", [["boosted"], ["linear"], ["a", "a"]])
def test_a_file_that_names_a_kind_twice_is_refused(names):
    arrays, header = Model("regression").save_state()
    with pytest.raises(ModelError, match="is named twice"):
        restored(arrays, header | {"kinds": names})
