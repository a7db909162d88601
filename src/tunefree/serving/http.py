"""The HTTP API of a served model (extra ``serve``): requests and answers are JSON, handled by Starlette and uvicorn."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import re
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, NamedTuple

import uvicorn
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tunefree.core.errors import ModelError, TunefreeError
from tunefree.core.parameters import as_options
from tunefree.model_files.plan import NOTATIONS
from tunefree.serving import learner
from tunefree.serving.events import log
from tunefree.serving.rows import MAX_NAME_LENGTH
from tunefree.serving.service import Service
from tunefree.serving.settings import Limits
from tunefree.serving.store import Row, StoreError, as_text
from tunefree.training.stopping import handling
from tunefree.workflows.output_columns import CONFORMAL, PLAIN, OutputColumns

SWITCH_INTERVAL = 0.0001  # thread switch interval in seconds; a prediction releases the GIL about forty times
MAX_INLINE_BYTES = 1 << 16  # bytes; larger requests are parsed in another thread
MAX_INLINE_ROWS = 100  # rows; longer answers are serialised in another thread
MAX_EXPLAINED = 100  # rows of a request
ADDRESS = re.compile(r"[\d.]+|\[.*\]")  # IPv4 or IPv6 in a URL
METRICS_TYPE = "text/plain; version=0.0.4"
IDEMPOTENCY_KEY = "Idempotency-Key"  # header with the name of a request
CONFORMAL_PARAMETERS = (*CONFORMAL, "conditional")  # query parameters that add columns to predictions
LATENCY_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # seconds

# Entries of :meth:`tunefree.serving.service.Service.state` that are also Prometheus gauges.
GAUGES: tuple[str, ...] = ("rows", "rows_published", "unsaved", "version", "waiting", "learn_queue", "predict_queue")
GAUGES += ("progressive_loss", "recent_loss", "drift_count", "values_ignored")
Answer = tuple[int, Any]


class Application:
    """The ASGI application of a service."""

    def __init__(self, service: Service, limits: Limits) -> None:
        self.service, self._limits, self._token = service, limits, limits.token()
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        described = "tunefree_request_seconds", "From a request to its answer.", ("path", "status")
        self._latency = Histogram(*described, buckets=LATENCY_BUCKETS, registry=self.registry)
        self._hosts = set(map(str.lower, ("localhost", limits.host, *limits.allow_host)))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; all errors become responses. Predictions occupy no thread that waits for learning."""
        request, start, headers = Request(scope, receive), time.perf_counter(), dict[str, str]()
        method, path = "GET" if scope["method"] == "HEAD" else scope["method"], scope["path"]
        try:
            route = ROUTES.get((method, path))
            if route is None:
                raise _route_error(scope["method"], path)
            self._admit(request, route)
            status, body = await route.answer(self, request)
        except ClientDisconnect:
            status, body = 499, {"error": "the client has gone"}
        except HTTPException as error:
            status, body, headers = error.status_code, {"error": error.detail}, dict(error.headers or {})
        except StoreError as error:
            status, body, headers = 503, {"error": _http_words(error)}, {"Retry-After": "5"}
        except TunefreeError as error:
            status, body = 422, {"error": _http_words(error)}
        except Exception as error:
            log("not answered", path=path, problem=repr(error))
            status, body = 500, {"error": "the server failed; its log says how"}
        if status not in (404, 405):  # unknown paths would add labels without limit
            self._latency.labels(path, status).observe(time.perf_counter() - start)
        is_long = isinstance(body, list) and len(body) > MAX_INLINE_ROWS
        if not isinstance(body, bytes):
            headers = {"content-type": "application/json"} | headers
            body = await run_in_threadpool(as_text, body) if is_long else json.dumps(body)
        await Response(body, status, headers, METRICS_TYPE)(scope, receive, send)

    def collect(self) -> Iterator[Any]:
        """The metrics of the service for a Prometheus registry; their names begin with ``tunefree_``."""
        for name, count in asdict(self.service.counts).items():
            yield CounterMetricFamily(f"tunefree_{name}", "Since the start.", count)
        state = self.service.state()
        gauges = {name: math.nan if state[name] is None else state[name] for name in GAUGES}
        gauges |= {"can_learn": state["learn_failure"] is None, "can_save": state["save_failure"] is None}
        for name, number in gauges.items():
            yield GaugeMetricFamily(f"tunefree_{name}", "As in /model.", number)
        model = InfoMetricFamily("tunefree_model", "The model that is served.")
        model.add_metric([], {name: str(state[name]) for name in ("task", "target")})
        yield model

    def _admit(self, request: Request, route: Route) -> None:
        """Raise an error if a request is for another host, is not JSON, or lacks the token.

        Web pages of other origins can neither send JSON nor read answers, since the server sends no CORS headers. Names
        of other hosts may resolve to this server, but addresses do not.
        """
        host = request.headers.get("host", "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name not in self._hosts and not ADDRESS.fullmatch(name):
            problem = f"the server is not asked by the name {name!r}; ask by another, or pass --allow-host {name}"
            raise HTTPException(403, problem)
        if request.scope["query_string"]:
            names = [name for name, _ in request.query_params.multi_items()]
            _check_parameters(request.scope["path"], names, route.query)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "the request is compressed; send it uncompressed, without Content-Encoding")
        if request.method == "POST" and kind != "application/json":
            raise HTTPException(415, "send JSON, with the header Content-Type: application/json (as curl --json does)")
        if route.needs_token:
            self._check_token(request)

    def _check_token(self, request: Request, why: str = "") -> None:
        """Raise an error if the server has a token and the request lacks it."""
        scheme, _, sent = request.headers.get("authorization", "").encode("utf-8", "surrogateescape").partition(b" ")
        is_right = scheme.lower() == b"bearer" and secrets.compare_digest(sent, (self._token or "").encode())
        if self._token is not None and not is_right:
            raise HTTPException(401, f"{why}send the token of the server, as Authorization: Bearer TOKEN")

    async def predict(self, request: Request) -> Answer:
        """Predict rows. A row with an id is stored, in place of any earlier row with this id, and needs the token."""
        rows, is_one = await self._rows_of(request)
        if any(row.get(id_name := self.service.admission.id) is not None for row in rows):
            self._check_token(request, f"rows with {id_name!r} wait for their labels: leave it out, or ")
        layout = asked_for(request.query_params) if request.scope["query_string"] else PLAIN
        answers = await self.service.answer(rows, layout)
        return 200, answers[0] if is_one else answers

    async def explain(self, request: Request) -> Answer:
        rows, is_one = await self._rows_of(request)
        if len(rows) > MAX_EXPLAINED:
            raise HTTPException(413, f"at most {MAX_EXPLAINED} rows are explained at a time")
        answers = await asyncio.wrap_future(self.service.explained(rows, request.query_params.get("class")))
        return 200, answers[0] if is_one else answers

    async def learn(self, request: Request) -> Answer:
        """Learn rows or labels."""
        rows, _ = await self._rows_of(request)
        if (name := request.headers.get(IDEMPOTENCY_KEY)) == "":
            problem = f"the header {IDEMPOTENCY_KEY} is empty; give each request a name of its own, or leave it out"
            raise HTTPException(400, problem)
        asked = learner.Request(rows, request.scope["path"] == "/labels", name)
        return 200, await asyncio.wrap_future(self.service.learner.submit(asked))

    async def change(self, request: Request) -> Answer:
        """Replace the served model, or save it."""
        service, (wanted, is_one) = self.service, await self._rows_of(request)
        changes: dict[str, tuple[type, Callable[..., Any]]] = {
            "roll_back_to": (int, service.roll_back),
            "take": (str, service.take),
            "save": (bool, lambda _: service.save()),
        }
        name, value = next(iter(wanted[0].items()), ("", None))
        kind, change = changes.get(name, (None, print))
        if not is_one or len(wanted[0]) > 1 or type(value) is not kind or value is False:
            raise HTTPException(400, 'send one of {"roll_back_to": NUMBER}, {"take": FILE}, {"save": true}')
        await run_in_threadpool(change, value)
        return 200, {"version": await run_in_threadpool(lambda: service.store.versions[-1].number)}

    async def live(self, request: Request) -> Answer:
        """Answer in the event loop, so also while all threads are busy."""
        return 200, {"status": "ok"}

    async def ready(self, request: Request) -> Answer:
        problems = self.service.problems()
        return (503, {"status": "; ".join(problems)}) if problems else (200, {"status": "ok"})

    async def _rows_of(self, request: Request) -> tuple[list[Row], bool]:
        """The rows of a request, and whether it is one row rather than an array."""
        body, limit = bytearray(), self._limits.max_body
        async for piece in request.stream():
            body += piece
            if len(body) > limit:
                raise HTTPException(413, f"a request may have at most {limit} bytes; send fewer rows at a time")
        sent = _parsed(body) if len(body) <= MAX_INLINE_BYTES else await run_in_threadpool(_parsed, body)
        rows = [sent] if isinstance(sent, dict) else sent
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise HTTPException(400, "send an object (a row), or an array of objects that is not empty")
        if len(rows) > self._limits.max_rows:
            raise HTTPException(413, f"a request may have at most {self._limits.max_rows} rows; send fewer at a time")
        return rows, isinstance(sent, dict)


