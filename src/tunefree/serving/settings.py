"""Settings of a model in operation."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from tunefree.core.errors import ModelError
from tunefree.core.parameters import Parameters, parameter

REFUSE, IGNORE = "refuse", "ignore"
ROWS, KEEPING, SERVER = "Rows", "What is kept", "The server"  # panels of the help
POWER, PROCESS = "power", "process"
FEWEST_LETTERS = 16  # of a token
# Parts of a store.
JOURNAL, VERSIONS, CURRENT, INCOMING = "journal.sqlite", "versions", "current.model", "incoming"


def is_store(path: Path) -> bool:
    """Whether a path is a store (:mod:`tunefree.serving.store`)."""
    return (path / JOURNAL).is_file()


@dataclass(frozen=True)
class Admission(Parameters):
    """Settings on the rows that are accepted."""

    id: str = parameter("id", "The name under which rows have their id.", ROWS, metavar="COL")
    unknown_columns: str = parameter(
        REFUSE,
        "What to do with a column that the model does not know: refuse the row, or ignore the column and count it.",
        ROWS,
        choices=(REFUSE, IGNORE),
    )
    new_classes: bool = parameter(
        False, "Learn labels that the model does not know; by default such rows are refused.", ROWS
    )


@dataclass(frozen=True)
class Keeping(Parameters):
    """Settings of the store: how long rows and versions are kept, and when the model is saved."""

    remember: int = parameter(100_000, "Rows that wait for their labels; the oldest are dropped.", KEEPING, low=0)
    label_days: float = parameter(
        30.0, "Days that rows wait for their labels, while it runs.", KEEPING, low=0.0, metavar="DAYS"
    )
    save_every: int = parameter(10_000, "Rows learned between two versions.", KEEPING, low=1)
    keep_versions: int = parameter(5, "Versions to keep, with the rows since the oldest.", KEEPING, low=1)
    durability: str = parameter(
        POWER,
        "What acknowledged rows survive: the loss of power, or only the end of the process, which is faster.",
        KEEPING,
        choices=(POWER, PROCESS),
    )


@dataclass(frozen=True)
class Limits(Parameters):
    """Who may ask, and how much."""

    host: str = parameter("127.0.0.1", "The address to listen on; by default this machine only.", SERVER)
    port: int = parameter(8000, "0 for any that is free.", SERVER, low=0, high=65535, metavar="PORT")
    token_file: Path | None = parameter(
        None, "Holds the token that a request has to have which changes what is served.", SERVER, metavar="FILE"
    )
    allow_host: tuple[str, ...] = parameter((), "A name by which the server is asked.", SERVER, metavar="NAME")
    max_body: int = parameter(4 << 20, "Bytes of a request.", SERVER, low=1, metavar="BYTES")
    max_rows: int = parameter(10_000, "Rows of a request.", SERVER, low=1)
    max_connections: int = parameter(1000, "Connections at a time.", SERVER, low=1)
    idle_timeout: float = parameter(60.0, "Seconds that a connection may be idle.", SERVER, low=0.0, metavar="SECONDS")
    shutdown_timeout: float = parameter(
        10.0, "Seconds that requests have left when the server is ended.", SERVER, low=0.0, metavar="SECONDS"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token_file is None and not _is_loopback(self.host):
            remedy = "name a file with a token by `token_file`"
            raise ModelError(f"`host={self.host!r}` lets other machines in; {remedy}")

    def token(self) -> str | None:
        """The token, None if none is needed; a ModelError if the file cannot be read, or holds too few letters."""
        if self.token_file is None:
            return None
        try:
            token = self.token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{self.token_file}: the token cannot be read ({error})") from None
        if len(token) < FEWEST_LETTERS or not token.isascii() or not token.isprintable():
            remedy = "make one by `openssl rand -hex 32`"
            raise ModelError(f"{self.token_file}: a token has at least {FEWEST_LETTERS} letters on one line; {remedy}")
        return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
