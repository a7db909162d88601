"""HTTP with real processes: what is answered, to whom, and what clients that mean ill can do."""

import json
import random
import resource
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.serving.chaos import HALF, Chaos
from tests.serving.model import N, check_store, plan, rows, table
from tests.waiting import NEVER, until
from tunefree.core.errors import ModelError
from tunefree.model_files.trained import Trained
from tunefree.serving.service import Service
from tunefree.serving.settings import Limits
from tunefree.stream.source import open_source
from tunefree.training.training import train

pytest.importorskip("httptools")
http = pytest.importorskip("tunefree.serving.http")

KEPT = ("--keep-versions", 1_000_000)


def connected(server, sent=b""):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=NEVER)
    connection.sendall(sent)
    return connection


def test_a_server_under_load_keeps_all_that_it_learned(file, serve, tmp_path):
    server = serve(file, "-o", tmp_path / "s", *KEPT)
    unknown = rows(1100, 1110, "rich")
    with Service(Trained.load(file)) as alone:
        assert server.ask("POST", "/predict", unknown) == (200, alone.predict(unknown))
    assert server.ask("POST", "/predict", unknown[0])[1] == server.ask("POST", "/predict", unknown)[1][0]

    def client(number):
        for place, row in enumerate(rows(N + 10 * number, N + 10 * number + 10)):
            label = {"id": f"{number}-{place}", "rich": row.pop("rich")}
            assert server.ask("POST", "/predict", {**row, "id": label["id"]})[0] == 200
            assert server.ask("POST", "/labels", label) == (200, {"learned": 1, "unknown": []})
        return server.ask("POST", "/learn", rows(N, N + 20))

    with ThreadPoolExecutor(6) as clients:
        assert list(clients.map(client, range(6))) == [(200, {"learned": 20})] * 6
    state = server.ask("GET", "/model")[1]
    assert state["rows"] == N + server.metric("rows_learned_total") == N + 6 * 30
    assert server.end() == 0
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 6 * 30


SIGNALS = [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGINT, signal.SIGHUP))]


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_end_it_with_all_saved_during_any_request(file, serve, tmp_path, number):
    ignored = signal.SIGINT if number == signal.SIGHUP else signal.SIGHUP  # as by nohup
    options = {"prepare": lambda: signal.signal(ignored, signal.SIG_IGN)}
    server = serve(file, "-o", tmp_path / "s", *KEPT, "--shutdown-timeout", 0.5, **options)
    assert server.ask("POST", "/learn", rows(N, N + 20))[0] == 200
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn"))
    assert mask & (1 << ignored - 1) and not mask & (1 << number - 1)
    left = [connected(server, sent) for sent in (HALF, HALF[:30], b"")]
    assert server.end(number) == 0
    assert [line["event"] for line in server.log][-2:] == ["saved", "ended"] and not server.plain
    for connection in left:
        connection.close()
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 20


def test_a_full_disk_is_503_and_rows_sent_again_are_learned_once(file, serve, tmp_path):
    largest = 16 * file.stat().st_size
    limits = (largest, resource.RLIM_INFINITY)
    server = serve(file, "-o", tmp_path / "s", *KEPT, prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))
    sent = [{**row, "job": row["job"] + "x" * 20} for row in rows(0, N)]
    statuses = []
    while 503 not in statuses:
        statuses.append(server.ask("POST", "/learn", sent, Idempotency_Key=f"k{len(statuses)}")[0])
    assert set(statuses[:-1]) <= {200} and len(statuses) < 200
    assert [server.event(name)["level"] for name in ("started", "not written")] == ["info", "warning"]
    assert server.ask("POST", "/predict", rows(N, N + 1, "rich"))[0] == 200
    assert server.metric("rows_learned_total") == N * (len(statuses) - 1)
    assert server.ask("GET", "/ready")[0] == 503 and server.metric("can_learn") == server.metric("can_save") == 0.0
    server.end(signal.SIGKILL)
    server = serve(file, "-o", tmp_path / "s", *KEPT)  # there is room again
    assert server.metric("rows_replayed_total") == server.metric("rows") - N == N * (len(statuses) - 1)
    assert server.event("replayed")["rows"] == N * (len(statuses) - 1) and not server.plain
    for number in range(len(statuses)):
        status, answer = server.ask("POST", "/learn", sent, Idempotency_Key=f"k{number}")
        assert status == 200 and answer.get("repeated", False) == (number < len(statuses) - 1)
    assert server.end() == 0
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == N * len(statuses)


