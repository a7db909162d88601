"""The report while a model learns: served to this machine and to those who know the address, and to nobody else."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.report.test_page import check_page
from tests.waiting import NEVER, until
from tests.workflows.test_training import model_bytes, people
from tunefree.model_files.plan import Plan
from tunefree.report import live
from tunefree.report.live import LiveReport
from tunefree.stream import frames
from tunefree.stream.source import open_source
from tunefree.training.training import train

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
TOKEN = "a-token"


class Reader(LiveReport):
    """Somebody who looks after every batch."""

    pages = ()

    def step(self, trained, step):
        self.pages = [*self.pages, self.html()]


def test_pages_of_a_training_and_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "REST", 0.0)  # so that copies do not depend on how long one takes
    monkeypatch.setattr(frames, "rows_of_a_chunk", lambda n_columns: 60)
    table = {name: values for name, values in people(900).items() if name != "pay"}
    table["name"] = [f"p{i % 300}" for i in range(900)]  # features that come later
    plan, reader = Plan(target="rich", learner="scinol2"), Reader()
    watched = train(open_source(table), plan, reader)
    assert model_bytes(watched, tmp_path / "a") == model_bytes(train(open_source(table), plan), tmp_path / "b")
    assert len(reader.pages) > 5
    texts = [re.sub(r' http-equiv="refresh" content="\d+"', "", text) for text in reader.pages]
    rows = [re.search(r"rows learned ([\d,]+)", check_page(text).text) for text in texts]
    learned = [int(found[1].replace(",", "")) for found in rows if found]
    assert rows[0] is None and len(set(learned)) > 2 and learned == sorted(learned)
    assert all('http-equiv="refresh"' in text and "ends with the training" in text for text in reader.pages)


def test_a_page_that_cannot_be_made_does_not_end_the_training(monkeypatch):
    def fail(*arguments):
        raise ZeroDivisionError("no page <b>")

    monkeypatch.setattr("tunefree.report.page.report", fail)
    monkeypatch.setattr(live, "REST", 0.0)
    monkeypatch.setattr(frames, "rows_of_a_chunk", lambda n_columns: 60)
    reader, table = Reader(), {"age": [20.0, 60.0] * 1000, "rich": ["no", "yes"] * 1000}
    assert train(open_source(table), Plan(target="rich", learner="scinol2"), reader).progress.complete
    assert "There is no report of them yet: no page &lt;b&gt;" in reader.pages[-1]


def test_nothing_else_is_reachable():
    from starlette.testclient import TestClient

    from tunefree.report.live_server import application

    client = TestClient(application(LiveReport(), TOKEN), base_url="http://127.0.0.1:8000", follow_redirects=False)
    shown = client.get(f"/{TOKEN}")
    assert shown.status_code == 200 and "No rows have been learned yet" in shown.text
    assert (
        shown.headers["cache-control"] == "no-store"
        and "default-src 'none'" in shown.headers["content-security-policy"]
    )
    for path in ("/", "/a-toke", "/a-tokens", f"/{TOKEN}/", f"/{TOKEN}/x", "/docs", "/%F0%9F%98%80", "/..%2f..%2fetc"):
        assert client.get(path).status_code == 404, path
    for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert client.request(method, f"/{TOKEN}").status_code == 405, method
    for host in ("evil.example", "127.0.0.1.evil.example", "", "0.0.0.0:8000"):
        assert client.get(f"/{TOKEN}", headers={"host": host}).status_code == 400, host
    assert client.get(f"/{TOKEN}", headers={"host": "localhost:8000"}).status_code == 200


def test_a_port_in_use_is_refused_before_anything_is_learned(run, tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n" + "1,no\n2,yes\n" * 50)
    arguments = ("train", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", "-q")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, err = run(*arguments, "--live", port)
    assert status == 2 and f"--live {port}: the port cannot be taken (Address already in use); name another" in err
    assert not (tmp_path / "m").exists()
    status, _, err = run(*arguments, "--live", 70000)
    assert status == 2 and "--live 70000: the port cannot be taken (bind(): port must be 0-65535" in err
    status, _, err = run(*arguments, "--live", 0)
    assert status == 0 and re.fullmatch(r"live report: http://127\.0\.0\.1:\d+/[\w-]{32}\n", err)


@pytest.mark.usefixtures("heard")
def test_it_is_served_while_a_command_learns_and_ends_with_it(tmp_path):
    command = [sys.executable, "-m", "tunefree.cli", "train", "-", "--format", "csv", "-t", "y", "--learner", "scinol2"]
    command += ["-q", "-o", str(tmp_path / "m"), "--live", "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    address = urlsplit(process.stderr.readline().decode().split(": ", 1)[1].strip())

    def page():
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=NEVER)
        connection.request("GET", address.path)
        return connection.getresponse().read().decode()

    try:
        assert "No rows have been learned yet" in page()
        block = b"".join(b"%d,%s\n" % (i % 50, b"yes" if i % 3 else b"no") for i in range(200_000))
        process.stdin.write(b"a,y\n" + block)
        process.stdin.flush()

        def is_shown():
            process.stdin.write(block)  # a copy is made as a batch is learned
            process.stdin.flush()
            return "progressive log-loss" in page()

        until(is_shown)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130 and process.stderr.read().startswith(b"tunefree: interrupted")
        with pytest.raises(ConnectionError):
            page()
    finally:
        process.kill()
        process.communicate()
