"""The store of a model in operation: versions, the journal, one writer, and ends at any moment."""

import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from tests.serving.killed import POINTS, SENT, learn
from tests.serving.model import N, check_store, learning_paused, plan, rows, table, write_model
from tests.waiting import NEVER, until
from tunefree.cli.serve import opened
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.serving.learner import Request
from tunefree.serving.service import Service
from tunefree.serving.settings import Admission, Keeping, Limits
from tunefree.serving.store import StoreError
from tunefree.stream.source import open_source
from tunefree.training.training import train

ALL = Keeping(keep_versions=10**6)


def begun(file, folder, keeping=ALL, **options):
    return Service(Trained.load(file), folder, keeping=keeping, **options)


@pytest.mark.parametrize("learner", ["scinol2", pytest.param("pool", marks=pytest.mark.slow)])
def test_a_model_that_was_stopped_and_started_is_the_same_to_the_byte(tmp_path, learner):
    file = write_model(tmp_path / "m", learner=learner)
    for name, stops in (("often", (N, 1005, 1010, 1030, 1050)), ("once", (N, 1050))):
        for start, stop in pairwise(stops):
            with begun(file, tmp_path / name) as service:
                for row in rows(start, stop):
                    service.learn([row])
        assert len(check_store(tmp_path / name, tmp_path / "undisturbed")) == 50
    often, once = (Trained.load(tmp_path / name / "current.model") for name in ("often", "once"))
    assert often.progress.progressive[0] == once.progress.progressive[0]
    assert (tmp_path / "often" / "current.model").read_bytes() == (tmp_path / "once" / "current.model").read_bytes()


def test_labels_that_come_later_are_learned_from_the_journal_as_they_were(tmp_path):
    """With what members predicted of their rows, which the model that was published then decides."""
    file = write_model(tmp_path / "m", learner="pool")
    with begun(file, tmp_path / "s") as service:
        service.learn(rows(0, 50))
        service.settle()
        service.predict([{**row, "id": id} for id, row in enumerate(rows(N, N + 100))])
        service.learn(rows(50, 100))
        service.label([{"id": id, "rich": row["rich"]} for id, row in enumerate(rows(N, N + 100))])
        last = list(service.store.events_after(0))[-1]
        assert len(last.rows) == len(last.remembered) == 100
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 200


# Quick are one of each kind of change: a row, what waits, learning, a version.
QUICK = ("while it is written", "while a row is kept waiting", "after it is learned", "before a version counts")


