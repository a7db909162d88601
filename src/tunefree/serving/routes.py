"""The routes of the HTTP interface, and their description by OpenAPI 3.1 with the columns of the model."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

from tunefree.workflows.output_columns import CONFORMAL

NAME = "Idempotency-Key"  # header with the name of a request
SURENESS = (*CONFORMAL, "conditional")  # parameters of a query, for what is added to predictions
ALWAYS, FOR_IDS, NEVER = "always", "for rows with ids", "never"  # when the token is needed
_ROW = {"$ref": "#/components/schemas/Row"}
_ROWS = {"oneOf": [_ROW, {"type": "array", "items": _ROW, "minItems": 1}]}
_ERRORS = {
    "400": "The body is not an object or an array of objects.",
    "401": "The token is missing.",
    "403": "Another host or page is meant.",
    "413": "There is too much.",
    "415": "The body is not called JSON.",
    "422": "A row cannot be used; none of the request was.",
    "503": "Nothing could be written down; none of the request was learned. It may be sent again.",
}
_NAMED = {NAME: "A name of the request, which is learned once, however often it is sent."}
_CONFORMAL = {
    "interval": "Coverages, as 0.5,0.9: intervals for numbers, from an end to the other; null if it is infinite.",
    "quantiles": "Levels, as 0.1,0.9, of quantiles of numbers.",
    "set": "Coverages of sets of classes, the most probable class first.",
    "conditional": "class: sets cover the rows of each class.",
}


class Route(NamedTuple):
    """A route: a method, a path and its handler; a POST has a body."""

    method: str
    path: str
    summary: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    token: str = NEVER
    content: str = "application/json"
    body: Mapping[str, Any] = _ROWS


_PREDICT = "Predict a row, or an array of rows; one with an id waits for its label, which needs the token."
_CLASS = {"class": "The class whose margin is explained."}
_CHANGES = '{"roll_back_to": NUMBER}, {"take": FILE} or {"save": true}.'
ROUTES = (
    Route("POST", "/predict", _PREDICT, _CONFORMAL, token=FOR_IDS),
    Route("POST", "/explain", "What each column contributes to the margin of a row.", _CLASS),
    Route("POST", "/learn", "Learn rows, which have TARGET among their columns.", headers=_NAMED, token=ALWAYS),
    Route("POST", "/labels", "Learn rows predicted with an id: an id and TARGET each.", headers=_NAMED, token=ALWAYS),
    Route("GET", "/versions", "Versions that are kept; the last is the current one."),
    Route("POST", "/versions", _CHANGES, token=ALWAYS, body={"type": "object"}),
    Route("GET", "/model", "What the model is, what it has learned, and how well."),
    Route("GET", "/live", "Whether the process answers."),
    Route("GET", "/ready", "Whether it can learn and save; status 503 if not."),
    Route("GET", "/metrics", "Numbers for Prometheus.", content="text/plain"),
)


def description(state: dict[str, Any]) -> dict[str, Any]:
    """The description for a model with a state (:meth:`tunefree.serving.service.Service.state`).

    >>> described = description({"columns": ["age"], "target": "rich"})
    >>> sorted(described["paths"]), [*described["components"]["schemas"]["Row"]["properties"]]
    (['/explain', '/labels', '/learn', '/live', '/metrics', '/model', '/predict', '/ready', '/versions'], ['age'])
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        answer = {"description": "The answer.", "content": {route.content: {}}}
        summary = route.summary.replace("TARGET", repr(state["target"]))
        described: dict[str, Any] = {"summary": summary, "responses": {"200": answer}}
        if route.method == "POST":
            described["requestBody"] = {"required": True, "content": {"application/json": {"schema": route.body}}}
            described["responses"] |= {status: {"description": problem} for status, problem in _ERRORS.items()}
            described["parameters"] = [
                {"name": name, "in": place, "schema": {"type": "string"}, "description": meaning}
                for place, parameters in (("query", route.query), ("header", route.headers))
                for name, meaning in parameters.items()
            ]
        if route.token != NEVER:
            described["security"] = [*([{}] if route.token == FOR_IDS else []), {"token": []}]
        paths.setdefault(route.path, {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "tunefree", "version": version("tunefree")},
        "paths": paths,
        "components": {
            "schemas": {"Row": {"type": "object", "properties": {name: {} for name in state["columns"]}}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
