"""A minute of all at once: the process is killed, the disk is full, clients are slow or send nonsense.

No row that was acknowledged is lost or learned twice, and an undisturbed learning of the journal makes the same model.
"""

from __future__ import annotations

import http.client
import itertools
import random
import resource
import signal
import socket
import threading
import time

import pytest

from tests.serving.model import Server
from tests.serving.undisturbed import check_store

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")
pytest.importorskip("httptools")

SECONDS = 45
NONSENSE = (b"", b"{", b"[1]", b'{"age": "old", "job": null, "rich": "no"}', b"\xff" * 100, b'{"age": 1e999}')


class Chaos:
    """Clients, and a server that they ask until it ends."""

    def __init__(self, file, folder):
        self.arguments = (file, "-o", folder, "--keep-versions", 1_000_000, "--save-every", 300, "--read-timeout", 2)
        self.server, self.is_over = Server(*self.arguments), False
        self.sent, self.lock = itertools.count(), threading.Lock()
        self.acknowledged = {}
        self.failures = []

    def ask(self, path, body, **headers):
        """The answer of whatever server there is by then; None if that takes too long."""
        for _ in range(600):
            try:
                status, answer = self.server.ask("POST", path, body, **headers)
            except (OSError, http.client.HTTPException, ValueError):
                status = 0
            if status not in (0, 503):
                return status, answer
            time.sleep(0.1)
        return 0, None

    def honest(self):
        """Rows that are learned at once, or predicted and labelled later, each in a request with a name."""
        while not self.is_over:
            numbers = [next(self.sent) for _ in range(random.randint(1, 20))]
            rows = [{"age": float(number), "job": f"j{number % 7}", "rich": "no"} for number in numbers]
            name = f"r{numbers[0]}"
            if numbers[0] % 2:
                status, answer = self.ask("/learn", rows, Idempotency_Key=name)
            else:
                for row, number in zip(rows, numbers, strict=True):
                    row["id"] = number
                while not self.is_kept(self.ask("/predict", rows)):
                    time.sleep(0.1)
                labels = [{"id": str(number), "rich": "yes"} for number in numbers]
                status, answer = self.ask("/labels", labels, Idempotency_Key=name)
            if status != 200 or answer.get("unknown"):
                self.failures.append((status, answer))
            for number in numbers:
                self.acknowledged[float(number)] = name

    def is_kept(self, answered):
        """Whether rows that were predicted wait for their labels; the disk may be full."""
        status, answers = answered
        return status == 200 and not any("waits for its label" in answer for answer in answers)

    def hostile(self):
        """Nonsense, and requests that do not end."""
        while not self.is_over:
            try:
                self.server.ask("POST", random.choice(["/learn", "/predict", "/labels"]), random.choice(NONSENSE))
                connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=5)
                connection.sendall(b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
                time.sleep(0.2)
                connection.close()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)

    def disturb(self):
        """Kill the server, or let its files have no further bytes for a while."""
        unlimited = resource.RLIM_INFINITY
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            time.sleep(random.uniform(1.0, 4.0))
            if random.random() < 0.3:
                resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (4096, unlimited))
                time.sleep(1.0)
                resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
            else:
                before = self.server
                before.end(signal.SIGKILL)
                self.server = Server(*self.arguments)
                before.kill()


@pytest.mark.slow
def test_chaos(file, tmp_path):
    random.seed(7)
    chaos = Chaos(file, tmp_path / "s")
    threads = [threading.Thread(target=run) for run in [chaos.honest] * 4 + [chaos.hostile] * 2]
    for thread in threads:
        thread.start()
    try:
        chaos.disturb()
    finally:
        chaos.is_over = True
        for thread in threads:
            thread.join(90)
        assert chaos.server.end() == 0
        chaos.server.kill()
    assert not chaos.failures
    learned = [row["age"] for row in check_store(tmp_path / "s", tmp_path / "u")]
    assert len(learned) == len(set(learned)) and set(learned) == set(chaos.acknowledged)
    assert len(learned) > 100
