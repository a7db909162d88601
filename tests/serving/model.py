"""A small model, its rows, a server in a process of its own, and what a store must hold."""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from tests.waiting import NEVER, until
from tests.workflows.test_training import people
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import continued, ended
from tunefree.pool.waiting import remember
from tunefree.serving.rows import Reader
from tunefree.serving.settings import Admission
from tunefree.serving.store import Store
from tunefree.stream.source import open_source
from tunefree.training.training import learn_batch, train

N = 1000  # rows the model is trained on before it serves


def table(start=0, stop=None):
    return {name: values[start:stop] for name, values in people().items() if name != "pay"}


def rows(start, stop, *without):
    part = {name: values for name, values in table(start, stop).items() if name not in without}
    objects = [dict(zip(part, cells, strict=True)) for cells in zip(*part.values(), strict=True)]
    return [{name: getattr(value, "item", lambda v=value: v)() for name, value in row.items()} for row in objects]


def plan(**options):
    return Plan(**{"target": "rich", "learner": "scinol2"} | options)


def write_model(path, **options):
    path.write_bytes(_model(tuple(options.items())))
    return path


@cache
def _model(options):
    """The file of a model that several tests serve."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        train(open_source(table(0, N)), plan(**dict(options))).save(path)
        return path.read_bytes()


class Server:
    """`tunefree serve` in a process of its own."""

    def __init__(self, *arguments, prepare=None, module="tunefree"):
        command = [sys.executable, "-m", module, "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=prepare)
        self.log, self.plain = [], []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.port = int(self.event("started")["address"].rpartition(":")[2])

    def _read(self):
        for line in self.process.stderr:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                self.plain.append(line)

    def event(self, name, number=0):
        """The first line of the log, or a later one, on an event."""

        def events():
            assert self.process.poll() is None or self._reading.is_alive(), (self.log, self.plain)
            return [line for line in list(self.log) if line["event"] == name]

        until(lambda: len(events()) > number)
        return events()[number]

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=NEVER)
        try:
            sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            named = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
            connection.request(method, path, sent, named)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if answer.getheader("content-type") == "application/json" else text
        finally:
            connection.close()

    def metric(self, name):
        lines = self.ask("GET", "/metrics")[1].decode().splitlines()
        return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(f"tunefree_{name} ")))

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(timeout=NEVER)
        self._reading.join()
        return status

    def kill(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reading.join()
        self.process.stderr.close()


@contextmanager
def learning_paused(service):
    """Pause learning; the value is the thread that does."""
    begun, go_on = threading.Event(), threading.Event()

    def hold():
        begun.set()
        assert go_on.wait(NEVER)

    holding = threading.Thread(target=service.learner.between, args=(hold,))
    holding.start()
    assert begun.wait(NEVER)
    try:
        yield holding
    finally:
        go_on.set()
        holding.join()


def check_store(folder, path):
    """The current version is, to the byte, what the events make of the first one; returns the rows of the events.

    All versions are kept, so that the journal has all events, and the store was closed.
    """
    with closing(Store(folder, kept=10**6)) as store:
        assert not list(store.events_after(store.versions[-1].sequence))
        events = list(store.events_after(0))
        _learn(store.load(1), events, path)
        assert path.read_bytes() == store.folder.joinpath("current.model").read_bytes()
        return [row for event in events for row in event.rows]


def _learn(model, events, path):
    trained = continued(model)
    reader = Reader(Admission())
    for event in events:
        batch = reader.learned(trained, event.rows)
        remember(trained.model, event.remembered)
        learn_batch(trained, batch)
    ended(trained).save(path)
