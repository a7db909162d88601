"""The options of commands, made from the records of parameters (:mod:`tunefree.core.parameters`).

The function of a command takes a group of parameters as one parameter. ``plan: Annotated[Plan, ("target", "task")]``
selects some of the group. :func:`ungrouped` turns groups into options for typer. Options of single commands are
``Annotated`` types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from tunefree.core.errors import ModelError
from tunefree.core.parameters import (
    DATA,
    EXPERTS,
    LEARNING,
    OUTPUT,
    PANELS,
    RESUMING,
    Parameter,
    Parameters,
    as_options,
    default_of,
    option,
    parameter,
)
from tunefree.model_files.plan import ONE_MACHINE, POOLED, SHARDS, SKIP, Plan
from tunefree.stream import formats

if TYPE_CHECKING:
    from tunefree.model_files.trained import Trained
    from tunefree.stream.batch import BadRows
    from tunefree.stream.source import Source

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ClassOf = Annotated[str | None, typer.Option("--class", metavar="LABEL", help="Class whose log-odds are explained.")]
Decided = Annotated[
    str | None,
    typer.Option(
        "--class", metavar="LABEL", help="Class to decide for, against all others; by default the second of two."
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by `tunefree train`.")]


@dataclass(frozen=True)
class Files(Parameters):
    """Files of rows, and their format."""

    data: Annotated[
        list[str],
        typer.Argument(
            help=f"Files, glob patterns or directories: {', '.join(formats.titles())}; text may be compressed. Use - "
            "for standard input."
        ),
    ]
    format: str | None = parameter(
        None, f"File format: {', '.join(formats.names())}; inferred from the extension or first line by default.", DATA
    )
    delimiter: str | None = parameter(None, "Field delimiter of CSV files; guessed by default.", DATA)
    encoding: str | None = parameter(
        None, "Text encoding, such as cp1252; by default UTF-8, or UTF-16 if it has a byte order mark.", DATA
    )
    escape: str | None = parameter(
        None, "Escape of double quotes in quoted CSV values: quote or backslash; guessed by default.", EXPERTS
    )

    def source(self, plan: Plan | None = None, live: bool = False, is_table: bool = False) -> Source:
        """The source of the rows, not read yet; ``plan`` has the notation of columns in rows for a model.

        ``live``: use rows of standard input as they arrive. ``is_table``: the rows must have columns.
        """
        from tunefree.stream.source import open_source
        from tunefree.stream.text import use_lines_as_they_come

        if live and self.data == ["-"] and self.encoding is None:
            use_lines_as_they_come(0.0)
        source = open_source(
            self.data, self.format, self.delimiter, self.encoding, is_table=is_table, escape=self.escape
        )
        return source if plan is None else replace(source, column_types=plan.column_types)


@dataclass(frozen=True)
class Run(Parameters):
    """Options of a training beside its plan: model to continue, machines, checkpoints and output."""

    memory_limit: str | None = parameter(
        None,
        "Memory limit of the model, such as 4G; parts of it are suspended to stay below. Default: a quarter of memory.",
        LEARNING,
        scopes=(ONE_MACHINE,),
        metavar="SIZE",
    )
    earlier: Path | None = parameter(
        None,
        "Model or checkpoint that continues training on these rows; may be OUTPUT.",
        RESUMING,
        scopes=(ONE_MACHINE,),
        metavar="MODEL",
    )
    save_every: int | None = parameter(
        None, "Number of rows after which to save OUTPUT.checkpoint.", RESUMING, scopes=(ONE_MACHINE,), low=1
    )
    resume: bool = parameter(
        False,
        "Resume from OUTPUT.checkpoint if it exists; with `workers`, save each round to it as well.",
        RESUMING,
    )
    workers: str | None = parameter(
        None,
        "Learn shards of the files in N processes of this machine, or on the Dask cluster at ADDRESS (needs the extra "
        "dask).",
        RESUMING,
        metavar="N|ADDRESS",
    )
    only_for_prediction: bool = parameter(
        False,
        "Write a smaller model that cannot learn further. Leaf corrections are rounded: on seven tables, probabilities "
        "changed by at most 4e-5.",
        OUTPUT,
        scopes=(POOLED,),
    )
    quiet: bool = parameter(False, "Print only errors.", OUTPUT, short="-q")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers is not None and self.workers.lstrip("-").isdigit() and int(self.workers) < 1:
            raise ModelError(f"`workers` must be at least 1, or an address, not {self.workers}")

    def check(self, plan: Plan) -> None:
        """Raise an error if an option or a parameter of the plan has no effect on this training."""
        scopes = plan.scopes if self.workers is None else plan.scopes - {ONE_MACHINE} | {SHARDS}
        plan.check_scopes(scopes)
        self.check_scopes(scopes)


def bad_rows_of(plan: Plan) -> BadRows:
    """The handling and the tally of rows that a model cannot use, by the plan: skip, or raise an error."""
    from tunefree.stream.batch import BadRows

    return BadRows(plan.on_bad_row == SKIP, options=("on_bad_row",))


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer, with the options of each group of parameters instead of the group.

    The parameters of ``command`` are annotated for typer, or with ``Group`` or ``Annotated[Group, names]``.
    """
    groups: dict[str, tuple[Any, list[str]]] = {}
    options: list[inspect.Parameter] = []
    for name, argument in inspect.signature(command, eval_str=True).parameters.items():
        group, *chosen = get_args(argument.annotation) or (argument.annotation,)
        if is_dataclass(group):
            names = [entry.name for entry in fields(group) if not chosen or entry.name in chosen[0]]
            groups[name] = group, names
            options += _options(group, names)
        else:  # keyword-only, so that an argument without a default may follow options
            options.append(argument.replace(kind=argument.KEYWORD_ONLY))
    if not groups:
        return command

    def run(**values: Any) -> None:
        for name, (group, names) in groups.items():
            arguments = {key: values.pop(key) for key in names if key in values}
            values[name] = group(**{key: value for key, value in arguments.items() if value is not None})
        command(**values)

    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(sorted(options, key=_panel_index))  # type: ignore[attr-defined]
    return run


