"""Events of a server: counted, and logged as JSON lines on standard error."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("tunefree.serving")
LOG.addHandler(logging.NullHandler())  # in Python it is silent unless logging is asked for
_WARNINGS = {"not saved", "not written", "not answered", "broken"}


def _count(metric: str, meaning: str) -> int:
    """A number of events, with its metric."""
    number: int = field(default=0, metadata={"metric": metric, "meaning": meaning})
    return number


@dataclass
class Counts:
    """Counts of events since the start."""

    predicted: int = _count("rows_predicted", "Rows predicted since the start.")
    learned: int = _count("rows_learned", "Rows learned since the start.")
    replayed: int = _count("rows_replayed", "Rows of the journal learned at the start.")
    unknown: int = _count("labels_unknown", "Labels whose row does not wait.")
    repeated: int = _count("requests_repeated", "Requests to learn that came again.")
    refused: int = _count("requests_refused", "Requests to learn what cannot be learned.")
    dropped_for_size: int = _count("waiting_dropped_for_size", "Rows dropped before a label, being too many.")
    dropped_for_age: int = _count("waiting_dropped_for_age", "Rows dropped before a label, being too old.")
    not_kept: int = _count("waiting_not_kept", "Rows with an id that could not be written down, and do not wait.")
    saves: int = _count("saves", "Versions saved since the start.")
    failed_saves: int = _count("saves_failed", "Versions that could not be saved.")


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
