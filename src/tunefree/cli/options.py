"""Options of commands, which come from the records of parameters (:mod:`tunefree.core.parameters`).

A command takes a group of parameters as one parameter of its function, all of it or those that are named, as in
``plan: Annotated[Plan, ("target", "task")]``; :func:`ungrouped` tells typer of the options. What only one command has
is an ``Annotated`` type.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from tunefree.core.errors import ModelError
from tunefree.core.parameters import (
    CLUSTER,
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
from tunefree.model_files.plan import (
    ERROR,
    NOTATIONS,
    ON_BAD,
    ONE_MACHINE,
    POOLED,
    SHARDS,
    SKIP,
    Plan,
)
from tunefree.stream import formats
from tunefree.stream.files import LONGEST_LINE

if TYPE_CHECKING:
    from tunefree.stream.batch import BadRows
    from tunefree.stream.source import Source

NEW_ROWS = (*NOTATIONS, "on_bad_row")  # parameters of a plan that say how rows for a model are read

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RowsAsJson = Annotated[
    bool, typer.Option("--json", help="Print rows, skipped ones and oddities as JSON; on standard error if -o is -.")
]
ClassOf = Annotated[str | None, typer.Option("--class", metavar="LABEL", help="The class whose log-odds to explain.")]
Ids = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="A column of the data to write first; may be given again.")
]
TableFile = Annotated[
    Path, typer.Option("--output", "-o", help="CSV or Parquet file to write; - for CSV on standard output.")
]
ModelFile = Annotated[Path, typer.Argument(help="A model that `tunefree train` wrote.")]


@dataclass(frozen=True)
class Files(Parameters):
    """Where rows come from."""

    data: Annotated[
        list[str],
        typer.Argument(
            help=f"Files, patterns or directories: {', '.join(formats.titles())}; text may be compressed. - for "
            "standard input."
        ),
    ]
    format: str | None = parameter(
        None, f"One of {', '.join(formats.names())}; by default the extension or first line tells.", DATA
    )
    delimiter: str | None = parameter(None, "Between the fields of a CSV line; guessed by default.", DATA)
    encoding: str | None = parameter(
        None, "Of text, such as latin-1; by default UTF-8, or UTF-16 by its first bytes.", DATA
    )
    escape: str | None = parameter(
        None, "Before a double quote in a quoted CSV value, quote or backslash; guessed by default.", EXPERTS
    )
    max_line_bytes: int = parameter(
        LONGEST_LINE,
        "Of text; a longer line is an error, as of a file without line ends.",
        EXPERTS,
        metavar="BYTES",
    )

    def source(self, plan: Plan | None = None, live: bool = False, is_table: bool = False) -> Source:
        """The rows, not read yet; a plan tells how columns of rows for a model are written.

        If they are ``live``, rows of standard input are used as they come. Those of a table have columns.
        """
        from tunefree.stream.lines import use_lines_as_they_come
        from tunefree.stream.source import open_source

        if live and self.data == ["-"] and self.encoding is None:
            use_lines_as_they_come(0.0, from_the_first=True)
        source = open_source(
            self.data,
            self.format,
            self.delimiter,
            self.encoding,
            self.max_line_bytes,
            is_table=is_table,
            escape=self.escape,
        )
        return source if plan is None else replace(source, column_types=plan.column_types)


@dataclass(frozen=True)
class Run(Parameters):
    """How a training goes, beside its plan: from where, on which machines, with what beside the model."""

    memory_limit: str | None = parameter(
        None,
        "What the model may take, such as 4G; parts of it sleep before it does. By default a quarter of the memory.",
        LEARNING,
        scopes=(ONE_MACHINE,),
        metavar="SIZE",
    )
    earlier: Path | None = parameter(
        None,
        "A model, or a checkpoint, that goes on with these rows; it may be OUTPUT.",
        RESUMING,
        scopes=(ONE_MACHINE,),
        metavar="MODEL",
    )
    save_every: str | None = parameter(
        None,
        "Rows, or a time such as 10m, after which the training is saved to OUTPUT.checkpoint.",
        RESUMING,
        scopes=(ONE_MACHINE,),
        metavar="N|TIME",
    )
    checkpoint: bool = parameter(
        False, "Of shards: keep each round in OUTPUT.checkpoint, for `resume`.", RESUMING, scopes=(SHARDS,)
    )
    resume: bool = parameter(False, "Go on from OUTPUT.checkpoint if it is there.", RESUMING)
    workers: int | None = parameter(
        None,
        "Learn shards of the files in so many processes of this machine (extra dask).",
        CLUSTER,
        low=1,
    )
    scheduler: str | None = parameter(
        None, "Learn shards of the files on the Dask cluster there.", CLUSTER, metavar="ADDRESS"
    )
    on_bad_shard: str = parameter(
        ERROR, "What to do with a shard that cannot be read: error, or skip.", CLUSTER, choices=ON_BAD, scopes=(SHARDS,)
    )
    only_for_prediction: bool = parameter(
        False, "Write what predicts only: a pool that cannot go on learning.", OUTPUT, scopes=(POOLED,)
    )
    report: Path | None = parameter(
        None, "Write a report of the model too, as `tunefree report`.", OUTPUT, metavar="FILE"
    )
    exit_code_on_drift: int | None = parameter(
        None,
        "The exit code, from 3 on, if the loss rose on these rows; the model is written all the same.",
        OUTPUT,
        low=3,
        high=125,
        scopes=(ONE_MACHINE,),
        metavar="CODE",
    )
    verbose: bool = parameter(False, "A line at each power of two rows.", OUTPUT, scopes=(ONE_MACHINE,), short="-v")
    quiet: bool = parameter(False, "Print nothing but errors.", OUTPUT, short="-q")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.verbose and self.quiet:
            raise ModelError("`verbose` and `quiet` are opposites; leave one out")
        if self.workers is not None and self.scheduler is not None:
            raise ModelError("`workers` starts a cluster, and `scheduler` names one; give one of them")

    @property
    def is_spread(self) -> bool:
        """Whether shards are learned."""
        return self.workers is not None or self.scheduler is not None

    def check(self, plan: Plan) -> None:
        """Raise an error if a parameter of this or of the plan has no effect on such a training."""
        scopes = plan.scopes - {ONE_MACHINE} | {SHARDS} if self.is_spread else plan.scopes
        plan.check_scopes(scopes)
        self.check_scopes(scopes)
        if self.exit_code_on_drift is not None and plan.shuffle:
            problem = "`exit_code_on_drift` has no effect with `shuffle`, as rows are in a random order"
            raise ModelError(f"{problem}; leave one out")


@dataclass(frozen=True)
class EvaluationFiles(Files):
    """Where rows on which a model is judged come from, if there are any."""

    data: Annotated[list[str], typer.Argument(help="Data with known targets, on which the model is judged.")] = field(
        default_factory=list
    )


def bad_rows_of(plan: Plan) -> BadRows:
    """What happens to rows for a model that cannot be used, with a count of them."""
    from tunefree.stream.batch import BadRows

    return BadRows(plan.on_bad_row == SKIP, skip_unlabelled=None)


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer reads it: instead of each group of parameters it has the options of the group.

    ``command``: its parameters are annotated for typer, or with groups: ``Group``, ``Annotated[Group, names]``, or
    ``Annotated[Group, names, values]`` with values of others that the command decides.

    >>> def count(files: Files, plan: Annotated[Plan, ("ignore", "seed"), {"shuffle": True}], top: int = 20) -> None:
    ...     print(files.data, files.format, plan.ignore, plan.seed, plan.shuffle, top)
    >>> list(inspect.signature(ungrouped(count)).parameters)
    ['format', 'delimiter', 'encoding', 'ignore', 'seed', 'escape', 'max_line_bytes', 'data', 'top']
    >>> options = dict(format=None, delimiter=None, escape=None, encoding=None, max_line_bytes=9)
    >>> options |= dict(ignore=["id"], seed=2, top=3)
    >>> ungrouped(count)(data=["people.csv"], **options)
    ['people.csv'] None ('id',) 2 True 3
    """
    groups, options = {}, []
    for name, argument in inspect.signature(command, eval_str=True).parameters.items():
        group, *chosen = get_args(argument.annotation) or (argument.annotation,)
        if is_dataclass(group):
            names = chosen[0] if chosen else [entry.name for entry in fields(group)]
            groups[name] = group, names, chosen[1] if len(chosen) > 1 else {}
            options += _options(group, names)
        else:  # by name alone, so that an argument without a default may follow options
            options.append(argument.replace(kind=argument.KEYWORD_ONLY))
    if not groups:
        return command

    def run(**values: Any) -> None:
        for name, (group, names, fixed) in groups.items():
            make: Any = getattr(group, "of_options", group)
            values[name] = make(**{key: values.pop(key) for key in names if key in values}, **fixed)
        command(**values)

    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(sorted(options, key=_place))  # type: ignore[attr-defined]
    return run


