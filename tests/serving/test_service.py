"""A model in operation by itself: what it predicts and learns, how sure it is, and which rows it takes."""

import asyncio
import gc
import json
import weakref
from contextlib import suppress

import numpy as np
import pytest

from tests.serving.model import N, learning_paused, plan, rows, table, write_model
from tests.waiting import NEVER, until
from tunefree.core.errors import DataError, ModelError
from tunefree.estimators.model_file import estimator_of
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.serving.learner import Request
from tunefree.serving.service import Service
from tunefree.serving.settings import Admission, Keeping
from tunefree.stream.source import open_source
from tunefree.training.training import train


@pytest.fixture
def service(file):
    services = []

    def start(path=file, **options):
        services.append(Service(path if isinstance(path, Trained) else Trained.load(path), **options))
        return services[-1]

    yield start
    for one in services:
        one.close()


def predicted(service):
    """Predictions of a service for new rows, once all rows that were sent are learned."""
    service.settle()
    return service.predict(rows(1100, 1200, "rich"))


def test_rows_learned_one_by_one_go_on_with_the_stream(service, tmp_path, monkeypatch):
    monkeypatch.setattr("tunefree.serving.learner.PUBLISH_SHARE", 1e-9)  # only the first rows are published soon
    for learner, stop in (("scinol2", 1100), ("pool", 1050)):
        path = write_model(tmp_path / "m", learner=learner)
        alone, together = service(path), service(path)
        for row in rows(N, stop):
            assert alone.learn([row]) == {"learned": 1}
        until(lambda alone=alone: alone.state()["rows_published"] > N)
        together.learn(rows(N, stop))
        assert predicted(alone) == predicted(together)
        assert alone.state()["rows"] == stop
        if learner == "scinol2":
            whole = train(open_source(table(0, stop)), plan())
            assert predicted(alone) == predicted(service(whole))
            assert alone.state()["progressive_loss"] == whole.progress.progressive[0].mean_loss()


def test_predictions_equal_those_from_the_file(service):
    for options in ({}, {"learner": "pool"}, {"target": "age", "task": "regression", "learner": "pool"}):
        trained = train(open_source(table(0, N)), plan(**options))
        model, columns = estimator_of(trained), table(0, 257)  # one row more than are predicted together
        is_number = trained.plan.task == "regression"
        del columns[trained.plan.target]
        expected = model.predict(columns) if is_number else model.predict_proba(columns)[:, 0]
        answers = service(trained).predict(rows(0, 257, trained.plan.target))
        found = [a["prediction"] if is_number else next(iter(a["probabilities"].values())) for a in answers]
        assert found == expected.tolist()


@pytest.mark.parametrize("learner", ["scinol2", "pool"])
def test_labels_that_come_later_are_learned_with_their_rows(service, tmp_path, learner):
    path = write_model(tmp_path / "m", learner=learner)
    late, at_once = service(path), service(path)
    sent = [{"id": number, **row} for number, row in enumerate(rows(N, 1050, "rich"))]
    assert [answer["id"] for answer in late.predict(sent)] == list(range(50))
    labels = [{"id": number, "rich": row["rich"]} for number, row in enumerate(rows(N, 1050))]
    assert late.label([*labels, {"id": "never", "rich": "no"}]) == {"learned": 50, "unknown": ["never"]}
    assert late.label(labels[:1]) == {"learned": 0, "unknown": [0]}  # learned already
    at_once.learn(rows(N, 1050))
    assert predicted(late) == predicted(at_once)


def test_a_number_and_its_text_are_one_id(service):
    one = service()
    [row] = rows(N, N + 1, "rich")
    one.predict([{**row, "id": 1}])
    assert one.label([{"id": "1", "rich": "no"}]) == {"learned": 1, "unknown": []}
    with pytest.raises(DataError, match=r"row 2, column 'id': row 1 has the id '1', too; send each row once"):
        one.predict([{**row, "id": 1}, {**row, "id": "1"}])
    with pytest.raises(DataError, match="row 1 has the id '5', too"):
        one.label([{"id": 5, "rich": "no"}, {"id": 5, "rich": "yes"}])
    for id in (True, 1.5, [1], {"a": 1}):
        with pytest.raises(DataError, match="an id is a string or a whole number"):
            one.predict([{**row, "id": id}])
    for ask in (one.predict, one.learn, one.label, one.explain):
        with pytest.raises(DataError, match="rows are a list of dicts; put a row in a list"):
            ask({"id": 1, **row})
    assert one.counts.rows_learned == 1