def _endpoint(function: Callable[[Application], Any]) -> Callable[[Application, Request], Awaitable[Answer]]:
    """An endpoint that answers with the result of a function, which runs in another thread."""

    async def answer(application: Application, request: Request) -> Answer:
        return 200, await run_in_threadpool(function, application)

    return answer


class Route(NamedTuple):
    """The handler of a method and path."""

    answer: Callable[[Application, Request], Awaitable[Answer]]
    query: tuple[str, ...] = ()  # names of query parameters
    needs_token: bool = False


ROUTES = {
    ("POST", "/predict"): Route(Application.predict, CONFORMAL_PARAMETERS),
    ("POST", "/explain"): Route(Application.explain, ("class",)),
    ("POST", "/learn"): Route(Application.learn, needs_token=True),
    ("POST", "/labels"): Route(Application.learn, needs_token=True),
    ("POST", "/versions"): Route(Application.change, needs_token=True),
    ("GET", "/versions"): Route(_endpoint(lambda app: [version._asdict() for version in app.service.store.versions])),
    ("GET", "/model"): Route(_endpoint(lambda app: app.service.state())),
    ("GET", "/live"): Route(Application.live),
    ("GET", "/ready"): Route(Application.ready),
    ("GET", "/metrics"): Route(_endpoint(lambda app: generate_latest(app.registry))),
}


