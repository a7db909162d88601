"""Intervals, quantiles and sets in the answers of a service, for requests that ask for them."""

import asyncio

import numpy as np
import pytest

from tests.serving.model import N, rows, write_model
from tunefree.core.errors import ModelError
from tunefree.model_files.plan import Plan
from tunefree.serving.service import Service
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows.output_columns import OutputColumns

http = pytest.importorskip("tunefree.serving.http")
asked_for, NAMES = http.asked_for, http.SURENESS


@pytest.fixture(scope="module")
def numbers():
    """A service of numbers, and rows to predict."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    table = {"x": x, "y": 2.0 * x + rng.normal(size=600)}
    with Service(train(open_source(table), Plan(target="y"))) as service:
        yield service, [{"x": float(value)} for value in x[:300]]


def test_intervals_and_quantiles_are_those_of_the_model(numbers):
    service, sent = numbers
    answers = service.predict(sent, asked_for({"interval": "0.5,.9", "quantiles": "0.25"}))
    assert [set(answer) for answer in answers] == [{"prediction", "interval", "quantiles"}] * len(sent)
    for answer in answers:
        (low, high), wide = answer["interval"]["0.5"], answer["interval"]["0.9"]
        assert wide[0] < low < answer["prediction"] < high < wide[1]
        assert answer["quantiles"] == {"0.25": low}
    assert service.predict(sent[:1]) == [{"prediction": answers[0]["prediction"]}]


def test_requests_that_ask_for_other_things_are_predicted_together(numbers):
    service, sent = numbers
    layouts = [
        OutputColumns(),
        OutputColumns(interval=(0.8,)),
        OutputColumns(set=(0.8,)),
        OutputColumns(quantiles=(0.5,)),
    ]

    async def answers():
        predictions = service.predictor
        asked = [predictions.answer(sent[:2], layout) for layout in layouts * 5]
        return await asyncio.gather(*asked, return_exceptions=True)

    for place, of_request in enumerate(asyncio.run(answers())):
        if layouts[place % 4].set:
            assert isinstance(of_request, ModelError) and "`set` is for classes" in str(of_request)
        else:
            keys = [{"prediction"}, {"prediction", "interval"}, set(), {"prediction", "quantiles"}][place % 4]
            assert [set(answer) for answer in of_request] == [keys] * 2


def test_http_takes_what_is_asked_for_as_parameters(tmp_path, serve):
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
    for path in ("/model", "/live", "/ready", "/versions", "/metrics", "/openapi.json"):
        status, answer = server.ask("GET", f"{path}?a=1")
        assert status == 422 and answer == {"error": f"?a is no parameter of {path}; it has no parameters"}
    assert [of["name"] for of in server.ask("GET", "/openapi.json")[1]["paths"]["/predict"]["post"]["parameters"]] == [
        *NAMES
    ]