def test_whole_numbers_of_json_are_categories_as_in_files(service):
    ages = [str(age) for age in range(20, 40)] * 20
    one = service(train(open_source({"age": ages, "rich": ["no", "yes"] * 200}), plan(categorical=("age",))))
    assert one.predict([{"age": "25"}]) * 3 == one.predict([{"age": age} for age in ("25", 25, 25.0)])
    assert one.learn([{"age": age, "rich": "no"} for age in (25, 25.0, 10**400)]) == {"learned": 3}


def test_labels_may_have_the_weight_and_the_group_of_their_row(service):
    columns = table(0, 200) | {"w": [1.0, 2.0] * 100, "home": [place // 5 for place in range(200)]}
    trained = train(open_source(columns), plan(learner="pool", sample_weight="w", groups="home"))
    with pytest.raises(ModelError, match="`id='home'`: 'home' is the target, the weight or the group of the model"):
        service(trained, admission=Admission(id="home"))
    one = service(trained)
    [row], label = rows(N, N + 1), {"id": 0, "rich": "no", "w": 2.0, "home": 7}
    one.predict([{**row, "id": 0}])
    with pytest.raises(DataError, match="'job': a label has an id, a target, and a weight; leave it out"):
        one.label([label | {"job": "pilot"}])
    assert one.label([label]) == {"learned": 1, "unknown": []}
    assert [event.rows for event in one.store.events_after(0)] == [[row | {"rich": "no", "w": 2.0, "home": 7}]]


def test_the_recent_loss_forgets_half_in_a_thousand_rows(service):
    one, losses = service(), []
    metrics = one.learner.trained.progress.progressive[0]
    assert one.state()["recent_loss"] is None
    for start in (N, N + 40):
        before = metrics.loss
        one.learn(rows(start, start + 40))
        losses.append((metrics.loss - before) / 40)
    share = 0.5 ** (40 / 1000)
    assert one.state()["recent_loss"] == pytest.approx(share * losses[0] + (1.0 - share) * losses[1], rel=1e-12)


def test_truth_values_are_written_as_in_json(service):
    sent = {"age": [20.0, 60.0] * 100, "rich": [False, True] * 100}
    one = service(train(open_source(sent), Plan(target="rich", learner="scinol2")))
    [answer] = one.predict([{"age": 25.0}])
    assert isinstance(answer["prediction"], bool) and [*answer["probabilities"]] == ["false", "true"]
    with pytest.raises(DataError, match=r"'age': \[true, null\] is not a number"):
        one.predict([{"age": [True, None]}])
    with pytest.raises(ModelError, match="the classes are 'false', 'true'"):
        one.explain([{"age": 25.0}], "maybe")


def test_the_oldest_rows_that_wait_are_dropped_and_counted(service):
    one = service(keeping=Keeping(remember=2))
    one.predict([{"id": number, **row} for number, row in enumerate(rows(N, N + 3, "rich"))])
    assert one.state()["waiting"] == 2 and one.counts.waiting_dropped_for_size == 1
    assert one.label([{"id": number, "rich": "no"} for number in range(3)]) == {"learned": 2, "unknown": [0]}
    assert one.state()["waiting"] == 0
    one.predict([{"id": 9, **rows(N, N + 1, "rich")[0]}])
    assert one.counts.waiting_dropped_for_size == 1


def test_rows_that_wait_too_long_are_dropped_and_counted(service):
    one = service(keeping=Keeping(label_days=2.0))
    [first, second] = rows(N, N + 2, "rich")
    one.predict([{"id": 1, **first}])
    one.store._before += 1.5 * 86400.0
    one.predict([{"id": 2, **second}])
    one.store._before += 86400.0
    one.learner._looked = -1e9
    one.settle()
    one.settle()
    assert one.counts.waiting_dropped_for_age == 1
    assert one.label([{"id": 1, "rich": "no"}, {"id": 2, "rich": "no"}]) == {"learned": 1, "unknown": [1]}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"age": "old"}, r"row 6, column 'age': 'old' is not a number; correct the row$"),
        ({"age": 10**400}, r"row 6, column 'age': the number is infinite .inf.; correct the row$"),
        ({"job": 7}, "7 is not a string"),
        ({"rich": None}, r"row 6, column 'rich': the target is missing; give it one$"),
        ({"rich": "maybe"}, r"row 6, column 'rich': the label 'maybe' is not among the classes 'no', 'yes'; correct"),
        ({"trace_id": "x"}, r"row 6, column 'trace_id': the model does not know it"),
        ({"deep": {"er": 1}}, r"row 6, column 'deep.er': the model does not know it"),
        ({"age": {"x": 1}}, r"column 'age.x': the model does not know it"),
    ],
)
def test_of_rows_with_a_bad_one_none_is_learned(service, bad, message):
    one, untouched = service(), service()
    with pytest.raises(DataError, match=message):
        one.learn([*rows(N, N + 5), {**rows(N, N + 1)[0], **bad}])
    assert one.counts.rows_learned == 0 and one.counts.requests_refused == 1
    assert one.state()["columns"] == ["age", "job"]
    for each in (one, untouched):
        each.learn(rows(N, N + 50))
    assert predicted(one) == predicted(untouched)


