"""What a target of whole numbers suggests, on the frequencies of real ones."""

import csv
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tunefree
from tunefree.training.targets import task_of

# Frequencies of the values from the first on: counted in tables, or written from memory of published counts, and not
# checked against their sources, so that they stand for targets of such a shape. Quality and severity are either.
with open(Path(__file__).with_name("targets.csv")) as file:
    TARGETS = {
        row["name"]: (row["task"], int(row["first"]), [int(count) for count in row["frequencies"].split()])
        for row in csv.DictReader(file)
    }
# Targets that a user must not be asked about: whoever has them knows that they are classes, and so do we.
QUIET = "iris species", "wine cultivar", "MNIST digit", "covertype", "shuttle", "satellite soil", "letter", "glass type"


def rows_of(name, most=20000):
    task, first, counts = TARGETS[name]
    counts = np.array(counts)
    if counts.sum() > most:  # as many rows as the first ones of a file
        counts = np.random.default_rng(0).multinomial(most, counts / counts.sum())
    return task, pa.array(np.repeat(np.arange(first, first + len(counts)), counts))


@pytest.mark.parametrize("name", TARGETS)
def test_tasks_of_real_targets_are_right_or_doubtful(name):
    right, target = rows_of(name)
    guess = task_of(target)
    assert guess.doubtful or right in (guess.task, "either"), guess
    if name in QUIET:
        assert not guess.doubtful, guess


def test_most_real_targets_are_right_without_a_question():
    guesses = {name: (right, task_of(target)) for name in TARGETS for right, target in [rows_of(name)]}
    clear = {name: own for name, own in guesses.items() if own[0] != "either"}
    wrong = [name for name, (right, guess) in clear.items() if guess.task != right]
    asked = [name for name, (_, guess) in clear.items() if guess.doubtful]
    assert len(TARGETS) >= 30 and len(wrong) <= 4 and len(asked) <= 12, (wrong, asked)


@pytest.mark.parametrize(("rows", "is_doubtful"), [([*range(8)] * 2, True), ([*range(8), *range(4)], False)])
def test_whole_numbers_of_few_rows_each_are_numbers(rows, is_doubtful):
    guess = task_of(pa.array(rows))
    assert guess.task == "regression" and f"8 whole numbers from 0 to 7 in {len(rows)} rows" in guess.why
    assert guess.doubtful is is_doubtful


RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("target", "options", "doubt"),
    [
        (RANDOM.poisson(0.8, 400), {}, "from 0 to 5, learned with the square loss; .*'poisson'.*'regression'"),
        (RANDOM.poisson(0.8, 400), {"loss": "quantile:0.9"}, "get rarer like counts, taken for numbers to predict"),
        (RANDOM.poisson(20, 3000), {}, None),  # none is 0
        (RANDOM.choice([0, 50, 100, 500], 400), {}, "4 whole numbers from 0 to 500, far apart, .*numbers to predict"),
        (RANDOM.choice([0, 50, 100, 500], 60), {}, None),
        (RANDOM.integers(3, 20, 400), {}, "17 whole numbers from 3 to 19, each of them often, taken for classes"),
        (RANDOM.integers(3, 20, 400), {"task": "classification"}, None),
        (RANDOM.choice([*"abc", *map(str, range(40))], 400), {}, "but for 'a', taken for classes; pass `na_values='a'"),
        (RANDOM.choice([*"abcd", *map(str, range(40))], 400), {}, None),
    ],
)
def test_doubts_are_reported_with_the_option_that_decides(target, options, doubt):
    view = tunefree.columns({"x": RANDOM.normal(size=len(target)), "y": target}, target="y", **options)
    doubts = [finding for finding in view.notes() if finding.startswith("column 'y'")]
    assert len(doubts) == (doubt is not None) and all(re.search(doubt, finding) for finding in doubts)
