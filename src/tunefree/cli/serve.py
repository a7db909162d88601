"""`tunefree serve`: predict and learn over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tunefree.core.errors import ModelError
from tunefree.serving.settings import KEEPING, Admission, Keeping, Limits, is_store


def serve(
    model: Annotated[Path, typer.Argument(help="Model file or store to serve.", show_default=False)],
    admission: Admission,
    keeping: Keeping,
    limits: Limits,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the store, which keeps all that is learned; by default nothing is kept.",
            rich_help_panel=KEEPING,
        ),
    ] = None,
) -> None:
    """Serve a model over HTTP: predict and learn rows of JSON.

    For instance:

    tunefree serve people.model -o people.store

    curl --json '{"id": 7, "age": 39, "job": "clerk"}' localhost:8000/predict

    curl --json '{"id": 7, "rich": "no"}' localhost:8000/labels

    POST /predict, /explain and /learn take a row or an array of rows; rows to learn include the target. POST /labels
    takes ids and labels of rows that were predicted before. GET /model returns the state of the model. A store keeps
    all acknowledged rows even if the process is killed: repeat the command to continue. SIGTERM, SIGHUP and Ctrl-C end
    the server after the requests received.
    """
    from tunefree.core import machine
    from tunefree.core.parameters import refuse

    try:
        from tunefree.serving.http import serve as serve_http
    except ModuleNotFoundError as missing:
        raise ModelError(f"{missing.name} is not installed; pip install 'tunefree[serve]'") from None
    from tunefree.serving.events import log, log_json
    from tunefree.serving.service import Service

    machine.share_freed_memory()
    limits.token()  # check the token before a store is created
    trained, folder = opened(model, output)
    if folder is None:
        unused = {"save_every", "keep_versions", "durability"}
        refuse(keeping, unused, "is of a store; leave it out, or name one by `output`")
    log_json()
    service = Service(trained, folder, admission, keeping)
    if folder is None:
        log("nothing is kept", problem="rows learned here are lost when the server ends; --output FOLDER keeps them")
    serve_http(service, limits)


def opened(path: Path, output: Path | None) -> tuple[Any, Path | None]:
    """The model (None for a store) and the store for the arguments: a model file or a store, and an output."""
    from tunefree.model_files.trained import Trained

    if is_store(path):
        if output is not None and output.resolve() != path.resolve():
            raise ModelError(f"{path}: is a store, which is served as it is; leave `output` out")
        return None, path
    if str(output) == "-":
        raise ModelError("-: this is not written to standard output; name a folder")
    is_other = output is not None and output.exists() and not is_store(output)
    if output is not None and is_other and (not output.is_dir() or any(output.iterdir())):
        raise ModelError(f"{output}: is something else than a store; name a folder that is empty, or a new one")
    return Trained.load(path), output
