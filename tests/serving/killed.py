"""A service that kills its process (SIGKILL) at the n-th call of a function; it prints each row that was acknowledged.

``python -m tests.serving.killed FOLDER MODEL POINT N``
"""

import os
import signal
import sys
from pathlib import Path

from tests.serving.model import N, rows
from tunefree.model_files.trained import Trained
from tunefree.serving import learner, store
from tunefree.serving.service import Service
from tunefree.serving.settings import Keeping

SENT = 30  # rows
POINTS = {
    "before it is written": (store.Store, "add", False),
    "while it is written": (store.Store, "keep_answer", True),
    "before it is learned": (learner.Learner, "_learn", False),
    "after it is learned": (learner.Learner, "_learn", True),
    "before a version is saved": (store.Store, "save", False),
    "before a version counts": (store.Store, "add_version", False),
    "after a version counts": (store.Store, "_clean_up", False),
    "after a version is saved": (store.Store, "save", True),
    "while a row is kept waiting": (store.Store, "keep_waiting", True),
}


def kill_at(point, number):
    """Let the process end at a call."""
    owner, name, is_after = POINTS[point]
    function, calls = getattr(owner, name), [0]

    def counted(*arguments, **options):
        calls[0] += 1
        if calls[0] == number and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        value = function(*arguments, **options)
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    setattr(owner, name, counted)


def learn(folder, model):
    """Learn rows, every other one by its label; yields the place of each that was acknowledged."""
    with Service(Trained.load(model), Path(folder), keeping=Keeping(save_every=12, keep_versions=10**6)) as service:
        for place, row in enumerate(rows(N, N + SENT)):
            if place % 2:
                service.predict([{**row, "id": place}])
                service.label([{"id": place, "rich": row["rich"]}], request=f"r{place}")
            else:
                service.learn([row], request=f"r{place}")
            yield place


if __name__ == "__main__":
    folder, model, point, number = sys.argv[1:]
    kill_at(point, int(number))
    for place in learn(folder, model):
        print(place, flush=True)
