"""What a store's journal makes of a model if it is learned without any disturbance."""

from tunefree.model_files.trained import ended
from tunefree.pool.waiting import remember
from tunefree.serving.rows import Reader, going_on
from tunefree.serving.settings import Admission
from tunefree.serving.store import Store
from tunefree.stream.notation import ColumnTypes
from tunefree.training.training import learn_batch


def check_store(folder, path):
    """The current version is, to the byte, what the events make of the first one; returns the rows of the events.

    All versions are kept, so that the journal has all events, and the store was closed.
    """
    with Store(folder, kept=10**6) as store:
        assert not list(store.unlearned())
        events = list(store.journal.events_after(0))
        _learn(store.load(1), events, path)
        assert path.read_bytes() == store.folder.joinpath("current.model").read_bytes()
        return [row for event in events for row in event.rows]


def _learn(model, events, path):
    trained = going_on(model, ColumnTypes())
    reader = Reader(Admission())
    for event in events:
        batch = reader.learned(trained, event.rows)
        remember(trained.model, event.remembered)
        learn_batch(trained, batch)
    ended(trained).save(path)
