"""All at once for some minutes: kills, full disks, slow clients, nonsense, and clocks that jump.

``python -m tests.serving.chaos --minutes 10 --rate 500`` prints what happened. No row that was acknowledged is lost or
learned twice, the model is to the byte what an undisturbed learning of the journal makes, and memory does not grow.
A pool grows until it has learned as many rows as it keeps; the model to begin with has learned these.
"""

import argparse
import http.client
import itertools
import json
import random
import resource
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.serving.model import Server, check_store, plan, write_model
from tunefree.stream.source import open_source
from tunefree.training.training import train

NONSENSE = [b"", b"{", b"[1]", b"\xff" * 100, b'{"age": 1e999}', b"[" * 5000, b"[" + b"{}," * 20_000 + b"{}]"]
NONSENSE += [b'{"age": 1, "age": 2}', b'{"age": "old", "job": null, "rich": "no"}', b'{"' + b"x" * 50_000 + b'": 1}']
HALF = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
MANY = b"GET /model HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50
CLIENTS, HOSTILE = 8, 2
ROWS = 2**17  # learned before
CALM = 1 / 3  # part of the time, at the end, in which the process is not killed, so that its memory can be followed
WARM = 1 / 4  # part of that, after which memory may not grow
MOST_GROWTH = 48 << 20  # bytes


