"""What `tunefree certify` prints."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from tunefree.cli.display.order import order_told
from tunefree.core.console import plain_console
from tunefree.workflows.training import Trained

SHOWN_KERNELS = 3  # of which the largest share is first


def show_certificate(trained: Trained, found: dict[str, Any], as_json: bool) -> None:
    """Print what :func:`tunefree.workflows.certification.findings` found.

    Parameters
    ----------
    trained : Trained
    found : dict
    as_json : bool
    """
    if as_json:
        typer.echo(json.dumps(found))
        return
    classes = trained.model.task == "classification"
    unit = "" if classes else " mean absolute deviations of the target"
    console = plain_console()
    console.print(f"{found['rows']:,} rows, {found['predictions']}: mean loss {found['loss']:.6g}")
    table = Table("radius", "no linear model has a mean loss below", box=None, header_style="bold", pad_edge=False)
    for radius, bound in found["lower_bounds"].items():
        table.add_row(f"{radius:g}{unit}", f"{bound:.6g}")
    console.print(table)
    if "additive" in found:
        _show_additive(console, found["additive"], unit)
    for gap, radius in found["largest_radii"].items():
        if radius is not None:
            console.print(f"none of radius up to {radius:.3g}{unit} is better by more than {100 * gap:g} %")
    if "weights" in found:
        given = found["weights"]
        console.print(f"the weights given have a mean loss of at least {given['loss_at_least']:.6g} on these rows")
        if "theorem" in given:
            console.print(f"the learner's theorem: they are better by at most {given['theorem']:.6g} a row")
    for kernel in found.get("kernels", [])[:SHOWN_KERNELS]:
        known = f"{kernel['learner']} (gamma {kernel['gamma']:.3g}): mean loss {kernel['loss']:.6g}"
        console.print(f"{known}; no function of")
        bounds = (f"{bound:.6g} (norm {norm:g})" for norm, bound in kernel["lower_bounds"].items())
        console.print(f"  its space has one below {', '.join(bounds)}")
        if "theorem" in kernel:
            bounds = (f"{bound:.6g} (norm {norm:g})" for norm, bound in kernel["theorem"].items())
            console.print(f"  the learner's theorem: they are better by at most {', '.join(bounds)} a row")
    if "pool" in found:
        pool = found["pool"]
        console.print(
            f"mixing cost at most {pool['excess_per_row']:.3g} a row over the best of {pool['members']} members"
        )
    if "mixing" in found:
        _show_mixing(console, found["mixing"])
    _show_risk(console, trained, found.get("risk", {}))
    console.print("radius: |weight| x largest value of the feature, the most a feature can move a prediction")


def _show_mixing(console: Console, mixing: dict[str, Any]) -> None:
    """Print what the mixture of generations lost, and what it could have lost at most."""
    console.print(f"{mixing['rows']:,} rows that no generation in use was grown on: mean loss {mixing['loss']:.6g}")
    known = f"the members' average lost {mixing['base']:.6g}"
    console.print(f"  the theorem of mixing: at most {mixing['loss_at_most']:.6g}, since {known}")


def _show_additive(console: Console, additive: dict[str, Any], unit: str) -> None:
    """Print what is known of additive models."""
    console.print(f"{additive['rows']:,} rows after the first knots were known: mean loss {additive['loss']:.6g}")
    title = "no additive model on these knots has a mean loss below"
    table = Table("each curve within", title, box=None, header_style="bold", pad_edge=False)
    for radius, bound in additive["lower_bounds"].items():
        table.add_row(f"{radius:g}{unit}", f"{bound:.6g}")
    console.print(table)


def _show_risk(console: Console, trained: Trained, risk: dict[str, Any]) -> None:
    """Print bounds on the loss and the error of rows to come, or why there are none."""
    for warning in order_told(trained):
        console.print(warning)
        console.print("no bound on the error to come: such bounds are for rows that are independent and alike")
    for name, bound in risk.items():
        if name != "confidence" and bound is not None:
            shown = f"{100 * bound:.2f} %" if name == "error" else f"{bound:.4f}"
            console.print(f"with {100 * risk['confidence']:g} % confidence: mean {name.replace('_', '-')} to come")
            console.print(f"  at most {shown}, for the models of the pass, if rows are independent and alike")
