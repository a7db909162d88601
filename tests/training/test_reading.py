"""Reading ahead, and what becomes of it where a training is left."""

import itertools

from tunefree.training import reading


def test_readers_end_with_the_program_that_left_them():
    left = reading.ahead(itertools.count())
    assert next(left) == 0
    (thread,) = reading._readers
    assert thread.is_alive()
    reading._end_readers()
    assert not thread.is_alive()
    left.close()
    assert not reading._readers
