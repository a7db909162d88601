"""Blocks: all three renderers walk all of them, and write the same numbers."""

import csv
import json
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from rich.console import Console

from tests.report.test_page import Reader
from tests.workflows.test_training import people
from tunefree.model_files.plan import Plan
from tunefree.pool.contexts import FOLLOWING
from tunefree.report import performance, rendering
from tunefree.report.document import Block, Chart, Code, Column, Data, Fact, Facts, Note, Section, Table
from tunefree.report.formats import COUNT, PERCENT, with_error
from tunefree.report.guarantees import certificates
from tunefree.report.learned import blocks_of_model, summary, tables_of_passes
from tunefree.report.members import CANDIDATES, choice_of_rows_to_come
from tunefree.report.page import Page
from tunefree.report.rendering import record
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.explanation import terms_of
from tunefree.workflows.metrics import Measure

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
with open(GUIDE / "json-keys.csv") as rows:
    DOCUMENTED = {row["command"]: {*row["facts"].split(), *row["tables"].split()} for row in csv.DictReader(rows)}
DOCUMENTED["train"] |= DOCUMENTED["inspect"]
NUMBERS = re.compile(r"\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def printed(blocks):
    """What a terminal shows, as words."""
    console = Console(width=400, no_color=True, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        rendering.show(console, blocks)
    return " ".join(capture.get().split())


def on_page(blocks):
    """What a page shows, as words."""
    return Reader(Page("title", "about", [], [Section("s", "Section", blocks)]).html).text


def draw(figure):
    figure.subplots().plot([1, 2], [2, 1])


BLOCKS = [
    Facts([Fact("rows", 1234, COUNT), Fact("error", Measure(0.25, 0.125, 0.5), PERCENT)], "On new rows", "Intervals"),
    Facts([Fact("loss", float("nan"), COUNT, "mean_loss")], key="mixing"),
    Table("Ages", [Column("name"), Column("age", COUNT), Column("id", is_shown=False)], [["Ann", 7, 1], ["Bo", 8, 2]]),
    Table("For programs", [Column("x")], [["hidden"]], shown=()),
    Chart("Curve", "falls from 2 to 1", draw, "A curve.", data={"x": np.array([1.0, np.inf])}),
    Note("pass `on_bad_row='skip'`", "warning"),
    Note("two", "note"),
    Note("three"),
    Note("small print", "fine"),
    Code("tunefree train DATA"),
    Data("order", {"sorted": np.bool_(True)}),
]


def test_all_renderers_walk_all_blocks():
    assert {type(block) for block in BLOCKS} == set(get_args(Block))
    shown, read = printed(BLOCKS), on_page(BLOCKS)
    for words in ("rows 1,234", "error 25.00 % 12.50 to 50.00 %", "loss -", "Ann 7", "Bo 8", "pass --on-bad-row skip"):
        assert words in shown and words in read, words
    assert "hidden" not in shown + read and "warning: pass" in shown and "note: two" in shown
    assert json.loads(json.dumps(record(BLOCKS), allow_nan=False)) == {
        "rows": 1234,
        "error": 0.25,
        "intervals": {"error": [0.125, 0.5]},
        "mixing": {"mean_loss": None},
        "ages": [{"name": "Ann", "age": 7, "id": 1}, {"name": "Bo", "age": 8, "id": 2}],
        "for_programs": [{"x": "hidden"}],
        "curve": {"x": [1.0, None]},
        "warnings": ["pass --on-bad-row skip"],
        "notes": ["two", "three"],
        "command": "tunefree train DATA",
        "order": {"sorted": True},
    }
    with pytest.raises(ValueError, match="two blocks have the key"):
        record([BLOCKS[0], BLOCKS[0]])


def texts_of(blocks):
    """The texts of all facts and cells that people see."""
    for block in blocks:
        if isinstance(block, Facts):
            yield from (fact.text() for fact in block.facts)
        elif isinstance(block, Table):
            yield from (cell for row in block.texts() for cell in row)


def assert_shown(blocks):
    """A terminal and a page have all facts and cells."""
    shown, read = printed(blocks), on_page(blocks)
    for text in map(" ".join, map(str.split, texts_of(blocks))):
        assert text in shown and text in read, text


@pytest.mark.parametrize("target", ["rich", "visits", pytest.param("pay", marks=pytest.mark.slow)])
def test_commands_print_the_contents_of_pages(target):
    """Facts and tables of an inspection and an evaluation are on a terminal as on a page, and in JSON."""
    table = people(800) | {"visits": np.random.default_rng(0).poisson(2.0, 800).tolist()}
    table = {name: values for name, values in table.items() if name in ("age", "job", target)}
    trained = train(open_source(table), Plan(target=target, loss="poisson" if target == "visits" else None))
    tested = evaluate(trained, open_source(table), BadRows(), "job", interval=None if target == "rich" else 0.9)
    for command, blocks in {
        "inspect": blocks_of_model(trained, terms_of(trained), 20),
        "evaluate": performance.evaluation(trained, tested, "job"),
        "certify": certificates(trained),
        "train": summary(trained, Path("people.model"), for_programs=True),
    }.items():
        assert_shown(blocks)
        values = json.dumps(record(blocks), allow_nan=False)
        assert record(blocks).keys() - {"notes", "warnings", "intervals"} <= DOCUMENTED[command]
        assert len(NUMBERS.findall(values)) > len([block for block in blocks if isinstance(block, Facts)])
    frozen = trained.model.pool.context.frozen
    ratio, error = frozen.losses[0] / frozen.losses[FOLLOWING], frozen.squares[0] ** 0.5 / frozen.losses[FOLLOWING]
    assert f"on these, {CANDIDATES[0]} {with_error(ratio, error)} and " in choice_of_rows_to_come(trained.model.pool)


def test_each_pass_has_its_losses():
    trained = train(open_source(people(400)), Plan(target="rich", ignore="pay", learner="nag", passes=3))
    (table,) = tables_of_passes(trained)
    first, *further = record([table])["passes"]
    assert (first["pass"], first["progressive_loss"]) == (1, trained.progress.progressive[0].mean_loss())
    assert [row["pass"] for row in further] == [2, 3] and further[1]["progressive_loss"] < first["progressive_loss"]
