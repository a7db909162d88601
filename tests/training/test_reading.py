"""Reading ahead, and what becomes of it where a training is left."""

from __future__ import annotations

from tunefree.training import reading


def test_readers_end_with_the_program_that_left_them():
    closed = []

    def numbers():
        try:
            yield from range(10**9)
        finally:
            closed.append(True)

    left = reading.ahead(numbers())
    assert next(left) == 0 and len(reading._readers) == 1 and not closed
    reading._end_readers()
    assert closed and not any(thread.is_alive() for thread in reading._readers)
    left.close()
    assert not reading._readers