def _panel_index(argument: inspect.Parameter) -> int:
    """The sort key of an option in the help: the index of its panel."""
    panel = getattr((get_args(argument.annotation) or [None])[-1], "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else len(PANELS)


def _options(group: Any, names: Iterable[str]) -> Iterator[inspect.Parameter]:
    """The fields of a group as parameters for typer."""
    hints = get_type_hints(group, include_extras=True)
    for entry in fields(group):
        record = entry.metadata.get("parameter")
        if entry.name not in names or (record is not None and not record.panel):
            continue
        default, annotation = default_of(entry), hints[entry.name]
        if record is not None:
            annotation = _annotation(entry.name, annotation, record, default)
        default = inspect.Parameter.empty if default is MISSING else None if default == () else default
        yield inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _annotation(name: str, kind: Any, record: Parameter, usual: Any) -> Any:
    has_several, has_numbers = kind == tuple[str, ...], kind == tuple[float, ...]
    info = typer.Option(
        *[word for word in (option(name), record.short) if word],
        help=as_options(record.meaning + (" May be repeated." if has_several else "")),
        metavar=record.metavar or "|".join(record.choices) or ("PARTS" if has_numbers else None),
        parser=_numbers if has_numbers else None,
        show_default=bool(usual) and usual is not MISSING,
        rich_help_panel=record.panel,
        autocompletion=(lambda: list(record.choices)) if record.choices else None,
    )
    return Annotated[list[str] | None if has_several else str | None if has_numbers else kind, info]


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path], standard_output: bool = False) -> None:
    """Raise an error if an output cannot be written, or is also an input; to be called before anything is read.

    Outputs that are None are ignored. ``standard_output``: whether ``-`` is allowed.
    """
    from tunefree.core.storage import check_writable
    from tunefree.stream.files import check_not_read, expand

    read = expand([str(name) for name in inputs])
    for output in outputs:
        if output is None or (standard_output and str(output) == "-"):
            continue
        if str(output) == "-":
            raise ModelError("-: this is not written to standard output; name a file")
        check_not_read(output, read)
        check_writable(output)


def group_of(trained: Trained, source: Source, named: str | None) -> str | None:
    """The named column of groups, or else the one of the training, with a message."""
    from tunefree.workflows.evaluation import group_in

    if named is None and (named := group_in(trained, source)) is not None:
        typer.echo(f"rows of one {named} belong together, as in the training; --group names another column", err=True)
    return named


def print_row_notes(bad: BadRows) -> None:
    """Print the number of skipped rows with the reasons, and the oddities of the other rows."""
    from tunefree.workflows.findings import oddity_findings

    if bad.tally.count:
        rows = "1 row" if bad.tally.count == 1 else f"{bad.tally.count:,} rows"
        typer.echo(as_options(f"{rows} skipped, the first: {bad.tally.first[0]}"), err=True)
    reasons = bad.tally.reasons
    for reason in reasons if len(reasons) > 1 else []:
        typer.echo(as_options(f"  {reason.rows:,}: {reason.problem}; the first: {reason.place}"), err=True)
    for finding in oddity_findings(bad.tally.oddities):
        typer.echo(as_options(f"note: {finding}"), err=True)