class Client:
    """A connection to whatever server there is; what is not answered is sent again under the same name."""

    def __init__(self, chaos):
        self.chaos, self.connection, self.port = chaos, None, None

    def post(self, path, body, name=None):
        """The answer; None at the end, if there was none for long."""
        headers = {"Content-Type": "application/json"} | ({} if name is None else {"Idempotency-Key": name})
        until = time.monotonic() + 300
        while time.monotonic() < until:
            try:
                answer = self._answered(path, json.dumps(body).encode(), headers)
                self.chaos.statuses[answer[0]] += 1
                if answer[0] != 503:
                    return answer
            except (OSError, http.client.HTTPException, ValueError):
                self.chaos.statuses["no answer"] += 1
                self.connection = None
            time.sleep(0.1)
        return 0, None

    def _answered(self, path, body, headers):
        if self.connection is None or self.port != self.chaos.server.port:
            self.port = self.chaos.server.port
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.connection.request("POST", path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


class Chaos:
    """Clients that try to send so many requests a second, and a server that is disturbed after such pauses."""

    def __init__(self, folder, seconds, rate, pause, learner="scinol2", save_every=300):
        self.folder, self.seconds, self.rate, self.pause = folder, seconds, rate, pause
        self.file = folder / "m"
        if learner == "pool":
            train(open_source(many_rows()), plan(learner=learner)).save(self.file)
        else:
            write_model(self.file, learner=learner)
        kept = ("--keep-versions", 10**6, "--save-every", save_every, "--label-days", 1)
        self.arguments = (self.file, "-o", folder / "s", *kept)
        self.server, self.is_over = self._started(), False
        self.sent, self.statuses, self.happened = itertools.count(), Counter(), Counter()
        self.acknowledged, self.failures, self.memory = set(), [], []

    def _started(self):
        return Server(*self.arguments, module="tests.serving.jumping")

    def honest(self):
        """Rows that are learned at once, or predicted and labelled later, each in a request with a name."""
        client, due = Client(self), time.monotonic()
        while not self.is_over:
            time.sleep(max(due - time.monotonic(), 0.0))
            numbers = [next(self.sent) for _ in range(random.randint(1, 5))]
            rows = [{"age": float(number), "job": f"j{number % 7}", "rich": "no"} for number in numbers]
            name = f"r{numbers[0]}"
            if numbers[0] % 2:
                status, answer = client.post("/learn", rows, name)
            else:
                kept = [row | {"id": number} for row, number in zip(rows, numbers, strict=True)]
                while not self._is_kept(client.post("/predict", kept)):
                    time.sleep(0.1)
                labels = [{"id": str(number), "rich": "yes"} for number in numbers]
                status, answer = client.post("/labels", labels, name)
            if status != 200 or answer.get("unknown"):
                self.failures.append((status, answer))
            self.acknowledged |= set(map(float, numbers))
            asked = 1 if numbers[0] % 2 else 2
            due = max(due + asked * CLIENTS / self.rate, time.monotonic() - 1.0)

    def _is_kept(self, answered):
        """Whether rows that were predicted wait for their labels; the disk may be full."""
        status, answers = answered
        return status == 0 or (status == 200 and not any("waits_for_label" in answer for answer in answers))

    def hostile(self):
        """Nonsense, requests that do not end, and answers that are not taken."""
        while not self.is_over:
            try:
                path = random.choice(["/learn", "/predict", "/labels", "/versions", "/explain"])
                self.happened[f"nonsense {self.server.ask('POST', path, random.choice(NONSENSE))[0]}"] += 1
                connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=5)
                connection.sendall(random.choice([HALF, HALF[:20], MANY]))
                time.sleep(0.2)
                connection.close()
                self.happened["slow clients"] += 1
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)

    def disturb(self):
        """Kill the server, or let its files have no further bytes for a while."""
        start, unlimited = time.monotonic(), resource.RLIM_INFINITY
        while (now := time.monotonic() - start) < self.seconds:
            time.sleep(min(random.uniform(0.2, 1.8) * self.pause, self.seconds - now))
            self._note_memory()
            if random.random() < 0.3:
                resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (4096, unlimited))
                time.sleep(1.0)
                resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
                self.happened["full disks"] += 1
            elif time.monotonic() - start > (1.0 - CALM) * self.seconds:
                continue
            else:
                before = self.server
                before.end(signal.SIGKILL)
                self.server = self._started()
                before.kill()
                self.happened["killed"] += 1

    def _note_memory(self):
        pages = int(Path(f"/proc/{self.server.process.pid}/statm").read_text().split()[1])
        self.memory.append((time.monotonic(), self.server.process.pid, pages * resource.getpagesize()))

    def growth(self):
        """Bytes by which the last process grew after it was warm."""
        of_last = [(moment, size) for moment, process, size in self.memory if process == self.server.process.pid]
        if len(of_last) < 3:
            return 0
        warm = of_last[0][0] + WARM * (of_last[-1][0] - of_last[0][0])
        return of_last[-1][1] - next(size for moment, size in of_last if moment >= warm)

    def run(self):
        """Let all happen, and end the server."""
        threads = [threading.Thread(target=run) for run in [self.honest] * CLIENTS + [self.hostile] * HOSTILE]
        for thread in threads:
            thread.start()
        try:
            self.disturb()
        finally:
            self.is_over = True
            for thread in threads:
                thread.join(400)
            self._note_memory()
            assert self.server.end() == 0, self.server.plain
            self.server.kill()

    def check(self):
        """Raise an AssertionError unless all was learned that was acknowledged, once; returns the number of rows."""
        assert not self.failures, self.failures[:3]
        learned = [row["age"] for row in check_store(self.folder / "s", self.folder / "u")]
        assert len(learned) == len(set(learned)) and set(learned) == self.acknowledged
        assert self.growth() <= MOST_GROWTH, self.memory
        return len(learned)


def many_rows():
    """A table with a target that can be learned in part."""
    rng = np.random.default_rng(0)
    age, job = rng.uniform(0.0, 100.0, ROWS), rng.integers(7, size=ROWS)
    is_rich = rng.random(ROWS) < 1.0 / (1.0 + np.exp(job - age / 15.0))
    return {"age": age, "job": [f"j{k}" for k in job], "rich": np.where(is_rich, "yes", "no")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--pause", type=float, default=12.0, help="seconds between disturbances")
    parser.add_argument("--learner", default="scinol2")
    parser.add_argument("--save-every", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        of_run = 60.0 * options.minutes, options.rate, options.pause, options.learner, options.save_every
        chaos = Chaos(Path(folder), *of_run)
        start = time.monotonic()
        chaos.run()
        seconds = time.monotonic() - start
        print(f"{sum(chaos.statuses.values()) / seconds:.0f} requests/s for {seconds:.0f} s: {dict(chaos.statuses)}")
        print(f"{dict(chaos.happened)}; memory {[size >> 20 for _, _, size in chaos.memory]} MB", flush=True)
        print(f"{chaos.check():,} rows learned once; memory grew by {chaos.growth() / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
