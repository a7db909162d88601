"""Settings of a model in operation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tunefree.core.errors import ModelError
from tunefree.core.parameters import Parameters, parameter

REFUSE, IGNORE = "refuse", "ignore"
ROWS, KEEPING, SERVER = "Rows", "Storage", "Server"  # panels of the help
POWER, PROCESS = "power", "process"
LOOPBACK = re.compile(r"localhost|127\.[\d.]+|::1")  # hosts that are this machine
MIN_LETTERS = 16  # minimum length of a token
# Files and folders of a store.
JOURNAL, VERSIONS, CURRENT, INCOMING = "journal.sqlite", "versions", "current.model", "incoming"


def is_store(path: Path) -> bool:
    """Whether a folder is a store (:mod:`tunefree.serving.store`)."""
    return (path / JOURNAL).is_file()


@dataclass(frozen=True)
class Admission(Parameters):
    """Settings for accepting rows."""

    id: str = parameter("id", "Name of the field with the id of a row.", ROWS, metavar="COL")
    unknown_columns: str = parameter(
        REFUSE,
        "Whether to refuse a row with a column unknown to the model, or to ignore the column and count its values.",
        ROWS,
        choices=(REFUSE, IGNORE),
    )
    new_classes: bool = parameter(
        False, "Learn labels unknown to the model as new classes; by default such rows are refused.", ROWS
    )


@dataclass(frozen=True)
class Keeping(Parameters):
    """Settings of the store: how long rows and versions are kept, and when the model is saved."""

    remember: int = parameter(100_000, "Maximum rows waiting for labels; the oldest are dropped.", KEEPING, low=0)
    label_days: float = parameter(
        30.0, "Days for which rows wait for their labels while the server runs.", KEEPING, low=0.0, metavar="DAYS"
    )
    save_every: int = parameter(10_000, "Number of learned rows after which a version is saved.", KEEPING, low=1)
    keep_versions: int = parameter(5, "Number of versions to keep, with the rows since the oldest.", KEEPING, low=1)
    durability: str = parameter(
        POWER,
        "Whether acknowledged rows survive a loss of power, or only the end of the process, which is faster.",
        KEEPING,
        choices=(POWER, PROCESS),
    )


@dataclass(frozen=True)
class Limits(Parameters):
    """Access to the server, and limits of requests."""

    host: str = parameter("127.0.0.1", "Address to listen on; the default admits this machine only.", SERVER)
    port: int = parameter(8000, "Port to listen on; 0 for any free port.", SERVER, low=0, high=65535, metavar="PORT")
    token_file: Path | None = parameter(
        None, "File with the token that requests need to change the model or to store rows.", SERVER, metavar="FILE"
    )
    allow_host: tuple[str, ...] = parameter((), "Further host name of the server.", SERVER, metavar="NAME")
    max_body: int = parameter(4 << 20, "Maximum size of a request in bytes.", SERVER, low=1, metavar="BYTES")
    max_rows: int = parameter(10_000, "Maximum number of rows in a request.", SERVER, low=1)
    max_connections: int = parameter(1000, "Maximum number of open connections.", SERVER, low=1)
    idle_timeout: float = parameter(60.0, "Seconds to keep an idle connection.", SERVER, low=0.0, metavar="SECONDS")
    shutdown_timeout: float = parameter(
        10.0, "Seconds to wait for open requests at shutdown.", SERVER, low=0.0, metavar="SECONDS"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token_file is None and not LOOPBACK.fullmatch(self.host):
            remedy = "name a file with a token by `token_file`"
            raise ModelError(f"`host={self.host!r}` lets other machines in; {remedy}")

    def token(self) -> str | None:
        """The token, or None without a token file; a ModelError if the file is unreadable or the token invalid."""
        if self.token_file is None:
            return None
        try:
            token = self.token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{self.token_file}: the token cannot be read ({error})") from None
        if len(token) < MIN_LETTERS or not token.isascii() or not token.isprintable():
            remedy = "make one by `openssl rand -hex 32`"
            raise ModelError(f"{self.token_file}: a token has at least {MIN_LETTERS} letters on one line; {remedy}")
        return token
