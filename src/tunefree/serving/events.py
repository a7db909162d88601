"""Events of a server: counted, and logged as JSON lines on standard error."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("tunefree.serving")
LOG.addHandler(logging.NullHandler())  # in Python it is silent unless logging is asked for
_WARNINGS = {"not saved", "not written", "not answered", "broken"}


@dataclass
class Counts:
    """Counts of events since the start, under the names of their metrics."""

    rows_predicted: int = 0
    rows_learned: int = 0
    rows_replayed: int = 0  # of the journal, learned at the start
    labels_unknown: int = 0  # whose row does not wait
    requests_repeated: int = 0  # to learn
    requests_refused: int = 0  # to learn
    waiting_dropped_for_size: int = 0  # rows that waited for labels and were too many
    waiting_dropped_for_age: int = 0
    waiting_not_kept: int = 0  # rows with an id that could not be written down
    saves: int = 0
    saves_failed: int = 0


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "said", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_json() -> None:
    """Set up logging of this package and of uvicorn as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    for name in (LOG.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def tell(event: str, **said: Any) -> None:
    """Log an event with details."""
    LOG.log(logging.WARNING if event in _WARNINGS else logging.INFO, event, extra={"said": said})
