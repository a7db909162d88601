"""`tunefree serve`: a model that predicts and learns over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import ModelFile, check_outputs
from tunefree.model_files.plan import NOTATIONS, Plan

SAVE_EVERY = 10_000


def serve(
    model: ModelFile,
    plan: Annotated[Plan, NOTATIONS],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the model is saved as it learns; by default nowhere."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; by default this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for any that is free.")] = 8000,
    id: Annotated[str, typer.Option(help="The name under which rows have their id.")] = "id",
    remember: Annotated[int, typer.Option(min=0, help="Rows with an id that wait for their label.")] = 100_000,
    save_every: Annotated[int, typer.Option(min=1, help="Rows learned between two savings.")] = SAVE_EVERY,
) -> None:
    """Predict and learn rows of JSON over HTTP. For instance:

    tunefree serve people.model -o people.model

    curl localhost:8000/predict -d '{"id": 7, "age": 39, "job": "clerk"}'

    curl localhost:8000/labels -d '{"id": 7, "rich": "no"}'

    POST /predict and POST /learn take a row or an array of rows; rows to learn have the target among their columns.
    POST /labels takes ids with labels, of rows that were predicted before. GET /model tells what was learned, and
    GET /health that the server runs. SIGTERM and Ctrl-C end it after the requests that have come, and save the model.
    """
    from tunefree.core.errors import ModelError
    from tunefree.model_files.trained import Trained

    try:
        import uvicorn

        from tunefree.serving import Service, application
    except ModuleNotFoundError as missing:
        raise ModelError(f"{missing.name} is not installed; pip install 'tunefree[serve]'") from None

    if output is None and save_every != SAVE_EVERY:
        raise ModelError("--save-every is of a file that is saved; leave it out, or name one by --output")
    check_outputs([output], [])  # it may be MODEL, which then goes on
    service = Service(Trained.load(model), output, id, remember, save_every, plan.column_types)
    if output is None:
        typer.echo("what is learned here is lost when the server ends; --output FILE saves it", err=True)
    uvicorn.run(application(service), host=host, port=port, log_level="info", access_log=False)
