"""Events of a server: counters, and log records as JSON lines on standard error."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("tunefree.serving")
LOG.addHandler(logging.NullHandler())  # silent in Python unless the user configures logging


@dataclass
class Counts:
    """Counts of events since the start; the field names are the names of the metrics."""

    rows_predicted: int = 0
    rows_learned: int = 0
    rows_replayed: int = 0  # rows of the journal that were learned at startup
    labels_unknown: int = 0  # labels without a waiting row
    requests_repeated: int = 0  # learning requests that were sent again
    requests_refused: int = 0  # invalid learning requests
    waiting_dropped_for_size: int = 0  # waiting rows above the limit
    waiting_dropped_for_age: int = 0
    waiting_not_kept: int = 0  # rows with an id that could not be stored
    saves: int = 0
    saves_failed: int = 0


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "details", {})
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


def log(event: str, **details: Any) -> None:
    """Log an event with its details, as a warning if one of them is a ``problem``."""
    LOG.log(logging.WARNING if details.get("problem") else logging.INFO, event, extra={"details": details})
