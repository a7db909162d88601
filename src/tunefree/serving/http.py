"""The HTTP face of a service: JSON in, JSON out. Starlette and uvicorn do the rest (extra ``serve``)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tunefree.core.errors import TunefreeError
from tunefree.serving.service import Row, Service

LARGEST = 1 << 24  # bytes of a request


class _RequestError(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def application(service: Service) -> Starlette:
    """The application that answers for a service.

    Parameters
    ----------
    service : Service

    Returns
    -------
    starlette.applications.Starlette
        ``POST /predict`` and ``POST /learn`` take a row or an array of rows, ``POST /labels`` an id with a label or an
        array of them; ``GET /model`` and ``GET /health`` tell how things are. The model is saved on shutdown.
    """

    async def predict(request: Request) -> JSONResponse:
        rows, is_one = await _rows_of(request)
        answers = await run_in_threadpool(service.predict, rows)
        return JSONResponse(answers[0] if is_one else answers)

    async def learn(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(service.learn, (await _rows_of(request))[0]))

    async def labels(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(service.label, (await _rows_of(request))[0]))

    async def model(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(service.state))

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.save)

    posts: dict[str, Callable[[Request], Any]] = {"/predict": predict, "/learn": learn, "/labels": labels}
    routes = [Route(path, answer, methods=["POST"]) for path, answer in posts.items()]
    routes += [Route("/model", model), Route("/health", health)]
    refusals: Any = {_RequestError: _not_taken, TunefreeError: _unusable}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=refusals)


async def _rows_of(request: Request) -> tuple[list[Row], bool]:
    """The rows of a request, and whether it is one row rather than an array."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST:
            raise _RequestError(413, f"a request may have at most {LARGEST} bytes; send fewer rows at a time")
    try:
        sent = json.loads(bytes(body), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _RequestError(400, "the request is not JSON; send an object or an array of objects") from None
    rows = [sent] if isinstance(sent, dict) else sent
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise _RequestError(400, "send an object (a row), or an array of objects that is not empty")
    return rows, isinstance(sent, dict)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


async def _not_taken(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, getattr(error, "status", 400))


async def _unusable(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 422)
