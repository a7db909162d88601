"""The report of a model while it learns: copies of the model are made when somebody looks, and written up beside it.

A copy is made between two batches, as a checkpoint is, so the model ends with the same bytes. It is made when a page
has been asked for, and not before ten times as long as the last copy took have passed. The page is made of the copy,
in another thread. What goes wrong with it is said on the page.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np

from tunefree.model_files.trained import Trained
from tunefree.report import page
from tunefree.report.document import Document, Note, Section
from tunefree.training.watching import Watcher

REFRESH = 5  # seconds after which a page is loaded again
REST = 10.0  # times as long as the last copy took until the next one may be made
FOOTER = "the model is still learning; this page is loaded again every few seconds, and ends with the training"


class LiveReport(Watcher):
    """A watcher from which the report can be had at any time, in any thread."""

    def __init__(self) -> None:
        self._wanted, self._lock = threading.Event(), threading.Lock()
        self._next = 0.0  # the time from which on another copy may be made
        self._copy: Trained | None = None
        self._html = page.html(_plain("training has begun", "No rows have been learned yet."))

    def wants_copy(self) -> bool:
        """Whether a page was asked for since the last copy."""
        return self._wanted.is_set() and time.monotonic() >= self._next

    def copy(self, trained: Trained, encoder: Any) -> None:
        """Keep the model as it is now, with the saved state of its encoder."""
        started = time.monotonic()
        parts, header = trained.parts(encoder)
        header |= {name: described for name, (_, described) in parts.items()}
        arrays = {name: {key: np.array(array) for key, array in of.items()} for name, (of, _) in parts.items()}
        self._copy = Trained.restore(arrays, json.loads(json.dumps(header)))
        self._wanted.clear()
        self._next = time.monotonic() + REST * (time.monotonic() - started)

    def html(self) -> str:
        """The page, of the last copy; another copy is asked for."""
        with self._lock:
            copy, self._copy = self._copy, None
            self._wanted.set()
            if copy is not None:
                self._html = _page_of(copy)
            return self._html


def _page_of(copy: Trained) -> str:
    try:
        document = page.report(copy)
    except Exception as error:  # whatever it is, training goes on
        rows = copy.progress.progressive[0].rows
        document = _plain("training goes on", f"{rows:,} rows are learned. There is no report of them yet: {error}")
    return page.html(document._replace(refresh=REFRESH, footer=FOOTER))


def _plain(title: str, text: str) -> Document:
    section = Section("state", "State", [Note(text)])
    return Document(f"tunefree: {title}", f"Live report: {title}", [], [section], FOOTER, 1)
