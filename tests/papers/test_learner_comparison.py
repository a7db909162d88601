"""Learners compared on one pass: the figures are those of `train`, whatever the batches, and those of its page."""

import json

import numpy as np
import pytest

from tests.report.test_document import DOCUMENTED, assert_shown
from tests.report.test_page import check_page
from tests.workflows.test_training import people
from tunefree.learners import POOL
from tunefree.model_files.plan import Plan
from tunefree.papers.learner_comparison.one_pass import compare
from tunefree.papers.learner_comparison.report import page
from tunefree.report.rendering import record
from tunefree.stream.source import open_source
from tunefree.training.training import train


@pytest.fixture(scope="module")
def comparison():
    """All learners on a few rows, a third class of which comes late; two have no label."""
    table = people(900)
    table["rich"][450:] = np.random.default_rng(1).choice(["no", "yes", "very"], 450).tolist()
    table["rich"][5] = table["rich"][500] = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tunefree.stream.frames.rows_of_a_chunk", lambda *_: 100)
        yield table, compare(open_source(table), Plan(target="rich", ignore=("pay",), on_bad_row="skip"))


def test_a_late_class_and_bad_rows_as_in_train(comparison):
    table, compared = comparison
    assert (compared.rows, compared.skipped) == (898, 2)
    for contestant in compared.contestants:
        if contestant.name in ("scinol2", "adagrad", POOL):
            alone = Plan(target="rich", ignore=("pay",), on_bad_row="skip", learner=contestant.name)
            assert contestant.metrics == train(open_source(table), alone).progress.progressive[0]


def test_terminal_page_and_json_have_the_same_numbers(comparison):
    written = page(comparison[1])
    blocks = [block for section in written.sections for block in section.blocks]
    assert_shown(blocks)
    values = record(blocks)
    assert values.keys() <= DOCUMENTED["learners"] and json.dumps(values, allow_nan=False)
    curve = values["curves"][POOL]
    assert curve[-1]["rows"] == 898 and curve[-1]["loss"] == comparison[1].pool.metrics.mean_loss()
    sums = [point["rows"] * point["loss"] for point in curve[-2:]]
    assert curve[-1]["recent"] == pytest.approx((sums[1] - sums[0]) / (898 - curve[-2]["rows"]))
    check_page(written.html)
