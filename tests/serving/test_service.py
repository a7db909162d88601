"""Models that answer and learn: by themselves, and over HTTP with real processes, under load and killed."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.workflows.test_training import people
from tunefree.core.errors import DataError, ModelError
from tunefree.stream.source import open_source
from tunefree.workflows.plan import Plan
from tunefree.workflows.training import Trained, train

pytest.importorskip("starlette")

from tunefree.serving import Service

N = 1000  # rows the model is trained on before it serves


def table(start=0, stop=None):
    return {name: values[start:stop] for name, values in people().items() if name != "pay"}


def rows(start, stop, *without):
    part = {name: values for name, values in table(start, stop).items() if name not in without}
    found = [dict(zip(part, own, strict=True)) for own in zip(*part.values(), strict=True)]
    return [{name: getattr(value, "item", lambda v=value: v)() for name, value in row.items()} for row in found]


def plan(**options):
    return Plan(target="rich", learner="scinol2", **options)


@pytest.fixture
def file(tmp_path):
    train(open_source(table(0, N)), plan()).save(tmp_path / "people.model")
    return tmp_path / "people.model"


def test_rows_learned_one_by_one_go_on_with_the_stream(file):
    service = Service(Trained.load(file))
    for row in rows(N, 1100):
        assert service.learn([row]) == {"learned": 1}
    whole = train(open_source(table(0, 1100)), plan())
    unknown = rows(1100, 1200, "rich")
    assert service.predict(unknown) == Service(whole).predict(unknown)
    assert service.state()["rows"] == 1100
    assert service.state()["progressive loss"] == whole.progress.progressive[0].mean_loss()


def test_the_pool_learns_rows_one_by_one_as_together(tmp_path):
    train(open_source(table(0, N)), Plan(target="rich")).save(tmp_path / "m")
    alone, together = (Service(Trained.load(tmp_path / "m")) for _ in range(2))
    for row in rows(N, 1050):
        alone.learn([row])
    together.learn(rows(N, 1050))
    unknown = rows(1100, 1200, "rich")
    assert alone.predict(unknown) == together.predict(unknown)
    assert alone.state()["rows"] == 1050


def test_labels_that_come_later_are_learned_as_if_they_had_come_with_the_rows(file):
    late, at_once = Service(Trained.load(file)), Service(Trained.load(file))
    sent = [{"id": number, **row} for number, row in enumerate(rows(N, 1050, "rich"))]
    assert [answer["id"] for answer in late.predict(sent)] == list(range(50))
    labels = [{"id": number, "rich": row["rich"]} for number, row in enumerate(rows(N, 1050))]
    assert late.label([*labels, {"id": "never", "rich": "no"}]) == {"learned": 50, "unknown": ["never"]}
    assert late.label(labels[:1]) == {"learned": 0, "unknown": [0]}  # learned already
    at_once.learn(rows(N, 1050))
    unknown = rows(1100, 1200, "rich")
    assert late.predict(unknown) == at_once.predict(unknown)


def test_the_oldest_rows_are_forgotten(file):
    service = Service(Trained.load(file), remembered=2)
    service.predict([{"id": number, **row} for number, row in enumerate(rows(N, N + 3, "rich"))])
    assert service.label([{"id": number, "rich": "no"} for number in range(3)]) == {"learned": 2, "unknown": [0]}


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"age": "old"}, "'old' is not a number"), ({"job": 7}, "7 is not a string"), ({"rich": None}, "rich")],
)
def test_of_rows_with_a_bad_one_none_is_learned(file, bad, message):
    service, untouched = Service(Trained.load(file)), Service(Trained.load(file))
    with pytest.raises(DataError, match=message):
        service.learn([*rows(N, N + 5), {**rows(N, N + 1)[0], **bad}])
    assert service.learned == 0
    unknown = rows(1100, 1200, "rich")
    assert service.predict(unknown) == untouched.predict(unknown)


def test_rows_to_learn_may_bring_new_columns_and_refused_ones_none(file):
    service = Service(Trained.load(file))
    own = [{"id": 1, "city": "Rome", "deep": {"er": [1, 2]}, **row} for row in rows(N, N + 2)]
    for bad, message in (
        ({"age": "old"}, r"row 2, column 'age': 'old' is not a number; correct the row$"),
        ({"age": 10**400}, r"row 2, column 'age': the number is infinite .inf.; correct the row$"),
        ({"deep": {"er": [1, "a"]}}, r"row 2, column 'deep.er': 'a' is not a number"),
        ({"rich": None}, r"row 2, column 'rich': the target is missing; give it one$"),
    ):
        with pytest.raises(DataError, match=message):
            service.learn([own[0], {**own[1], **bad}])
        assert service.state()["columns"] == ["age", "job"]
    service.predict(own)
    assert service.state()["columns"] == ["age", "job"]
    service.learn(own)
    assert service.state()["columns"] == ["age", "job", "city", "deep.er"]
    assert service.predict([{"age": 3.0, "job": None}])[0]["prediction"] in ("no", "yes")


def test_what_is_odd_is_counted_and_unknown_columns_are_named(file):
    service = Service(Trained.load(file))
    service.predict(rows(N, N + 100, "rich"))
    assert service.state()["oddities"] == []
    answers = service.predict([{"age": 30.0, "job": "PILOT", "jobs": "cook"}, {"age": 1e6, "job": "pilot"}])
    assert [answer.get("unknown columns") for answer in answers] == [["jobs"], None]
    odd = {oddity["column"]: (oddity["problem"], oddity["rows"]) for oddity in service.state()["oddities"]}
    assert odd["jobs"] == ("the model does not know it", 1)
    assert odd["job"] == ("a category that training never saw: 'PILOT', like 'pilot'", 1)
    assert odd["age"][0].startswith("outside what training saw") and odd["age"][1] == 1
    assert service.state()["oddities"] == service.state()["oddities"]  # looking changes nothing
    with pytest.raises(DataError, match=r"row 2: column 'age' missing; 'agee' is not known: did you mean 'age'\?$"):
        service.learn([*rows(N, N + 1), {"agee": 3.0, "job": "pilot", "rich": "no"}])
    assert service.state()["learned here"] == 0


def test_models_that_rows_cannot_continue(tmp_path):
    model = train(open_source(table(0, N)), plan())
    with pytest.raises(ModelError, match="checkpoint"):
        Service(replace(model, progress=replace(model.progress, complete=False)))
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n" * 50)
    with pytest.raises(ModelError, match="models of tables"):
        Service(train(open_source(tmp_path / "a.svm"), Plan(learner="scinol2")))


class Server:
    """`tunefree serve` in a process of its own."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "tunefree.cli", "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.said = []
        while not (found := re.search(r"running on http://127\.0\.0\.1:(\d+)", "".join(self.said))):
            line = self.process.stderr.readline()
            assert line, "".join(self.said)
            self.said.append(line)
        self.port = int(found[1])

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body).encode())
        answer = connection.getresponse()
        status, found = answer.status, json.loads(answer.read())
        connection.close()
        return status, found

    def end(self, with_signal):
        self.process.send_signal(with_signal)
        self.process.stderr.read()
        return self.process.wait(timeout=60)