def test_columns_that_are_ignored_are_not_learned(service):
    one, untouched = service(admission=Admission(unknown_columns="ignore")), service()
    one.learn([{**row, "trace_id": place, "deep": {"er": 1}} for place, row in enumerate(rows(N, N + 50))])
    untouched.learn(rows(N, N + 50))
    assert predicted(one) == predicted(untouched)
    state, [event] = one.state(), one.store.events_after(0)
    assert state["columns"] == ["age", "job"] and state["values_ignored"] == 100
    assert event.rows == rows(N, N + 50)


def test_an_object_that_is_null_stands_for_its_columns(service, tmp_path):
    nested = [{"place": {"city": "ab"[k % 2], "zip": k % 5}, "rich": ["no", "yes"][k % 3 > 1]} for k in range(300)]
    nested[250] |= {"tags": [{"a": 1}]}  # of which nothing can be learned
    for k in range(2):
        (tmp_path / f"{k}.jsonl").write_text("\n".join(map(json.dumps, nested[200 * k : 200 * k + 200])))
    one = service(train(open_source(tmp_path / "*.jsonl"), plan()))
    assert one.predict([{"place": None}]) == one.predict([{"place": {"city": None, "zip": None}, "tags": [{"a": 1}]}])
    with pytest.raises(DataError, match="column 'place.zip' missing; send null where a value is not known"):
        one.predict([{"place": {"city": "a"}}])


def test_targets_that_the_loss_cannot_have_are_refused(tmp_path):
    path = write_model(tmp_path / "m", target="age", loss="poisson")
    with Service(Trained.load(path)) as one:
        [row] = rows(N, N + 1)
        with pytest.raises(DataError, match="the request, row 2, column 'age': the target is -1"):
            one.learn([row, {**row, "age": -1}])
        assert one.learn([row]) == {"learned": 1} and one.counts.requests_refused == 1


def test_rows_one_by_one_are_predicted_as_together_and_refused_as_before(service):
    one, other, unknown = service(), service(), rows(N, N + 80, "rich")
    unknown[3] |= {"age": None}
    unknown[5] |= {"job": "never seen"}
    unknown[7] |= {"age": -5e9}
    sent = [{**row, "id": k} for k, row in enumerate(unknown)]
    assert [one.predict([row])[0] for row in sent] == other.predict(sent)
    states = [served.state() for served in (one, other)]
    places = [[(odd["column"], odd["problem"], odd["rows"]) for odd in state.pop("oddities")] for state in states]
    assert states[0] == states[1]
    assert places[0] == places[1] and len(places[0]) >= 2
    for bad in ({"ag": 1}, {"job": {"x": 1}}, {"age": "old"}, {"age": True}, {"job": [1]}):
        with pytest.raises(DataError):
            one.predict([{**unknown[0], **bad}])
    with pytest.raises(DataError, match="missing"):
        one.predict([{"job": "clerk"}])


def together(one, *requests):
    """The answers to requests that come at the same time, or errors."""

    async def answers():
        return await asyncio.gather(*map(one.answer, requests), return_exceptions=True)

    return asyncio.run(answers())