def _place(argument: inspect.Parameter) -> int:
    """Where an option stands in the help, by its panel; those without one stay where they were."""
    panel = getattr((get_args(argument.annotation) or [None])[-1], "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else len(PANELS)


def _options(group: Any, names: Iterable[str]) -> list[inspect.Parameter]:
    """Fields of a group as parameters that typer reads."""
    hints, options = get_type_hints(group, include_extras=True), []
    for entry in fields(group):
        record = entry.metadata.get("parameter")
        if entry.name not in names or (record is not None and not record.panel):
            continue
        usual, annotation = default_of(entry), hints[entry.name]
        if record is not None:
            annotation, usual = _annotation(entry.name, annotation, record, usual), None if usual == () else usual
        default = inspect.Parameter.empty if usual is MISSING else usual
        keyword = inspect.Parameter.KEYWORD_ONLY
        options.append(inspect.Parameter(entry.name, keyword, default=default, annotation=annotation))
    return options


_METAVARS = {"str": "TEXT", "<class 'str'>": "TEXT", "<class 'int'>": "N", "int": "N"}  # by the types of fields


def _annotation(name: str, kind: Any, record: Parameter, usual: Any) -> Any:
    """An option as typer reads it."""
    has_several = kind == tuple[str, ...]
    words = [option(name), *([record.short] if record.short else [])]
    meaning = record.meaning + (" May be given again." if has_several else "")
    info = typer.Option(
        *words,
        help=as_options(meaning),
        metavar=record.metavar or "|".join(record.choices) or _METAVARS.get(str(kind).split(" ")[0]),
        show_default=bool(usual) and usual is not MISSING,
        rich_help_panel=record.panel,
        autocompletion=(lambda: list(record.choices)) if record.choices else None,
    )
    return Annotated[list[str] | None if has_several else kind, info]


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path]) -> None:
    """Raise an error if an output cannot be written, or is one of the inputs or another output.

    To be called before anything is read. Outputs that are None are left out. For standard output, which some commands
    write to, see :func:`unless_standard`.
    """
    from tunefree.core.storage import check_writable
    from tunefree.stream.files import check_not_read, expand

    read = expand([str(name) for name in inputs])
    seen: set[Path] = set()
    for output in outputs:
        if output is None:
            continue
        if str(output) == "-":
            raise ModelError("-: this is not written to standard output; name a file")
        check_not_read(output, read)
        check_writable(output)
        if output.resolve() in seen:
            raise ModelError(f"{output}: is named for two outputs; name two files")
        seen.add(output.resolve())