@pytest.fixture
def serve():
    servers = []

    def start(*arguments):
        servers.append(Server(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.process.kill()
        server.process.wait()
        server.process.stderr.close()


def test_a_server_under_load_saves_all_that_it_learned_when_it_is_ended(file, serve, tmp_path):
    server, saved = serve(file, "-o", tmp_path / "new.model"), tmp_path / "new.model"
    unknown = rows(1100, 1110, "rich")
    status, answers = server.ask("POST", "/predict", unknown)
    assert status == 200 and answers == Service(Trained.load(file)).predict(unknown)
    assert server.ask("POST", "/predict", unknown[0]) == (200, answers[0])

    def client(number):
        for place, row in enumerate(rows(N + 10 * number, N + 10 * number + 10)):
            label = {"id": [number, place], "rich": row.pop("rich")}
            assert server.ask("POST", "/predict", {**row, "id": [number, place]})[0] == 200
            assert server.ask("POST", "/labels", label)[0] == 200
        return server.ask("POST", "/learn", rows(N, N + 20))

    with ThreadPoolExecutor(6) as clients:
        assert list(clients.map(client, range(6))) == [(200, {"learned": 20})] * 6
    state = server.ask("GET", "/model")[1]
    assert state["learned here"] == 6 * 30 and state["rows"] == N + 6 * 30
    assert server.ask("GET", "/health") == (200, {"status": "ok"})
    after = server.ask("POST", "/predict", unknown)
    server.end(signal.SIGTERM)
    assert Trained.load(saved).progress.progressive[0].rows == N + 6 * 30
    assert Service(Trained.load(saved)).predict(unknown) == after[1]
    assert Trained.load(saved).progress.complete


def test_a_server_that_is_killed_leaves_a_whole_model(file, serve):
    server = serve(file, "-o", file, "--save-every", 10)
    for number in range(7):
        assert server.ask("POST", "/learn", rows(N + 5 * number, N + 5 * number + 5))[0] == 200
    server.end(signal.SIGKILL)
    assert Trained.load(file).progress.progressive[0].rows == N + 30


def test_a_server_that_saves_nothing_says_so_as_it_begins(file, serve, tmp_path):
    assert "is lost when the server ends; --output" in "".join(serve(file).said)
    assert "lost" not in "".join(serve(file, "-o", tmp_path / "new.model").said)


def test_a_server_that_can_no_longer_save_says_so_and_keeps_what_it_learned(file, serve, tmp_path):
    (tmp_path / "folder").mkdir()
    server = serve(file, "-o", tmp_path / "folder" / "m", "--save-every", 10)
    (tmp_path / "folder").rmdir()
    assert server.ask("POST", "/learn", rows(N, N + 15)) == (200, {"learned": 15})
    assert "cannot be written" in server.ask("GET", "/health")[1]["status"]
    state = server.ask("GET", "/model")[1]
    assert state["not saved"] == 15 and "cannot be written" in state["cannot be saved"]
    (tmp_path / "folder").mkdir()
    assert server.ask("POST", "/learn", rows(N + 15, N + 25))[0] == 200
    assert server.ask("GET", "/health") == (200, {"status": "ok"})
    assert Trained.load(tmp_path / "folder" / "m").progress.progressive[0].rows == N + 25
    (tmp_path / "folder" / "m").unlink()
    (tmp_path / "folder").rmdir()
    assert server.ask("POST", "/learn", rows(N + 25, N + 26))[0] == 200
    server.process.send_signal(signal.SIGTERM)
    assert "cannot be written" in (said := server.process.stderr.read()) and "1 rows that were learned are lost" in said


def test_what_cannot_be_answered(file, serve):
    server = serve(file)
    for body, status, message in [
        (b"age=39", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"[]", 400, "not empty"),
        (b"[1]", 400, "object"),
        (b'{"age": "old", "job": null}', 422, "'old' is not a number"),
        (b'{"age": 39, "jobs": "pilot"}', 422, "row 1: column 'job' missing; 'jobs' is not known: did you mean 'job'?"),
        (b"[{}]", 422, "row 1: columns 'age', 'job' missing; send null"),
        (b'{"age": NaN}', 400, "not JSON"),
        (b" " * (1 << 25), 413, "fewer rows"),
    ]:
        found = server.ask("POST", "/predict", body)
        assert found[0] == status and message in found[1]["error"], (body[:20], found)
    assert server.ask("POST", "/labels", {"id": 1})[0] == 422
    assert server.ask("GET", "/health")[0] == 200
