"""Latency of HTTP: `tunefree serve` against scikit-learn's SGDClassifier behind an application of the same kind; load.

Both servers are processes of their own on this machine, Starlette on uvicorn, and one client asks them in turn over a
connection that it keeps. The model is of the census data. The peer standardises numbers and makes one-hot codes of the
rest, as fitted on the training rows, in a pipeline of pandas and scikit-learn: what one would write without tunefree.
It learns by ``partial_fit``, so that what it does for a row is comparable; its transformers stay as they are.

Under load, the pool predicts one row a request: at a fixed rate, whether or not earlier answers have come, so that
waiting counts; by clients that ask as fast as they are answered; and the first again while a stream is learned. The
server also answers ``/live`` at the fixed rate, which shows the time taken by the network, the HTTP library and the
client. The processor time is the server's for a request.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from common import TUNEFREE, parser_of
from datasets import ALL, FEW_TRAINED
from pyarrow import parquet

ROUNDS, ASKED = 7, 60  # rounds of so many requests of each kind
MANY = 1000  # rows of a large request
RATE, CLIENTS, LEARNED = 500, 32, 5000  # requests a second; clients; rows a second that are learned
SECONDS = 10.0  # of load
JSON = {"Content-Type": "application/json"}


def tables() -> tuple[Any, list[dict[str, Any]]]:
    """The training rows of the census data, and its test rows as objects."""
    table = parquet.read_table(next(known.path for known in ALL if known.name == "adult"))
    is_test = [split == "test" for split in table["split"].to_pylist()]
    table = table.drop_columns("split")
    test = table.filter(is_test).to_pylist()
    return table.filter([not held for held in is_test]), test


def peer(port: int = 0) -> None:
    """Serve scikit-learn's model."""
    import pandas as pd
    import uvicorn
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    frame = tables()[0].to_pandas()
    target = frame.pop("income")
    numbers = frame.select_dtypes("number").columns
    codes = [name for name in frame if name not in numbers]
    features = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), codes))
    model = SGDClassifier(loss="log_loss", random_state=0).fit(features.fit_transform(frame), target)

    def rows_of(sent: Any) -> pd.DataFrame:
        return pd.DataFrame(sent if isinstance(sent, list) else [sent])

    def predicted(sent: Any) -> list[dict[str, Any]]:
        odds = model.predict_proba(features.transform(rows_of(sent)))
        labels = model.classes_[odds.argmax(axis=1)].tolist()
        by_class = [dict(zip(model.classes_.tolist(), row, strict=True)) for row in odds.tolist()]
        pairs = zip(labels, by_class, strict=True)
        return [{"prediction": label, "probabilities": row} for label, row in pairs]

    def learned(sent: Any) -> dict[str, int]:
        rows = rows_of(sent)
        model.partial_fit(features.transform(rows), rows["income"])
        return {"learned": len(rows)}

    async def predict(request: Any) -> Any:
        return JSONResponse(await run_in_threadpool(predicted, json.loads(await request.body())))

    async def learn(request: Any) -> Any:
        return JSONResponse(await run_in_threadpool(learned, json.loads(await request.body())))

    routes = [Route("/predict", predict, methods=["POST"]), Route("/learn", learn, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), port=port, access_log=False)