def test_rows_with_ids_that_come_at_the_same_time_wait_for_their_labels(service):
    one, known = service(), rows(N, N + 60)
    sent = [[{**row, "id": k}] for k, row in enumerate(rows(N, N + 60, "rich"))]
    answers = together(one, *sent, sent[0] + sent[1], [{**sent[0][0], "id": True}])
    assert [answer["id"] for of_request in answers[:-1] for answer in of_request] == [*range(60), 0, 1]
    assert isinstance(answers[-1], DataError) and one.store.n_rows["waiting"] == 60
    labels = [{"id": k, "rich": row["rich"]} for k, row in enumerate(known)]
    assert one.label(labels) == {"learned": 60, "unknown": []}


STRANGE = [None, True, 0, -0.0, 10**30, -(10**400), 1e308, "", " ", "\0", "\ud800", "x" * 10_000, [], [[]], [1, "a"]]
STRANGE += [{}, {"": {"": 1}}, {"a": [{"b": None}]}, [None], [True, 1], "2020-02-30", "1,5", "NaN", [{"a": 1}, 2]]


def test_any_request_is_answered_and_learning_goes_on(service):
    """Odd values and names in every place, at once with rows that can be used, which are all learned."""
    one, other = service(admission=Admission(unknown_columns="ignore", new_classes=True)), service()
    deep = [1]
    for _ in range(300):
        deep = {"a": deep}
    [good] = rows(N, N + 1)
    names = ("age", "job", "rich", "id", "", "\0", "\ud800", "a.b", "age.x", "job.")
    sent = [{**good, name: value} for name in names for value in [*STRANGE, deep]]
    sent += [{}, {"": 1}, {"id": 5}, deep]
    for admission in ("refuse", "ignore"):
        two = service(admission=Admission(unknown_columns=admission))
        asked = [two.learner.submit(Request([row])) for row in sent] + [two.learner.submit(Request([good]))]
        failures = [error for error in (future.exception(60) for future in asked) if error is not None]
        assert failures and all(isinstance(error, DataError) for error in failures), set(map(repr, failures))
        assert asked[-1].result() == {"learned": 1} and two.learner.broken is None
    for row in sent:
        for ask in (one.learn, one.predict, one.label):
            with suppress(DataError):
                ask([row])
    assert one.learner.broken is None and other.learn([good]) == one.learn([good]) == {"learned": 1}


def test_new_classes_are_learned_if_asked(service):
    one = service(admission=Admission(new_classes=True))
    sent = [{**row, "rich": "perhaps"} for row in rows(N, N + 40)]
    assert one.learn(sent) == {"learned": 40}
    one.settle()
    assert one.state()["classes"] == ["no", "yes", "perhaps"]
    assert set(one.predict(rows(N, N + 1, "rich"))[0]["probabilities"]) == {"no", "yes", "perhaps"}
    many = [{**row, "rich": f"c{number}"} for number, row in enumerate(rows(0, 1000))]
    with pytest.raises(DataError, match="there are at most 1000 classes"):
        one.learn(many)
    assert one.state()["classes"] == ["no", "yes", "perhaps"]


def test_predictions_do_not_wait_for_learning(service):
    """A request to learn is held up halfway, and predictions are answered."""
    one = service()
    with learning_paused(one) as holding:
        learned = one.learner.submit(Request(rows(N, N + 5)))
        assert len(one.predict(rows(N, N + 100, "rich"))) == 100
        assert holding.is_alive() and not learned.done()
    assert learned.result(NEVER) == {"learned": 5}


def test_other_predictions_are_answered_while_a_large_request_is(service):
    predictions, sent, answered = service(), rows(0, N, "rich"), []

    async def ask(n_rows):
        assert len(await predictions.answer(sent[:n_rows])) == n_rows
        answered.append(n_rows)

    async def ask_both():
        await asyncio.gather(ask(N), ask(1))

    asyncio.run(ask_both())
    assert answered == [1, N]


def test_models_that_were_published_are_not_kept_by_errors(service):
    """Without a look for garbage, which is long in coming: each refused request would keep a model."""
    one, kept = service(), []
    gc.disable()
    try:
        for _ in range(3):
            one.learn(rows(N, N + 5))
            one.settle()
            kept.append(weakref.ref(one.learner.published.model))
            for ask in (one.predict, one.explain, one.learn, one.label):
                with pytest.raises(DataError):
                    ask([{"age": "old", "job": None, "rich": "no", "id": 1, "more": 2}])
        one.learn(rows(N, N + 5))
        one.settle()
        one.predict(rows(N, N + 1))
        assert [model() for model in kept] == [None] * 3
    finally:
        gc.enable()