def test_two_trainings_of_one_file(file, done, tmp_path):
    """The first waits for its rows; the second is told, and does not undo what the first learned."""
    train = [sys.executable, "-m", "tunefree", "train", "--from", str(file), "-o", str(file), "--format", "json"]
    first = subprocess.Popen([*train, "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until((tmp_path / f".{file.name}.lock").exists)
    _, err = done("train", "-", "--from", file, "-o", file, "--format", "json", status=2)
    assert f"process {first.pid} writes it; wait until it ends" in err
    _, printed = first.communicate("\n".join(json.dumps(row) for row in rows(N, N + 50)))
    assert first.returncode == 0, printed
    assert Trained.load(file).progress.progressive[0].rows == N + 50
    assert not (tmp_path / f".{file.name}.lock").exists()


def test_connections_are_limited_and_idle_ones_are_ended(file, serve):
    server = serve(file, "--idle-timeout", 1, "--max-connections", 20)
    idle = [connected(server) for _ in range(30)]
    assert server.ask("GET", "/live")[0] == 503
    for connection in idle:
        connection.close()
    until(lambda: server.ask("GET", "/live")[0] == 200)
    kept = connected(server, b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"".join(iter(lambda: kept.recv(1000), b"")).startswith(b"HTTP/1.1 200 ")  # up to the end
    assert server.end() == 0
    assert server.log[0]["event"] == "nothing is kept" and not server.plain
    assert not [line for line in server.log if "traceback" in line]


def test_what_cannot_be_answered(file, serve):
    server = serve(file, "--max-rows", 10, "--max-body", 150_000)
    for body, status, message in [
        (b"age=39", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"[]", 400, "not empty"),
        (b"[1]", 400, "object"),
        (b"\xff\xfe{}", 400, "object"),
        (b'{"age": "old", "job": null}', 422, "'old' is not a number"),
        (b'{"age": 39, "jobs": "pilot"}', 422, "column 'jobs': the model does not know it"),
        (b'{"age": 39, "job": "a", "trace_id": 7}', 422, "leave it out, or pass --unknown-columns ignore"),
        (b"[{}]", 422, "row 1: columns 'age', 'job' missing; send null"),
        (b'{"age": NaN}', 400, "not JSON: NaN is no number"),
        (b'{"age": 1,, "job": null}', 400, "not JSON (line 1, column 11)"),
        (b'{"age": 1, "age": 2, "job": null}', 400, "an object has the name 'age' twice"),
        (b'{"age": 1, "job": {"a": 1, "a": 1}}', 400, "the name 'a' twice"),
        (b'{"age": ' + b"9" * 5000 + b', "job": null}', 400, "a number has too many digits; send null"),
        (b'{"age": 39, "job": "a", "' + b"x" * 100_000 + b'": 1}', 422, "x': the model does not know it"),
        (b'{"age": 39, "job": "a", "id": [1]}', 422, "an id is a string or a whole number"),
        (b"[" + b"{}," * 10 + b"{}]", 413, "a request may have at most 10 rows; send fewer at a time"),
        (b" " * 200_000, 413, "a request may have at most 150000 bytes; send fewer rows at a time"),
    ]:
        sent = server.ask("POST", "/predict", body)
        assert sent[0] == status and message in sent[1]["error"][:2000], (body[:20], sent)
    assert server.ask("POST", "/labels", {"id": 1})[0] == 422
    assert server.ask("GET", "/predict") == (405, {"error": "GET /predict: this path answers to POST"})
    for method, path in (("GET", "/nothing"), ("POST", "/predict/")):
        status, answer = server.ask(method, path)
        assert status == 404 and "there is no such path; there are /predict, " in answer["error"]
    assert "is empty" in server.ask("POST", "/learn", rows(N, N + 1), Idempotency_Key="")[1]["error"]
    assert server.ask("POST", "/predict", b"{}", Content_Type="text/plain")[0] == 415
    status, answer = server.ask("POST", "/predict", b"\x1f\x8b", Content_Encoding="gzip")
    assert status == 415 and "send it uncompressed" in answer["error"]
    assert server.ask("POST", "/predict", {"age": 39, "job": "x" * 100_000})[0] == 200
    assert len(json.dumps(server.ask("GET", "/model")[1])) < 5000
    connection = connected(server, b"\x16\x03\x01 no HTTP\r\n\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert server.metric("rows_learned_total") == 0 and server.ask("GET", "/live")[0] == 200
    with pytest.raises(ModelError, match=f"`port={server.port}`: .* cannot be listened on .*; name another `port`, or"):
        http._bound(Limits(port=server.port))


def test_who_may_ask(file, serve, tmp_path):
    (tmp_path / "token").write_text("a-token-of-letters\n")
    said = ("--token-file", tmp_path / "token", "--allow-host", "model.example", "--remember", 2)
    server = serve(file, "-o", tmp_path / "s", *KEPT, *said)
    [row], [own, other] = rows(N, N + 1), rows(N, N + 2, "rich")
    token = {"Authorization": "Bearer a-token-of-letters"}
    for headers, status in [
        ({}, 401),
        ({"Authorization": "Bearer another"}, 401),
        (token, 200),
        ({"Authorization": "bearer a-token-of-letters"}, 200),
        (token | {"Host": "10.0.0.5:8000"}, 200),
        (token | {"Host": "[fe80::1]:8000"}, 200),
        (token | {"Host": "10.0.0.5.example"}, 403),
        (token | {"Host": "model.example"}, 200),
        (token | {"Host": "evil.example"}, 403),
        (token | {"Content_Type": "text/plain"}, 415),
        (token | {"Host": "LOCALHOST"}, 200),
        (token | {"Host": "Model.Example"}, 200),
    ]:
        assert server.ask("POST", "/learn", row, **headers)[0] == status, headers
    for path, sent in (("/versions", {"save": True}), ("/labels", {"id": 1, "rich": "no"}), ("/learn", row)):
        assert server.ask("POST", path, sent)[0] == 401
    assert server.ask("GET", "/metrics", Host="evil.example")[0] == 403
    # A stranger may predict, which changes nothing, but cannot write rows that wait for labels.
    assert server.ask("POST", "/predict", {**own, "id": 1}, **token)[0] == 200
    for id in (1, 2, 3, 4):
        status, answer = server.ask("POST", "/predict", [other, {**other, "id": id}])
        assert status == 401 and "rows with 'id' wait for their labels: leave it out, or send the" in answer["error"]
    assert server.ask("POST", "/predict", {**other, "id": None})[0] == 200  # which is none
    assert server.metric("waiting") == 1
    assert server.ask("POST", "/labels", {"id": 1, "rich": "no"}, **token) == (200, {"learned": 1, "unknown": []})
    assert server.end() == 0
    assert check_store(tmp_path / "s", tmp_path / "u") == [row] * 7 + [{**own, "rich": "no"}]


def test_counts_and_versions(file, serve, tmp_path):
    server = serve(file, "-o", tmp_path / "s", "--unknown-columns", "ignore")
    [row] = rows(N, N + 1)
    server.ask("POST", "/learn", {**row, "trace_id": 1})
    server.ask("POST", "/labels", {"id": 5, "rich": "no"})
    server.ask("POST", "/predict", rows(N, N + 3, "rich"))
    assert server.ask("POST", "/explain", rows(N, N + 101, "rich"))[0] == 413
    text = server.ask("GET", "/metrics")[1].decode()
    for line in (
        "tunefree_rows_learned_total 1.0",
        "tunefree_rows_predicted_total 3.0",
        "tunefree_labels_unknown_total 1.0",
        "tunefree_values_ignored 1.0",
        'tunefree_request_seconds_count{path="/learn",status="200"} 1.0',
        "tunefree_can_learn 1.0",
        "tunefree_can_save 1.0",
        'tunefree_model_info{target="rich",task="classification"} 1.0',
    ):
        assert line in text
    assert server.ask("GET", "/ready") == (200, {"status": "ok"})
    explained = server.ask("POST", "/explain", {"age": 3.0, "job": "pilot"})[1]
    assert sum(explained["contributions"].values()) == pytest.approx(explained["margin"])
    assert server.ask("POST", "/explain?class=no", {"age": 3.0, "job": "pilot"})[1]["class"] == "no"
    data = table(0, 500)
    data["place"] = data.pop("job")
    train(open_source(data), plan()).save(tmp_path / "s" / "incoming" / "new.model")
    assert server.ask("POST", "/versions", {"save": True}) == (200, {"version": 2})
    assert [version["n_rows"] for version in server.ask("GET", "/versions")[1]] == [N, N + 1]
    assert server.metric("saves_total") == 1
    assert server.ask("POST", "/versions", {"roll_back_to": 1}) == (200, {"version": 3})
    assert server.ask("GET", "/model")[1]["rows"] == N
    for body in ({"roll_back_to": 9}, {"take": "../s"}):
        assert server.ask("POST", "/versions", body)[0] == 422
    for body in ({"roll_back_to": True}, {"save": 1}, {"save": True, "take": "a"}, {}, [{"save": True}] * 2):
        assert server.ask("POST", "/versions", body)[0] == 400
    assert server.ask("POST", "/versions", {"take": "new.model"}) == (200, {"version": 4})
    assert server.ask("GET", "/model")[1]["columns"] == ["age", "place"]
    server.end()
    assert [line["event"] for line in server.log if line["event"] in ("saved", "replaced")][:2] == ["saved", "replaced"]


@pytest.mark.slow
def test_chaos(tmp_path):
    """Most of a minute of all at once, which takes longer if asked to."""
    random.seed(7)
    chaos = Chaos(tmp_path, 45.0, 200.0, 3.0)
    chaos.run()
    assert chaos.check() > 100