class Server:
    """A process that serves, and a connection to it."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if match := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(match[1])
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise SystemExit(f"{' '.join(command)} did not start")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait()

    def milliseconds(self, path: str, bodies: list[bytes]) -> tuple[float, float]:
        """The median latency of requests, one after another, and the server's processor time for one.

        The first request opens the connection and does not count: uvicorn closes a connection that was idle for five
        seconds, as this one is while the others are asked.
        """
        self.connection.close()
        self._asked(path, bodies[0])
        before = self.processor_seconds()
        latencies = [self._asked(path, body) for body in bodies]
        return statistics.median(latencies), 1000.0 * (self.processor_seconds() - before) / len(bodies)

    def _asked(self, path: str, body: bytes) -> float:
        start = time.perf_counter()
        self.connection.request("POST", path, body, JSON)
        answer = self.connection.getresponse()
        body_of_answer = answer.read()
        if answer.status != 200:
            raise SystemExit(body_of_answer.decode())
        return 1000.0 * (time.perf_counter() - start)

    def processor_seconds(self) -> float:
        """Processor time of the server so far, or 0 where the system does not say."""
        path = Path(f"/proc/{self.process.pid}/stat")
        fields = path.read_text().rpartition(")")[2].split() if path.exists() else ["0"] * 13
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def message_of(request: str, body: bytes = b"") -> bytes:
    """An HTTP message; ``request`` is a method and a path."""
    head = f"{request} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


class Load:
    """Requests to a server, from this process.

    Parameters
    ----------
    port : int
    requests : list of bytes
        HTTP messages, sent in turn.
    seconds : float
    """

    def __init__(self, port: int, requests: list[bytes], seconds: float) -> None:
        self._port, self._requests, self.seconds = port, requests, seconds

    async def _ask(self, connection: Any, request: bytes) -> None:
        reader, writer = connection
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(head.decode())
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        assert length is not None
        await reader.readexactly(int(length[1]))

    async def at_rate(self, rate: int) -> list[float]:
        """Latencies in ms from when a request is due, at a rate."""
        free: asyncio.Queue[Any] = asyncio.Queue()
        for _ in range(CLIENTS):
            free.put_nowait(await asyncio.open_connection("127.0.0.1", self._port))
        latencies: list[float] = []

        async def ask(number: int, due: float) -> None:
            connection = await free.get()
            await self._ask(connection, self._requests[number % len(self._requests)])
            latencies.append(1000.0 * (time.perf_counter() - due))
            free.put_nowait(connection)

        start, tasks = time.perf_counter(), []
        for number in range(int(rate * self.seconds)):
            due = start + number / rate
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            tasks.append(asyncio.create_task(ask(number, due)))
        await asyncio.gather(*tasks)
        return latencies

    async def closed(self) -> float:
        """Requests a second of clients that ask as fast as they are answered."""
        until, counts = time.perf_counter() + self.seconds, [0] * CLIENTS

        async def client(number: int) -> None:
            connection = await asyncio.open_connection("127.0.0.1", self._port)
            while time.perf_counter() < until:
                await self._ask(connection, self._requests[counts[number] % len(self._requests)])
                counts[number] += 1

        await asyncio.gather(*(client(number) for number in range(CLIENTS)))
        return sum(counts) / self.seconds

    async def while_learning(self, rate: int, rows: list[dict[str, Any]]) -> tuple[list[float], float]:
        """Latencies at a rate while so many rows a second are learned, ten times a second; and the rows learned."""
        part = LEARNED // 10
        body = json.dumps(rows[:part]).encode()
        request = message_of("POST /learn", body)
        connection, n_learned, start = await asyncio.open_connection("127.0.0.1", self._port), 0, time.perf_counter()

        async def learn() -> None:
            nonlocal n_learned
            while True:
                await asyncio.sleep(max(start + n_learned / LEARNED - time.perf_counter(), 0.0))
                await self._ask(connection, request)
                n_learned += part

        learning = asyncio.create_task(learn())
        latencies = await self.at_rate(rate)
        seconds = time.perf_counter() - start
        learning.cancel()
        return latencies, n_learned / seconds


def load(server: Server, unlabelled: list[dict[str, Any]], rows: list[dict[str, Any]], is_quick: bool) -> None:
    """Print how a server answers under load; the client's event loop is that of the server, which costs the least."""
    import uvloop

    predictions = [message_of("POST /predict", json.dumps(row).encode()) for row in unlabelled[:1000]]
    rate, seconds = (50, 0.5) if is_quick else (RATE, SECONDS)
    asked, nothing = (Load(server.port, requests, seconds) for requests in (predictions, [message_of("GET /live")]))

    def figures(latencies: list[float]) -> str:
        median, late = statistics.median(latencies), sorted(latencies)[int(0.99 * len(latencies))]
        return f"p50 {median:7.2f} ms, p99 {late:7.2f} ms"

    for kind, requests in (("predictions", asked), ("answers that need no model", nothing)):
        before, latencies = server.processor_seconds(), uvloop.run(requests.at_rate(rate))
        processor = 1000.0 * (server.processor_seconds() - before) / len(latencies)
        print(f"{rate} {kind}/s: {figures(latencies)}, processor {processor:.2f} ms")
    before, per_second = server.processor_seconds(), uvloop.run(asked.closed())
    processor = 1000.0 * (server.processor_seconds() - before) / (per_second * asked.seconds)
    print(f"{CLIENTS} clients: {per_second:.0f} predictions/s, processor {processor:.2f} ms")
    latencies, n_learned = uvloop.run(asked.while_learning(rate, rows))
    print(f"{rate} predictions/s while {n_learned:.0f} rows/s are learned: {figures(latencies)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the servers, ask them in turn, print medians."""
    parser = parser_of(__doc__)
    parser.add_argument("--peer", action="store_true", help="only serve the peer")
    options = parser.parse_args(arguments)
    if options.peer:
        peer()
        return
    rounds, n_asked, many = (1, 2, 10) if options.quick else (ROUNDS, ASKED, MANY)
    train, test = tables()
    train = train.slice(0, FEW_TRAINED if options.quick else None)
    unlabelled = [{name: value for name, value in row.items() if name != "income"} for row in test]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        data = Path(folder) / "train.parquet"
        parquet.write_table(train, data)
        commands = {"SGDClassifier": [sys.executable, __file__, "--peer"]}
        for name, learner in (("tunefree, the pool", "pool"), ("tunefree, ScInOL2 alone", "scinol2")):
            model = str(Path(folder) / f"{len(commands)}.model")
            command = [*TUNEFREE, "train", str(data), "-t", "income", "-o", model, "-q", "--learner", learner]
            subprocess.run(command, check=True, capture_output=True)
            commands[name] = [*TUNEFREE, "serve", model, "--port", "0"]
        servers = {name: stack.enter_context(Server(command)) for name, command in commands.items()}
        kinds = {
            "one row predicted": ("/predict", [json.dumps(row).encode() for row in unlabelled[:n_asked]]),
            "one row learned": ("/learn", [json.dumps(row).encode() for row in test[:n_asked]]),
            f"{many:,} rows predicted": ("/predict", [json.dumps(unlabelled[:many]).encode()] * 3),
            f"{many:,} rows learned": ("/learn", [json.dumps(test[:many]).encode()] * 3),
        }
        times: dict[tuple[str, str], list[tuple[float, float]]] = {
            (kind, name): [] for kind in kinds for name in servers
        }
        for number in range(rounds + 1):  # the first is to warm up
            for kind, asked in kinds.items():
                for name, server in servers.items():
                    milliseconds = server.milliseconds(*asked)
                    if number:
                        times[kind, name].append(milliseconds)
        load(servers["tunefree, the pool"], unlabelled, test, options.quick)
    for (kind, name), pairs in times.items():
        latency, processor = (statistics.median(column) for column in zip(*pairs, strict=True))
        first = statistics.median(pair[0] for pair in times[kind, "SGDClassifier"])
        spread = f"({min(pairs)[0]:.2f} .. {max(pairs)[0]:.2f})"
        figures = f"{latency:8.2f} ms  {spread:<20} ratio {latency / first:5.2f}  processor {processor:7.2f} ms"
        print(f"{kind:<24}{name:<28}{figures}")


if __name__ == "__main__":
    main()