def test_a_rise_is_in_the_state(service):
    """The target follows a column, and the other way round from a row on."""
    n_learned = 1500
    a = np.random.default_rng(0).normal(size=n_learned + 100).round(4)
    y = np.where((a > 0.0) ^ (np.arange(len(a)) >= n_learned), "yes", "no")
    rows = [{"a": float(x), "y": str(label)} for x, label in zip(a, y, strict=True)]
    service = service(train(open_source({"a": a[:n_learned], "y": y[:n_learned]}), Plan("y", learner="scinol2")))
    assert service.state()["drifts"] == []
    service.learn(rows[n_learned:])
    service.settle()
    (rise,) = service.state()["drifts"]
    assert (rise["file"], rise["row_in_file"]) == ("all learned rows", rise["row"])
    assert abs(rise["row"] - n_learned - 1) < 20 and service.state()["drift_count"] == 1
    json.dumps(service.state())


def test_intervals_and_quantiles_equal_the_model(service, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    service = service(train(open_source({"x": x, "y": 2.0 * x + rng.normal(size=600)}), Plan(target="y")))
    sent = [{"x": float(value)} for value in x[:300]]
    asked_for = pytest.importorskip("tunefree.serving.http").asked_for
    answers = service.predict(sent, asked_for({"interval": "0.5,.9", "quantiles": "0.25"}))
    assert [set(answer) for answer in answers] == [{"prediction", "interval", "quantiles"}] * len(sent)
    for answer in answers:
        (low, high), wide = answer["interval"]["0.5"], answer["interval"]["0.9"]
        assert wide[0] < low < answer["prediction"] < high < wide[1]
        assert answer["quantiles"] == {"0.25": low}
    assert service.predict(sent[:1]) == [{"prediction": answers[0]["prediction"]}]
    ends = [("interval", 0.9, np.array([[-np.inf, 1.0]]))]  # as after rows that the model did not expect
    monkeypatch.setattr("tunefree.serving.service.sureness", lambda *_: ends)
    assert service.predict(sent[:1], asked_for({"interval": "0.9"}))[0]["interval"] == {"0.9": [None, 1.0]}


def test_http_takes_options_as_parameters(tmp_path, serve):
    pytest.importorskip("tunefree.serving.http")
    server = serve(write_model(tmp_path / "m", learner="pool"))
    row = rows(N, N + 1, "rich")[0]
    status, answer = server.ask("POST", "/predict?set=0.9", row)
    assert status == 200 and set(answer) == {"prediction", "probabilities", "set"}
    assert server.ask("POST", "/predict?set=0.9", [row, row])[1] == [answer, answer]
    label = {"id": 1, "rich": "no"}
    for path, sent, message in (
        ("/predict?sets=0.9", row, "?sets is no parameter of /predict; the parameters are interval, quantiles, set, "),
        ("/predict?set=0.9&set=0.5", row, "?set is there twice; send all its numbers at once"),
        ("/predict?interval=0.9", row, "?interval is for numbers, and this model predicts classes; leave it out"),
        ("/predict?set=90", row, "?set must lie between 0 and 1, not be 90; for 90 per cent pass 0.9"),
        ("/predict?set=x", row, "?set takes numbers with commas between them, not 'x'"),
        ("/predict?conditional=class", row, "?conditional has no effect without ?set"),
        ("/predict?set=0.9&conditional=x", row, "?conditional must be 'class', not 'x'"),
        ("/explain?klass=yes", row, "?klass is no parameter of /explain; the parameters are class"),
        ("/explain?class=perhaps", row, "no class 'perhaps'"),
        ("/learn?set=0.9", {**row, "rich": "no"}, "?set is no parameter of /learn; it has no parameters"),
        ("/labels?id=1", label, "?id is no parameter of /labels"),
        ("/versions?save=true", {"save": True}, "?save is no parameter of /versions"),
    ):
        status, answer = server.ask("POST", path, sent)
        assert status == 422 and message in answer["error"], answer
    for path in ("/model", "/live", "/ready", "/versions", "/metrics"):
        status, answer = server.ask("GET", f"{path}?a=1")
        assert status == 422 and answer == {"error": f"?a is no parameter of {path}; it has no parameters"}
