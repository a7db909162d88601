"""The live report on the loopback address. Starlette and uvicorn do the rest (extra ``live``).

Whoever knows the address sees the model, so it holds a token, compared in constant time. Requests that name another
host are refused: a page of a stranger could have its own name resolved to this machine (DNS rebinding). There is one
path, and it is only read. The page loads nothing and runs no script.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tunefree.core.errors import ModelError
from tunefree.report.live import LiveReport

LOOPBACK = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def application(report: LiveReport, token: str) -> Starlette:
    """The application that shows a report to those who know the token."""

    async def show(request: Request) -> HTMLResponse:
        presented = request.path_params["token"].encode("utf-8", "surrogateescape")
        if not secrets.compare_digest(presented, token.encode()):
            raise HTTPException(404)
        return HTMLResponse(await run_in_threadpool(report.html), headers=HEADERS)

    route = Route("/{token}", show)
    route.methods = {"GET"}  # and not HEAD
    hosts: Any = Middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"], www_redirect=False)
    app = Starlette(routes=[route], middleware=[hosts])
    app.router.redirect_slashes = False
    return app


class LiveServer:
    """Serves a live report until it is closed.

    ``port``: 0 for any that is free.
    Raises a ModelError if the port is in use or may not be taken.
    """

    def __init__(self, report: LiveReport, port: int) -> None:
        token = secrets.token_urlsafe(24)
        try:
            self._socket = socket.create_server((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            remedy = "name another port, or 0 for any that is free"
            raise ModelError(f"`live={port}`: the port cannot be taken ({reason}); {remedy}") from None
        self.address = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}/{token}"
        app = application(report, token)
        quiet = {"log_config": None, "access_log": False, "lifespan": "off", "server_header": False}
        config = uvicorn.Config(app, **quiet, timeout_graceful_shutdown=1)  # type: ignore[arg-type]
        self._server = uvicorn.Server(config)
        arguments: Any = {"sockets": [self._socket]}
        self._thread = threading.Thread(target=self._server.run, kwargs=arguments, name="tunefree-live", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server; nobody waits for those who look."""
        self._server.should_exit = True
        self._thread.join(timeout=3.0)
        self._socket.close()
