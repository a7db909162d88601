"""What a store's journal makes of its first version if it is learned without any disturbance."""

from __future__ import annotations

from dataclasses import replace

from tunefree.model_files.trained import continued, ended
from tunefree.pool.published import remember
from tunefree.serving.rows import Reader
from tunefree.serving.settings import Admission
from tunefree.serving.store import Store
from tunefree.stream.file_notation import as_written
from tunefree.stream.notation import ColumnTypes
from tunefree.training.training import learn_batch


def check_store(folder, path):
    """The current version is, to the byte, what the events make of the first one; returns the rows of the events.

    All versions are kept, so that the journal has all events, and the store was closed.
    """
    with Store(folder, kept=10**6) as store:
        assert not list(store.unlearned())
        trained = continued(store.load(1))
        trained = replace(trained, encoder=as_written(trained.encoder, None, ColumnTypes()))
        reader = Reader(trained, Admission())
        events = list(store.journal.events_after(0))
        for event in events:
            batch = reader.learned(trained, event.rows)
            remember(trained.model, event.remembered)
            learn_batch(trained, batch)
        ended(trained).save(path)
        assert path.read_bytes() == store.folder.joinpath("current.model").read_bytes()
        return [row for event in events for row in event.rows]
