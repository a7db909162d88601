"""The description of the HTTP interface by OpenAPI 3.1, with the columns of the model that is served."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

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
_CHANGES = '{"roll_back_to": NUMBER}, {"take": FILE} or {"save": true}.'
_NAME = {"Idempotency-Key": "A name of the request, which is learned once, however often it is sent."}
_SURENESS = {
    "interval": "Coverages, as 0.5,0.9: intervals for numbers, from an end to the other; null if it is infinite.",
    "quantiles": "Levels, as 0.1,0.9, of quantiles of numbers.",
    "set": "Coverages of sets of classes, the most probable class first.",
    "conditional": "class: sets cover the rows of each class.",
}
_PREDICT = "Predict a row, or an array of rows; one with an id waits for its label, which needs the token."
_CLASS = {"class": "The class whose margin is explained."}


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
    target = state["target"]
    learn = f"Learn rows, which have {target!r} among their columns."
    label = f"Learn rows that were predicted with an id: an id and {target!r} each."
    versions = _got("Versions that are kept; the last is the current one.") | _posted(_CHANGES, {}, {"type": "object"})
    return {
        "openapi": "3.1.0",
        "info": {"title": "tunefree", "version": version("tunefree")},
        "paths": {
            "/predict": _posted(_PREDICT, _SURENESS),
            "/explain": _posted("What each column contributes to the margin of a row.", _CLASS),
            "/learn": _posted(learn, _NAME),
            "/labels": _posted(label, _NAME),
            "/versions": versions,
            "/model": _got("What the model is, what it has learned, and how well."),
            "/live": _got("Whether the process answers."),
            "/ready": _got("Whether it can learn and save; status 503 if not."),
            "/metrics": _got("Numbers for Prometheus.", "text/plain"),
        },
        "components": {
            "schemas": {"Row": {"type": "object", "properties": {name: {} for name in state["columns"]}}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _posted(summary: str, parameters: dict[str, str], body: Any = _ROWS) -> dict[str, Any]:
    """What is sent with a body; whatever learns or changes something needs the token, and predictions may need it."""
    described = _got(summary)["get"] | {
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}}
    }
    described["responses"] |= {status: {"description": problem} for status, problem in _ERRORS.items()}
    place = "header" if parameters is _NAME else "query"
    described["parameters"] = [
        {"name": name, "in": place, "schema": {"type": "string"}, "description": meaning}
        for name, meaning in parameters.items()
    ]
    if parameters is not _CLASS:
        described["security"] = [*([{}] if parameters is _SURENESS else []), {"token": []}]
    return {"post": described}


def _got(summary: str, kind: str = "application/json") -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": {"200": {"description": "The answer.", "content": {kind: {}}}}}}
