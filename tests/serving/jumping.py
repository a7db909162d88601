"""The command line, in a process whose wall clock jumps by up to years, forwards and back, every other second."""

import random
import threading
import time

YEARS = 3e8  # seconds

_true_time, _offset = time.time, [0.0]


def _jump():
    while True:
        _offset[0] = random.choice([0.0, random.uniform(-YEARS, YEARS), random.uniform(-5.0, 5.0)])
        time.sleep(random.uniform(0.1, 2.0))


if __name__ == "__main__":
    time.time = lambda: _true_time() + _offset[0]
    threading.Thread(target=_jump, daemon=True).start()
    time.sleep(0.01)
    from tunefree.__main__ import main

    main()
