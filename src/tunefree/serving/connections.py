"""Connections with limits, and a server that ends cleanly: what uvicorn leaves open.

uvicorn gives a client as long as it likes to send a request and to take an answer, and the header any length. A
connection here is aborted when its request does not come, or its answer is not taken, in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tunefree.core.errors import ModelError
from tunefree.serving.settings import Limits
from tunefree.training.stopping import SIGNALS


class Refusals:
    """Connections that were ended because of a limit."""

    def __init__(self) -> None:
        self.too_many = self.too_slow = self.too_large = 0


class Connection(HttpToolsProtocol):
    """A connection; at most one time limit runs for what comes in, and one for what goes out."""

    limits: Limits
    refusals: Refusals
    _reading: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None
    _n_beside = 0  # bytes since a header or a piece of a body: of a header, or of the trailers behind a body

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self.refusals.too_many += 1
            self._end(b"503 Service Unavailable")
            return
        self._reading = self.loop.call_later(self.limits.idle_timeout, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_reading()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._n_beside += len(data)
        super().data_received(data)
        if self._n_beside > self.limits.max_header:
            self.refusals.too_large += 1
            self._end(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        self._stop_reading()
        self._reading = self.loop.call_later(self.limits.read_timeout, self._give_up)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._n_beside = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._n_beside = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._n_beside = 0
        self._stop_reading()
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self.limits.read_timeout, self._give_up)

    def resume_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():  # both limits may end at once
            self.refusals.too_slow += 1
            self.transport.abort()

    def _end(self, status: bytes) -> None:
        self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()


def protocol_of(limits: Limits, refusals: Refusals) -> type[Connection]:
    """The class of connections with some limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits, "refusals": refusals})


class Server(uvicorn.Server):
    """A server that any of the usual signals ends, with status 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals as requests to end."""
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():  # a further signal must not disturb that what was learned is saved
                signal.signal(number, signal.SIG_IGN if self.should_exit and number != signal.SIGINT else handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; what does not end in time is aborted."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def bound(limits: Limits) -> socket.socket:
    """A socket that listens.

    Raises
    ------
    ModelError
        If the address or the port cannot be had.
    """
    family = socket.AF_INET6 if ":" in limits.host else socket.AF_INET
    try:
        return socket.create_server((limits.host, limits.port), family=family, backlog=2048)
    except OSError as error:
        problem = f"`port={limits.port}`: {limits.host} cannot be listened on ({error.strerror or error})"
        raise ModelError(f"{problem}; name another `port`, or 0 for any that is free") from None
