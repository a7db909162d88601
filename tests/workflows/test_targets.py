"""What a target of whole numbers suggests, on the frequencies of real ones."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tunefree.training.targets import task_of

# Frequencies of the values from the first on: counted in tables, or written from memory of published counts, and not
# checked against their sources, so that they stand for targets of such a shape. Quality and severity are either.
with open(Path(__file__).with_name("targets.csv")) as file:
    TARGETS = {
        row["name"]: (row["task"], int(row["first"]), [int(count) for count in row["frequencies"].split()])
        for row in csv.DictReader(file)
    }
# Targets that a user must not be asked about: whoever has them knows that they are classes, and so do we.
QUIET = [
    "iris species",
    "wine cultivar",
    "MNIST digit",
    "covertype",
    "shuttle",
    "satellite soil",
    "letter",
    "glass type",
]


def rows_of(name, most=20000):
    task, first, counts = TARGETS[name]
    counts = np.array(counts)
    if counts.sum() > most:  # as many rows as the first ones of a file
        counts = np.random.default_rng(0).multinomial(most, counts / counts.sum())
    return task, pa.array(np.repeat(np.arange(first, first + len(counts)), counts))


@pytest.mark.parametrize("name", TARGETS)
def test_real_targets_are_what_they_are_or_doubtful(name):
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


@pytest.mark.parametrize("name", [name for name, own in TARGETS.items() if sum(own[2]) >= 300])
def test_few_rows_of_a_real_target_are_seldom_wrong_without_a_question(name):
    task, first, counts = TARGETS[name]
    rng, p = np.random.default_rng(1), np.array(counts) / sum(counts)
    values, wrong = np.arange(first, first + len(p)), 0
    for _ in range(10):
        target = np.repeat(values, rng.multinomial(300, p))
        guess = task_of(pa.array(target))
        if len(np.unique(target)) <= 2:
            continue  # that a few rows of claims hold 0 and 1 only tells nothing of others
        wrong += not guess.doubtful and task not in (guess.task, "either")
    assert wrong <= 1


def test_order_and_type_of_a_target_do_not_matter():
    _, target = rows_of("motor claims (France)")
    shuffled = np.random.default_rng(0).permutation(target.to_numpy(zero_copy_only=False))
    for other in (pa.array(shuffled), pa.array(shuffled.astype(float)), pa.array(shuffled).cast(pa.int8())):
        assert task_of(other) == task_of(target)
