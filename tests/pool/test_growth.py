"""The last generation, which is grown as a pass ends."""

from __future__ import annotations

import pytest

from tests.pool.rows import learned, stream
from tunefree.pool.slots import TREES, WHOLE

BIRTH = 91  # rows after which a generation is grown on all of them, and predicts at once


@pytest.mark.parametrize("later", [0, 1])
def test_trees_are_not_grown_again_on_the_rows_that_the_newest_were_grown_on(later):
    model, _ = learned(stream(n=BIRTH + later))
    before = dict(model.pool.members.growth.awake)
    for _ in range(2):  # the second pass ends where the first did
        model.freeze()
        for kind in TREES:
            of_kind = model.pool.members.growth.awake[WHOLE, kind]
            assert of_kind[0].rows == BIRTH + later
            assert of_kind[later] is before[WHOLE, kind][0]
