"""Rows of groups: what is learned does not depend on which requests are learned together."""

import pytest

from tests.serving.model import N, plan, rows, table
from tests.serving.undisturbed import check_store
from tests.waiting import NEVER
from tunefree.model_files.trained import Trained
from tunefree.serving.learner import Request
from tunefree.serving.service import Service
from tunefree.serving.settings import Keeping
from tunefree.stream.source import open_source
from tunefree.training.training import train


def grouped(start, stop, length=7):
    """Rows whose groups go over several requests."""
    return [{**row, "home": f"h{(start + place) // length}"} for place, row in enumerate(rows(start, stop))]


@pytest.mark.parametrize("learner", ["pool"])
def test_requests_that_cut_a_group(tmp_path, learner):
    whole = table(0, N) | {"home": [f"h{place // 7}" for place in range(N)]}
    train(open_source(whole), plan(learner=learner, groups="home")).save(tmp_path / "m")
    keeping = Keeping(keep_versions=10**6, save_every=40)
    with Service(Trained.load(tmp_path / "m"), tmp_path / "s", keeping=keeping) as service:
        sent = [service.learner.submit(Request(grouped(start, start + 5))) for start in range(N, N + 100, 5)]
        assert all(future.result(NEVER) == {"learned": 5} for future in sent)
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 100