def _route_error(method: str, path: str) -> HTTPException:
    if allowed := ", ".join(answered for answered, other in ROUTES if other == path):
        return HTTPException(405, f"{method} {path}: this path answers to {allowed}", {"Allow": allowed})
    paths = ", ".join(dict.fromkeys(other for _, other in ROUTES))
    return HTTPException(404, f"{method} {path}: there is no such path; there are {paths}")


def _check_parameters(path: str, names: list[str], known: tuple[str, ...]) -> None:
    """Raise a ModelError if a query parameter is unknown or repeated."""
    for name in names:
        if name not in known:
            hint = f"the parameters are {', '.join(known)}" if known else "it has no parameters"
            raise ModelError(f"?{name[:MAX_NAME_LENGTH]} is no parameter of {path}; {hint}")
        if names.count(name) > 1:
            raise ModelError(f"?{name} is there twice; send all its numbers at once, with commas between them")


def asked_for(parameters: Mapping[str, str]) -> OutputColumns:
    """The output columns selected by a query; a ModelError if a value is invalid."""
    parts: dict[str, Any] = {}
    for name, text in parameters.items():
        try:
            parts[name] = tuple(map(float, text.split(","))) if name in CONFORMAL else text
        except ValueError:
            raise ModelError(f"`{name}` takes numbers with commas between them, not {text!r}") from None
    return OutputColumns(**parts)


def _http_words(error: TunefreeError) -> str:
    """The message of an error, with parameters named as in a query, or else as options of the command line.

    >>> _http_words(ModelError("`set` is for classes; `decimal` says how numbers are written"))
    '?set is for classes; --decimal of `tunefree train` says how numbers are written'
    """

    def written(name: str, words: str) -> str:
        if name in NOTATIONS:
            return f"{words} of `tunefree train`"
        return "=".join([f"?{name}", *words.split(" ", 1)[1:]]) if name in CONFORMAL_PARAMETERS else words

    return as_options(str(error), written)


def _parsed(body: bytearray) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        if type(error) is ValueError:
            raise HTTPException(400, "a number has too many digits; send null where it is not known") from None
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise HTTPException(400, f"the request is not JSON{place}; send an object or an array of objects") from None


def _refuse_constant(name: str) -> None:
    raise HTTPException(400, f"the request is not JSON: {name} is no number; send null where it is not known")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dict without duplicate keys. As this hook is Python code, other threads can run after each object."""
    read = dict(pairs)
    if len(read) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise HTTPException(400, f"an object has the name {name[:MAX_NAME_LENGTH]!r} twice; leave one of them out")
    return read


class _Server(uvicorn.Server):
    """A uvicorn server that ends with status 0 at any of SIGNALS."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Handle signals as requests to shut down."""
        return handling(self.handle_exit, lambda: self.should_exit)


def _bound(limits: Limits) -> socket.socket:
    """A listening socket; a ModelError if the address or the port is unavailable."""
    family = socket.AF_INET6 if ":" in limits.host else socket.AF_INET
    try:
        return socket.create_server((limits.host, limits.port), family=family, backlog=2048)
    except OSError as error:
        problem = f"`port={limits.port}`: {limits.host} cannot be listened on ({error.strerror or error})"
        raise ModelError(f"{problem}; name another `port`, or 0 for any that is free") from None


def serve(service: Service, limits: Limits) -> None:
    """Serve until a signal arrives, and close the service; a ModelError if the port or the token is unusable."""
    with service, _bound(limits) as listening:
        sys.setswitchinterval(SWITCH_INTERVAL)
        gc.freeze()  # collecting garbage among the present objects would stop all threads for 60 ms or more
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        log("started", address=address, rows=service.learner.published.rows, version=service.store.versions[-1].number)
        config = uvicorn.Config(
            Application(service, limits),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            http="httptools",
            ws="none",
            timeout_keep_alive=limits.idle_timeout,  # type: ignore[arg-type]
            timeout_graceful_shutdown=limits.shutdown_timeout,  # type: ignore[arg-type]
            limit_concurrency=limits.max_connections,
        )
        _Server(config).run([listening])
    is_saved = service.store.folder is not None and service.learner.failure is None
    log("ended", version_saved=is_saved, problem=service.learner.failure)
