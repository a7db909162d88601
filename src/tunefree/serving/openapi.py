"""The description of the HTTP interface by OpenAPI 3.1, with the columns of the model that is served."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

_ROW = {"$ref": "#/components/schemas/Row"}
_ERRORS = {
    "400": "The body is not an object or an array of objects.",
    "401": "The token is missing.",
    "403": "Another host or page is meant.",
    "413": "There is too much.",
    "415": "The body is not called JSON.",
    "422": "A row cannot be used; none of the request was.",
    "503": "Nothing could be written down; none of the request was learned. It may be sent again.",
}
_CHANGES = (
    '{"roll back to": NUMBER}, {"take": FILE}, {"save": true}, {"challenge": FILE}, {"promote": true} or '
    '{"drop challenger": true}.'
)
_OBJECT: dict[str, Any] = {"type": "object"}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string"},
    "description": "A name of the request, which is learned once, however often it is sent.",
}


_SURE = [
    {"name": name, "in": "query", "schema": {"type": "string"}, "description": said}
    for name, said in (
        ("interval", "Coverages, as 0.5,0.9: intervals for numbers, from an end to the other; null if it is infinite."),
        ("quantiles", "Levels, as 0.1,0.9, of quantiles of numbers."),
        ("set", "Coverages of sets of classes, the most probable class first."),
        ("conditional", "class: sets cover the rows of each class."),
    )
]


def description(state: dict[str, Any]) -> dict[str, Any]:
    """The description for a model.

    Parameters
    ----------
    state : dict
        Of :meth:`tunefree.serving.service.Service.state`.

    Examples
    --------
    >>> described = description({"columns": ["age"], "target": "rich"})
    >>> sorted(described["paths"]), [*described["components"]["schemas"]["Row"]["properties"]]
    (['/explain', '/labels', '/learn', '/live', '/metrics', '/model', '/predict', '/ready', '/versions'], ['age'])
    """
    rows = {"oneOf": [_ROW, {"type": "array", "items": _ROW, "minItems": 1}]}
    target = state["target"]
    paths: dict[str, Any] = {
        "/predict": {"post": _post("Predict a row, or an array of rows.", rows) | {"parameters": _SURE}},
        "/explain": {"post": _post("What each column contributes to the margin of a row.", rows)},
        "/learn": {"post": _post(f"Learn rows, which have {target!r} among their columns.", rows, [_KEY])},
        "/labels": {
            "post": _post(f"Learn rows that were predicted with an id: an id and {target!r} each.", rows, [_KEY])
        },
        "/versions": {
            "get": _get("Versions that are kept; the last is the current one."),
            "post": _post(_CHANGES, _OBJECT),
        },
        "/model": {"get": _get("What the model is, what it has learned, and how well.")},
        "/live": {"get": _get("Whether the process answers.")},
        "/ready": {"get": _get("Whether it can learn and save; status 503 if not.")},
        "/metrics": {"get": _get("Numbers for Prometheus.", "text/plain")},
    }
    row = {"type": "object", "properties": {name: {} for name in state["columns"]}}
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "tunefree", "version": version("tunefree")},
        "paths": paths,
        "components": {"schemas": {"Row": row}, "securitySchemes": {"token": bearer}},
    }


def _post(summary: str, body: dict[str, Any], parameters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    responses = {status: {"description": problem} for status, problem in _ERRORS.items()}
    content = {"application/json": {"schema": body}}
    described = {**_get(summary), "requestBody": {"required": True, "content": content}}
    described["responses"] |= responses
    return described | ({} if parameters is None else {"parameters": parameters, "security": [{"token": []}]})


def _get(summary: str, kind: str = "application/json") -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "The answer.", "content": {kind: {}}}}}
