"""What tests of losses share."""

import pytest

from tests.extending import as_before
from tunefree import losses


@pytest.fixture
def names_as_before(monkeypatch):
    """What gets a name in a test is forgotten after it."""
    monkeypatch.setattr(losses, "_USAGES", dict(losses._USAGES))
    with as_before(losses.LOSSES):
        yield