def unless_standard(output: Path | str | None) -> Path | None:
    """The file that is named, None for standard output."""
    return None if output is None or str(output) == "-" else Path(output)


def tell_of_rows(bad: BadRows) -> None:
    """Print how many rows were skipped, if any were, and why; and what is odd about rows that were used."""
    from tunefree.workflows.findings import of_reasons

    if bad.count:
        typer.echo(as_options(f"{bad.count} rows skipped, the first: {bad.first[0]}"), err=True)
    reasons = bad.tally.reasons()
    for reason in reasons if len(reasons) > 1 else []:
        typer.echo(as_options(f"  {reason.rows:,}: {reason.problem}; the first: {reason.place}"), err=True)
    for finding in of_reasons(bad.tally.oddities()):
        typer.echo(as_options(f"note: {finding}"), err=True)


def tell_of_table(what: str, rows: int, output: Path, bad: BadRows, as_json: bool, decomposition: Any = None) -> None:
    """Print how many rows of a table were written, what is odd about them, and what contributions are relative to."""
    if as_json:
        from tunefree.report.record import record
        from tunefree.report.rows import rows_of

        typer.echo(json.dumps({"rows": rows, **record(rows_of(bad))}), err=str(output) == "-")
        return
    tell_of_rows(bad)
    if decomposition is not None:
        from tunefree.explanation.importance import describe_reference

        typer.echo(describe_reference(decomposition), err=True)
    if unless_standard(output):
        typer.echo(f"{rows} {what} in {output}", err=True)
