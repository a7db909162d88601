"""A challenger learns the rows of the model that is served, loses none, and is compared and promoted."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.serving.chaos import children
from tests.serving.model import N, plan, rows, table, write_model
from tests.serving.undisturbed import learned_from
from tests.waiting import until
from tunefree.core.errors import ModelError
from tunefree.model_files.trained import Trained
from tunefree.serving import shadow
from tunefree.serving.place import Place
from tunefree.serving.service import Service
from tunefree.serving.settings import Admission, Keeping
from tunefree.stream.source import open_source
from tunefree.training.training import train

ALL = Keeping(keep_versions=10**6)


def begun(folder, learner="scinol2", keeping=ALL, **options):
    return Service(Trained.load(write_model(folder / "m", learner=learner)), folder / "s", keeping=keeping, **options)


def challenge(service, learner="scinol2", stop=500, **options):
    """Let a model of the first rows be the challenger; returns its file."""
    file = service.store.folder / "incoming" / "new.model"
    train(open_source(table(0, stop)), plan(learner=learner, **options)).save(file)
    service.challenge("new.model")
    return file


def caught_up(service):
    """What is told of the challenger once it has learned all."""
    service.learner.between(service.learner.write_losses)

    def has_learned():
        state = service.state()["challenger"]
        assert state["cannot learn"] is None, state
        return not state["rows behind"]

    until(has_learned)
    return service.state()["challenger"]


def learn(service, start, stop, step=10):
    for first in range(start, stop, step):
        service.learn(rows(first % N, first % N + step))


@pytest.mark.all_trees  # the challenger is a process of its own
@pytest.mark.parametrize("learner", [pytest.param("scinol2", marks=pytest.mark.slow), "pool"])
def test_it_learns_what_the_served_model_learns(tmp_path, learner):
    """To the byte as an undisturbed learning of the journal, over stops, saves and labels that come late."""
    with begun(tmp_path, "pool", Keeping(keep_versions=10**6, save_every=40)) as service:
        learn(service, 0, 30)
        file = challenge(service, learner)
        learn(service, 30, 80)
        assert caught_up(service)["rows learned here"] == 50
        sent = [{**row, "id": id} for id, row in enumerate(rows(100, 130, "rich"))]
        service.predict(sent)
        learn(service, 80, 100)
        caught_up(service)
        service.label([{"id": id, "rich": row["rich"]} for id, row in enumerate(rows(100, 130))])
        state = caught_up(service)
        assert state["rows learned here"] == state["rows compared"] == 100 and state["cannot be saved"] is None
    with begun(tmp_path, "pool") as service:
        learn(service, 200, 240)
        state = caught_up(service)
        assert state["rows learned here"] == state["rows compared"] == 140
        place = service.shadow.place
    saved = Place.read(tmp_path / "s")
    assert saved == place
    n_learned = learned_from(tmp_path / "s", Trained.load(file), after=3, path=tmp_path / "u")
    assert n_learned == 140 and (tmp_path / "u").read_bytes() == saved.file(tmp_path / "s").read_bytes()


@pytest.mark.parametrize("whose", ["service", pytest.param("challenger", marks=pytest.mark.slow)])
def test_killed_at_any_moment_it_loses_nothing(tmp_path, serve, whose):
    file = write_model(tmp_path / "m")
    kept = (file, "-o", tmp_path / "s", "--keep-versions", 10**6, "--save-every", 25)
    server = serve(*kept)
    train(open_source(table(0, 500)), plan()).save(tmp_path / "s" / "incoming" / "new.model")
    assert server.ask("POST", "/versions", {"challenge": "new.model"}) == (
        200,
        {"version": 1, "challenger": "new.model"},
    )
    for start in range(0, 100, 5):
        assert server.ask("POST", "/learn", rows(start, start + 5))[0] == 200
        if start == 60:
            time.sleep(0.3)
            if whose == "service":
                assert server.end(signal.SIGKILL) == -signal.SIGKILL
            else:
                [child] = children(server.process.pid)
                os.kill(child, signal.SIGKILL)
                assert "status -9" in server.event("challenger ended")["problem"]
                assert server.metric("challenger_can_learn") == 0.0
                assert server.ask("GET", "/ready")[0] == 200
                server.end()
            server = serve(*kept)
    until(lambda: not server.ask("GET", "/model")[1]["challenger"]["rows behind"])
    state = server.ask("GET", "/model")[1]["challenger"]
    assert state["rows learned here"] == 100 and server.end() == 0
    n_learned = learned_from(tmp_path / "s", Trained.load(tmp_path / "s" / "incoming" / "new.model"), 0, tmp_path / "u")
    assert n_learned == 100
    assert (tmp_path / "u").read_bytes() == Place.read(tmp_path / "s").file(tmp_path / "s").read_bytes()


def test_a_process_that_was_killed_is_started_again(tmp_path, monkeypatch):
    monkeypatch.setattr(shadow, "RESTART", 0.2)
    with begun(tmp_path) as service:
        challenge(service)
        learn(service, 0, 20)
        caught_up(service)
        service.shadow._process.kill()
        learn(service, 20, 40)

        def goes_on():
            service.learner.between(service.learner.write_losses)
            state = service.state()["challenger"]
            return not (state["cannot learn"] or state["rows behind"])

        until(goes_on)
        assert service.state()["challenger"]["rows learned here"] == 40


def test_which_is_better_is_known_and_the_better_is_promoted(tmp_path):
    """The model that is served ignores a column that matters."""
    train(open_source(table(0, N)), plan(ignore=("age",))).save(tmp_path / "m")
    with Service(Trained.load(tmp_path / "m"), tmp_path / "s", keeping=ALL) as service:
        challenge(service, "pool", stop=N)
        learn(service, 0, N)
        state = caught_up(service)
        assert state["is better"] is True and state["evidence that it is better"] > 1000.0
        assert state["loss"] < state["loss of the served model"]
        loss = service.state()["progressive loss"]
        assert service.promote() == 2
        assert service.state()["challenger"] is None and service.state()["progressive loss"] < loss
        assert service.state()["columns"] == ["age", "job"]
        assert service.store.versions[-1].reason == "the challenger new.model was promoted"
        with pytest.raises(ModelError, match="there is no challenger"):
            service.promote()
        learn(service, 0, 20)
        assert service.store.needed_after is None
    with Service(None, tmp_path / "s") as service:
        assert service.shadow is None and service.state()["rows"] == N + N + 20
    assert sorted(path.name for path in (tmp_path / "s" / "challenger").iterdir()) == []


def test_a_copy_of_the_served_model_is_not_better(tmp_path):
    with begun(tmp_path) as service:
        challenge(service, stop=N)
        learn(service, 0, 300)
        state = caught_up(service)
        assert state["loss"] == state["loss of the served model"] and state["is better"] is None
        assert state["evidence that it is better"] == state["evidence that it is worse"] == 1.0


def test_it_is_compared_with_the_model_that_is_served_now(tmp_path):
    with begun(tmp_path) as service:
        challenge(service)
        learn(service, 0, 50)
        assert caught_up(service)["rows compared"] == 50
        service.save()
        service.roll_back(1)
        learn(service, 50, 80)
        state = caught_up(service)
        assert state["rows compared"] == 30 and state["rows learned here"] == 80


def test_late_labels_are_compared_by_what_both_predicted_as_the_row_came(tmp_path):
    """Rows that the challenger did not see wait are learned, and not compared."""
    with begun(tmp_path, "pool") as service:
        learn(service, 0, 10)
        sent = [{**row, "id": id} for id, row in enumerate(rows(100, 120, "rich"))]
        service.predict(sent[:10])
        challenge(service, "pool")
        caught_up(service)
        service.predict(sent[10:])
        for start in (10, 20):  # before the second of these it looks at the rows that wait
            learn(service, start, start + 10)
            caught_up(service)
        service.label([{"id": id, "rich": row["rich"]} for id, row in enumerate(rows(100, 120))])
        state = caught_up(service)
        assert state["rows learned here"] == 40
        seen = {tuple(row.items()) for row in rows(110, 120, "rich")}
        expected = sum(tuple(row.items()) in seen for row in rows(100, 120, "rich"))
        assert state["rows compared"] == 20 + expected


def test_what_a_challenger_needs_is_kept_and_then_forgotten(tmp_path):
    keeping = Keeping(keep_versions=1, save_every=20)
    with begun(tmp_path, keeping=keeping) as service:
        learn(service, 0, 40)
        service.settle()
        assert not list(service.store.journal.events_after(0))
        challenge(service)
        os.kill(service.shadow._process.pid, signal.SIGSTOP)
        learn(service, 40, 140)
        service.save()
        assert len(list(service.store.journal.events_after(0))) == 10
        assert service.state()["challenger"]["rows behind"] == 100
        os.kill(service.shadow._process.pid, signal.SIGCONT)
        caught_up(service)
        learn(service, 0, 20)
        service.save()
        service.settle()
        caught_up(service)
        assert len(list(service.store.journal.events_after(0))) <= 4
        service.drop_challenger()
        learn(service, 0, 20)
        service.settle()
        assert not list(service.store.journal.events_after(0))


def test_columns_that_only_the_served_model_knows_are_left_out(tmp_path):
    with begun(tmp_path, "pool") as service:
        challenge(service, "pool", ignore=("job",))
        learn(service, 0, 50)
        assert caught_up(service)["rows compared"] == 50
        assert service.promote() == 2 and service.state()["columns"] == ["age"]
        assert service.learner.recent is None  # which was that of the model before
        [row] = rows(50, 51)  # clients go on to send what they sent
        assert service.learn([row]) == {"learned": 1}
        sent = [{name: cell for name, cell in row.items() if name != "rich"}]
        assert len(service.predict(sent)) == len(service.explain(sent)) == 1


def test_models_that_cannot_challenge(tmp_path):
    with begun(tmp_path) as service:
        incoming = service.store.folder / "incoming"
        for name, options, message in (
            ("target", {"target": "job"}, "another target, task or loss"),
            ("loss", {"loss": "hinge"}, "another target, task or loss"),
        ):
            train(open_source(table(0, 500)), plan(**options)).save(incoming / name)
            with pytest.raises(ModelError, match=message):
                service.challenge(name)
        wide = table(0, 500) | {"town": ["a", "b"] * 250}
        train(open_source(wide), plan()).save(incoming / "wide")
        with pytest.raises(ModelError, match="does not know the columns 'town', which rows lack"):
            service.challenge("wide")
        for name in ("../m", "none"):
            with pytest.raises(ModelError):
                service.challenge(name)
        challenge(service)
        with pytest.raises(ModelError, match=r"new\.model is a challenger; promote it or drop it first"):
            service.challenge("new.model")
        service.drop_challenger()
    with Service(Trained.load(tmp_path / "m")) as service, pytest.raises(ModelError, match="name a file of the store"):
        service.challenge("new.model")


def test_columns_that_come_later_are_learned_by_both(tmp_path):
    with begun(tmp_path, admission=Admission(unknown_columns="learn")) as service:
        challenge(service)
        service.learn([{**row, "town": "Rome"} for row in rows(0, 20)])
        caught_up(service)
        assert service.promote() == 2
        assert service.state()["columns"] == ["age", "job", "town"]


def test_over_http(tmp_path, serve):
    token = tmp_path / "token"
    token.write_text("a-token-of-letters\n")
    bearer = {"Authorization": "Bearer a-token-of-letters"}
    server = serve(write_model(tmp_path / "m"), "-o", tmp_path / "s", "--token-file", token)
    train(open_source(table(0, N)), plan()).save(tmp_path / "s" / "incoming" / "new.model")
    assert server.ask("POST", "/versions", {"challenge": "new.model"})[0] == 401
    assert server.ask("POST", "/versions", {"promote": True}, **bearer)[0] == 422
    assert server.ask("POST", "/versions", {"challenge": "new.model"}, **bearer)[0] == 200
    server.ask("POST", "/learn", rows(0, 50), **bearer)
    until(lambda: server.metric("challenger_rows_compared") >= 50)
    assert server.metric("challenger_loss") == server.metric("challenger_loss_of_served")
    assert server.metric("challenger_can_learn") == 1.0
    assert server.ask("POST", "/versions", {"promote": True}, **bearer) == (200, {"version": 2, "challenger": None})
    assert "tunefree_challenger" not in server.ask("GET", "/metrics")[1].decode()
    assert server.ask("POST", "/versions", {"drop challenger": True}, **bearer)[0] == 422
    assert server.end() == 0


def test_numbers_with_weights(tmp_path):
    whole = table(0, N) | {"importance": [float(place % 3) for place in range(N)]}
    options = {"target": "age", "task": "regression", "weight": "importance", "learner": "pool"}
    train(open_source(whole), plan(**options)).save(tmp_path / "m")
    with Service(Trained.load(tmp_path / "m"), tmp_path / "s", keeping=ALL) as service:
        (tmp_path / "s" / "incoming" / "new.model").write_bytes((tmp_path / "m").read_bytes())
        service.challenge("new.model")
        sent = [{**row, "importance": float(place % 3)} for place, row in enumerate(rows(0, 60))]
        for start in range(0, 60, 10):
            service.learn(sent[start : start + 10])
        state = caught_up(service)
        assert state["rows compared"] == 40 and state["loss"] == state["loss of the served model"] > 0.0
        assert state["is better"] is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: "",
        lambda kept: json.dumps(kept)[:20],
        lambda kept: "[]",
        lambda kept: json.dumps({name: kept[name] for name in kept if name != "comparison"}),
        lambda kept: json.dumps(kept | {"sequence": "1"}),
        lambda kept: json.dumps(kept | {"rows": -1}),
        lambda kept: json.dumps(kept | {"comparison": kept["comparison"] | {"weight": None}}),
    ],
)
def test_a_place_that_is_damaged_is_named_with_what_helps(tmp_path, damage):
    Place("new.model", 3).save(tmp_path, train(open_source(table(0, 100)), plan()))
    path = tmp_path / "challenger" / "state.json"
    assert Place.read(tmp_path) == Place("new.model", 3)
    path.write_text(damage(json.loads(path.read_text())))
    with pytest.raises(ModelError) as error:
        Place.read(tmp_path)
    assert str(error.value).startswith(f"{path}: is damaged") and f"remove the folder {path.parent}" in str(error.value)