@pytest.mark.parametrize(
    "point", [*QUICK, *(pytest.param(p, marks=pytest.mark.slow) for p in POINTS if p not in QUICK)]
)
def test_a_process_that_is_killed_loses_nothing_and_learns_nothing_twice(file, tmp_path, monkeypatch, point):
    monkeypatch.setattr("tunefree.serving.learner.MAX_ROWS", 5)  # so that what is replayed is learned in several parts
    command = [sys.executable, "-m", "tests.serving.killed", str(tmp_path / "store"), str(file), point, "3"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL and (tmp_path / "store" / "lock").exists(), ended.stderr
    acknowledged = set(map(int, ended.stdout.split()))
    assert acknowledged < set(range(SENT))
    assert list(learn(tmp_path / "store", file)) == list(range(SENT))  # all of it again, under the same names
    learned = [{n: row[n] for n in ("age", "job", "rich")} for row in check_store(tmp_path / "store", tmp_path / "u")]
    assert learned == rows(N, N + SENT) and not (tmp_path / "store" / "lock").exists()


def test_a_request_that_comes_again_is_learned_once(file, tmp_path):
    sent = rows(N, N + 5)
    with begun(file, tmp_path / "s") as service:
        assert service.learn(sent, "a") == {"learned": 5}
        assert service.learn(sent, "a") == {"learned": 5, "repeated": True}
        service.predict([{**sent[0], "id": 1}])
        assert service.label([{"id": 1, "rich": "no"}], "b") == {"learned": 1, "unknown": []}
    with begun(file, tmp_path / "s") as service:
        assert service.learn(sent, "a") == {"learned": 5, "repeated": True}
        assert service.label([{"id": 1, "rich": "no"}], "b") == {"learned": 1, "unknown": [], "repeated": True}
        with pytest.raises(DataError, match="a request named 'a' came before, and held something else"):
            service.learn(sent[:1], "a")
        with pytest.raises(DataError, match="'old' is not a number"):
            service.learn([{**sent[0], "age": "old"}], "c")
        assert service.learn(sent[:1], "c") == {"learned": 1}  # it was refused, so its name is free
        assert service.state()["rows"] == N + 7 and service.counts.requests_repeated == 3
        asked = [service.learner.submit(Request(sent[:3], name="d")) for _ in range(50)]  # at once
        assert sum("repeated" not in future.result(NEVER) for future in asked) == 1
        assert service.state()["rows"] == N + 10


def test_a_version_that_cannot_be_saved_loses_nothing(file, tmp_path, caplog):
    keeping = Keeping(save_every=10, keep_versions=10**6)
    with begun(file, tmp_path / "s", keeping) as service:
        versions = tmp_path / "s" / "versions"
        versions.rename(tmp_path / "elsewhere")
        assert service.learn(rows(N, N + 15)) == {"learned": 15}
        service.settle()
        assert "cannot be written" in service.state()["save_failure"] and service.problems()
        assert "not saved" in caplog.messages and service.counts.saves_failed == 1
        with pytest.raises(StoreError, match="cannot be written"):
            service.save()
        (tmp_path / "elsewhere").rename(versions)
        service.learner._retry = 0.0  # after half a minute it tries again
        service.settle()
        assert service.problems() == [] and service.store.versions[-1].n_rows == N + 15
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 15


def test_a_store_that_was_moved_or_removed_takes_nothing(file, tmp_path):
    """What would be written now would not be where the next process looks."""
    with begun(file, tmp_path / "s") as service:
        service.learn(rows(N, N + 5))
        service.settle()
        before = service.predict(rows(N, N + 1, "rich"))
        (tmp_path / "s").rename(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match=r"journal\.sqlite: the journal cannot be used .* put the folder back"):
            service.learn(rows(N, N + 5))
        service.settle()
        assert "cannot be used" in service.problems()[0] and service.state()["learn_failure"] is not None
        answers = service.predict([{**rows(N, N + 1, "rich")[0], "id": 1}])
        assert answers == [before[0] | {"id": 1, "waits_for_label": False}]
        assert service.state()["rows"] == N + 5 and service.counts.waiting_not_kept == 1
        (tmp_path / "elsewhere").rename(tmp_path / "s")
        assert service.learn(rows(N, N + 5)) == {"learned": 5} and service.problems() == []
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 10


def test_learning_that_fails_halfway_is_not_acknowledged(file, tmp_path, monkeypatch):
    def fail(*arguments):
        raise MemoryError

    service = begun(file, tmp_path / "s")
    service.learn(rows(N, N + 5))
    service.predict([{**rows(N, N + 1)[0], "id": 1}])
    with monkeypatch.context() as patched:
        patched.setattr("tunefree.serving.learner.learn_batch", fail)
        with pytest.raises(StoreError, match="learning failed"):
            service.label([{"id": 1, "rich": "no"}], "labels")
    with pytest.raises(StoreError, match="learning failed"):
        service.learn(rows(N, N + 5), "rows")
    assert len(service.predict(rows(N, N + 5, "rich"))) == 5
    assert "started again" in service.problems()[0]
    with pytest.raises(StoreError, match="learning failed"):
        service.save()
    service.close()
    with begun(file, tmp_path / "s") as again:
        assert again.state()["rows"] == N + 5 and again.state()["waiting"] == 1
        assert again.label([{"id": "1", "rich": "no"}], "labels") == {"learned": 1, "unknown": []}
        assert again.learn(rows(N, N + 5), "rows") == {"learned": 5}
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 11


def test_versions_are_kept_and_gone_back_to(file, tmp_path):
    unknown = rows(1100, 1200, "rich")
    with begun(file, tmp_path / "s", Keeping(save_every=10, keep_versions=3)) as service:
        first = service.predict(unknown)
        for start in range(N, N + 30, 10):
            service.learn(rows(start, start + 10))
        service.settle()
        assert [version.number for version in service.store.versions] == [2, 3, 4]
        assert [version.n_rows for version in service.store.versions] == [N + 10, N + 20, N + 30]
        files = {path.name for path in (tmp_path / "s" / "versions").iterdir()}
        assert files == {"000002.model", "000003.model", "000004.model"}
        assert [event.sequence for event in service.store.events_after(0)] == [2, 3]
        with pytest.raises(ModelError, match=r"there is no version 1; those that are kept are 2, 3, 4"):
            service.roll_back(1)
        service.learn(rows(N + 30, N + 35))
        assert service.roll_back(2) == 5
        assert service.state()["rows"] == N + 10 and service.store.versions[-1].reason == "rolled back to version 2"
        assert service.predict(unknown) != first
        service.learn(rows(N, N + 1))
    with begun(file, tmp_path / "s") as service:
        assert service.state()["rows"] == N + 11


def test_what_is_damaged_in_a_store_is_passed_over_or_refused_and_erases_nothing(file, tmp_path, caplog):
    versions, other = tmp_path / "s" / "versions", write_model(tmp_path / "pool", learner="pool")
    with begun(file, tmp_path / "s") as service:
        for start in (N, N + 10, N + 20):
            service.learn(rows(start, start + 10))
            service.save()
        service.learn(rows(N, N + 5))
    whole = Trained.load(tmp_path / "s" / "current.model")
    (versions / "000005.model").write_bytes(b"")
    (versions / "000004.model").unlink()
    caplog.clear()
    with begun(other, tmp_path / "s") as service:  # goes on, whatever model is named
        assert caplog.messages[:3] == ["another model", "damaged", "damaged"]
        assert '{"take": FILE} to /versions' in caplog.records[0].details["problem"]
        assert service.learner.trained.progress.progressive[0] == whole.progress.progressive[0]
        number = service.roll_back(2)
    (versions / f"{number:06d}.model").unlink()
    with begun(file, tmp_path / "s") as service:  # the rows that a roll-back left out are not learned again
        assert service.state()["rows"] == N + 20
    files = {path: path.read_bytes() for path in versions.iterdir()}
    (tmp_path / "s" / "journal.sqlite").write_bytes(b"")
    with pytest.raises(ModelError, match="lists no version, but 'versions' has models; restore it from a backup"):
        begun(file, tmp_path / "s")
    assert files == {path: path.read_bytes() for path in versions.iterdir()}


def test_any_error_of_saving_is_told_until_a_roll_back(file, tmp_path, monkeypatch):
    service = begun(file, tmp_path / "s")
    service.learn(rows(N, N + 5))
    with monkeypatch.context() as patched:
        patched.setattr(Trained, "save", lambda *_: float("x"))
        with pytest.raises(StoreError, match="could not convert"):
            service.save()
    assert service.roll_back(1) == 2 and service.problems() == []
    service.learn(rows(N, N + 5))
    monkeypatch.setattr(Trained, "save", lambda *_: float("x"))
    service.close()
    assert "could not convert" in service.learner.failure


def test_an_incoming_model_is_taken(file, tmp_path):
    with begun(file, tmp_path / "s") as service:
        train(open_source(table(0, 500)), plan()).save(tmp_path / "s" / "incoming" / "new.model")
        train(open_source(table(0, 500)), plan(target="job")).save(tmp_path / "s" / "incoming" / "other.model")
        assert service.take("new.model") == 2
        assert service.state()["rows"] == 500
        for name, message in (
            ("other.model", "classification of 'job', and the one that is served for classification of 'rich'"),
            ("../people.model", "the store's folder 'incoming' has no file"),
            ("none.model", "no file 'none.model'; did you mean 'new.model'"),
            ("", "the store's folder 'incoming' has no file"),
            ("a\0b", "the store's folder 'incoming' has no file"),
            ("\ud800", "the store's folder 'incoming' has no file"),
        ):
            with pytest.raises(ModelError, match=message):
                service.take(name)
        assert service.state()["version"] == 2


def test_what_cannot_be_served_is_refused(file, tmp_path):
    model, store = Trained.load(file), tmp_path / "s"
    begun(file, store).close()
    checkpoint = replace(model, progress=replace(model.progress, complete=False))
    Trained.load(write_model(tmp_path / "pool", learner="pool")).save(tmp_path / "small", only_for_prediction=True)
    (tmp_path / "rows.svm").write_text("0 1:1\n1 2:1\n" * 20)
    lines = train(open_source(tmp_path / "rows.svm"), Plan(learner="scinol2", task="classification"))
    for serve, problem in (
        (lambda: opened(store, tmp_path / "t"), "is a store, which is served as it is; leave `output` out"),
        (lambda: opened(file, Path("-")), "-: this is not written to standard output"),
        (lambda: opened(file, file), "is something else than a store"),
        (lambda: opened(file, tmp_path), "is something else than a store"),
        (lambda: Service(None, tmp_path / "none"), "is no store of a model"),
        (lambda: begun(file, tmp_path / "t", admission=Admission(id="rich")), "`id='rich'`: 'rich' is the target"),
        (lambda: begun(tmp_path / "small", tmp_path / "none"), "this model only predicts; serve the model that it"),
        (lambda: Service(str(file)), "is no model; load one by `Trained.load"),
        (lambda: Service(checkpoint), "the model is a checkpoint"),
        (lambda: Service(lines), "the model was trained on svmlight text"),
        (lambda: Limits(host="0.0.0.0"), "`host='0.0.0.0'` lets other machines in; name a file with a token"),
        (Limits(host="localhost", token_file=tmp_path / "none").token, "the token cannot be read"),
    ):
        with pytest.raises(ModelError, match=problem):
            serve()
    assert opened(store, store) == (None, store) and Limits(host="localhost").token() is None
    begun(file, tmp_path / "t").close()  # an error has left no lock there, and no store elsewhere
    assert not (tmp_path / "none").exists()


def test_requests_that_come_as_it_ends_or_later_are_told_so(file):
    with Service(Trained.load(file)) as service:
        with learning_paused(service):
            closing = Thread(target=service.close)
            closing.start()
            until(lambda: service.learner._is_over)
            late = service.learner.submit(Request(rows(N, N + 1)))
        closing.join()
        for ask in (late.result, lambda: service.learn(rows(N, N + 1)), service.save):
            with pytest.raises(StoreError, match="the server has ended; nothing of this request was learned"):
                ask()
    with Service(Trained.load(file)) as service, pytest.raises(ModelError, match="there is no store"):
        service.take("new.model")


def test_what_an_end_left_behind_is_removed(file, tmp_path):
    begun(file, tmp_path / "s").close()
    versions = tmp_path / "s" / "versions"
    for name in ("000009.model", "000002.model.0123456789abcdef.part", "mine.model", "000003.model.copy"):
        (versions / name).write_bytes(b"half a mod")
    (versions / "000007.model").mkdir()
    (tmp_path / "s" / "current.model").unlink()
    with begun(file, tmp_path / "s") as service:
        service.learn(rows(N, N + 5))
        service.save()
    names = ["000001.model", "000002.model", "000003.model.copy", "000007.model", "mine.model"]
    assert sorted(path.name for path in versions.iterdir()) == names
    assert Trained.load(tmp_path / "s" / "current.model").progress.complete


def test_a_journal_that_is_damaged_or_of_another_version_is_refused(file, tmp_path):
    begun(file, tmp_path / "s").close()
    journal = tmp_path / "s" / "journal.sqlite"
    with sqlite3.connect(journal) as database:
        database.execute("INSERT OR REPLACE INTO facts VALUES ('format', 99)")
    database.close()
    with pytest.raises(StoreError, match="another version of tunefree"):
        begun(file, tmp_path / "s")
    for change, problem in (
        ("DELETE FROM facts WHERE name = 'format'", None),
        ("INSERT INTO events (rows, remembered) VALUES ('x', '')", "event .* of the journal is damaged"),
        ("UPDATE events SET rows = '[]', remembered = x'00'", "event .* of the journal is damaged"),
        ("DELETE FROM versions", "lists no version, but 'versions' has models; restore it from a backup"),
    ):
        with sqlite3.connect(journal) as database:
            database.execute(change)
        database.close()
        if problem is not None:
            with pytest.raises((ModelError, StoreError), match=problem):
                Service(None, tmp_path / "s")
    journal.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(StoreError, match="cannot be used"):
        begun(file, tmp_path / "s")
    assert not (tmp_path / "s" / "lock").exists()


def test_a_clock_that_jumps_within_a_process_or_between_two_makes_nothing_old(file, tmp_path, monkeypatch):
    [row] = rows(N, N + 1)
    true_time = time.time
    for jump in (3e8, -3e8, 6e8):
        with begun(file, tmp_path / "s", Keeping(label_days=0.5)) as service:
            service.predict([{**row, "id": 5}])
            monkeypatch.setattr(time, "time", lambda jump=jump: true_time() + jump)
            service.learner._looked = -1e9
            service.settle()
            service.settle()
            assert service.state()["waiting"] == 1
        with begun(file, tmp_path / "s", Keeping(label_days=0.5)) as service:
            service.settle()
            assert service.label([{"id": "5", "rich": "no"}])["learned"] == 1


def test_requests_that_come_together_and_cut_a_group(tmp_path):
    """A process that is started again reads them from the journal, and does not know which came together."""
    whole = table(0, N) | {"home": [place // 7 for place in range(N)]}
    train(open_source(whole), plan(learner="pool", groups="home")).save(tmp_path / "m")
    later = [{**row, "home": place // 7} for place, row in enumerate(rows(N, N + 100), N)]
    with begun(tmp_path / "m", tmp_path / "s", Keeping(keep_versions=10**6, save_every=40)) as service:
        with learning_paused(service):
            sent = [service.learner.submit(Request(later[start : start + 5])) for start in range(0, 100, 5)]
        assert all(future.result(NEVER) == {"learned": 5} for future in sent)
    assert len(check_store(tmp_path / "s", tmp_path / "u")) == 100
