"""Options that several commands share, each defined once.

A single option is an ``Annotated`` type. Options that belong together are a group: a dataclass with a field for each of
them. A command takes a group as one parameter, and :func:`ungrouped` tells typer of the options in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tunefree import learners, losses
from tunefree.core.errors import ModelError, TunefreeError
from tunefree.kernel import learners as kernel_learners
from tunefree.stream import formats
from tunefree.stream.files import LONGEST_LINE

if TYPE_CHECKING:
    from tunefree.stream.batch import BadRows
    from tunefree.stream.notation import ColumnTypes
    from tunefree.stream.source import Source
    from tunefree.workflows.plan import Plan

LEARNERS = ", ".join(learners.ALL)
KERNEL_LEARNERS = ", ".join(kernel_learners.ALL)
FORMATS = ", ".join(formats.names())
# The modules that know these are slow to import; a test compares the lists with them.
KERNELS = "linear, rbf, laplacian, poly"
VIEWS = "raw, centred, steady, level"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RowsAsJson = Annotated[
    bool, typer.Option("--json", help="Print rows, skipped ones and oddities as JSON; on standard error if -o is -.")
]
ClassOf = Annotated[
    str | None,
    typer.Option("--class", metavar="LABEL", help="The class whose log-odds to explain.", show_default=False),
]
Decimal = Annotated[str | None, typer.Option(help="The decimal mark of numbers in texts, . or , ; guessed by default.")]
Thousands = Annotated[
    str | None, typer.Option(help="Between thousands of numbers in texts: . , ' or a space; guessed by default.")
]
NaValues = Annotated[list[str] | None, typer.Option(help="What else stands for a missing value; may be given again.")]
Date = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL[=FORMAT]", help="Column of dates, such as day=%d.%m.%Y; guessed by default. Again for more."
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="A column of the data to write first; may be given again.", show_default=False),
]
ModelFile = Annotated[Path, typer.Argument(help="A model that `tunefree train` wrote.", show_default=False)]


@dataclass(frozen=True)
class Files:
    """Where rows come from."""

    data: Annotated[
        list[str],
        typer.Argument(
            help=f"Files, patterns or directories: {', '.join(formats.titles())}; text may be compressed. - for "
            "standard input.",
            show_default=False,
        ),
    ]
    format: Annotated[
        str | None, typer.Option(help=f"One of {FORMATS}; by default the extension or first line tells.")
    ] = None
    delimiter: Annotated[str | None, typer.Option(help="Between the fields of a CSV line; guessed by default.")] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="Of text, such as latin-1; by default UTF-8, or UTF-16 by its first bytes."),
    ] = None
    max_line_bytes: Annotated[
        int, typer.Option(help="Of text; a longer line is an error, as of a file without line ends.")
    ] = LONGEST_LINE
    on_bad_row: Annotated[
        str, typer.Option(help="What to do with a row that cannot be used: error, or skip and count it.")
    ] = "error"

    def source(self) -> Source:
        """The rows, not read yet."""
        from tunefree.stream.source import open_source

        return open_source(self.data, self.format, self.delimiter, self.encoding, self.max_line_bytes)

    @property
    def skip_bad_rows(self) -> bool:
        """Whether rows that cannot be used are skipped."""
        return _is_skip("on-bad-row", self.on_bad_row)

    def bad_rows(self) -> BadRows:
        """What happens to rows that cannot be used, with a count of them."""
        from tunefree.stream.batch import BadRows

        return BadRows(self.skip_bad_rows, skip_unlabelled=None)


@dataclass(frozen=True)
class Notations:
    """How data write what a model knows, where that is not to be guessed."""

    decimal: Decimal = None
    thousands: Thousands = None
    na_values: NaValues = None
    date: Date = None

    @property
    def given(self) -> ColumnTypes:
        """What is said of columns."""
        from tunefree.workflows.plan import Plan

        words, dates = tuple(self.na_values or ()), tuple(self.date or ())
        return Plan(decimal=self.decimal, thousands=self.thousands, na_values=words, date=dates).column_types


@dataclass(frozen=True)
class NewFiles(Notations, Files):
    """Where rows come from that a model was not trained on."""

    def source(self) -> Source:
        """The rows, not read yet."""
        return replace(super().source(), column_types=self.given)


@dataclass(frozen=True)
class EvaluationFiles(NewFiles):
    """Where rows on which a model is judged come from, if there are any."""

    data: Annotated[
        list[str],
        typer.Argument(help="Data with known targets, on which the model is judged.", show_default=False),
    ] = field(default_factory=list)


@dataclass(frozen=True)
class Problem:
    """What is to be learned, and from which columns: fields of a :class:`tunefree.workflows.plan.Plan`."""

    target: Annotated[str | None, typer.Option("--target", "-t", help="Column to predict.", show_default=False)] = None
    task: Annotated[str | None, typer.Option(help="classification or regression; found from the target.")] = None
    loss: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(losses.usage('classification'))}; in regression {', '.join(losses.usage('regression'))}."
        ),
    ] = None
    weight: Annotated[str | None, typer.Option(help="Column of sample weights.", show_default=False)] = None
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given again.")] = None
    text: Annotated[list[str] | None, typer.Option(help="Column of texts, beside those that are guessed.")] = None
    hash_bits: Annotated[int, typer.Option(help="Hash features to 2^BITS instead of an exact dictionary.")] = 0
    decimal: Decimal = None
    thousands: Thousands = None
    na_values: NaValues = None
    numeric: Annotated[list[str] | None, typer.Option(help="Column of numbers; may be given again.")] = None
    categorical: Annotated[list[str] | None, typer.Option(help="Column of categories; may be given again.")] = None
    date: Date = None
    unlabelled: Annotated[
        str, typer.Option(help="What to do with a row without a label: error, or skip and count it.")
    ] = "error"

    def plan(self, files: Files, **learning: Any) -> Plan:
        """The plan for these rows; ``learning`` has its other fields."""
        from tunefree.workflows.plan import Plan

        return Plan(
            target=self.target,
            task=self.task,
            loss=self.loss,
            weight=self.weight,
            ignore=tuple(self.ignore or ()),
            text=tuple(self.text or ()),
            hash_bits=self.hash_bits,
            skip_bad_rows=files.skip_bad_rows,
            skip_unlabelled=_is_skip("unlabelled", self.unlabelled),
            decimal=self.decimal,
            thousands=self.thousands,
            na_values=tuple(self.na_values or ()),
            numeric=tuple(self.numeric or ()),
            categorical=tuple(self.categorical or ()),
            date=tuple(self.date or ()),
            **learning,
        )


def _is_skip(option: str, value: str) -> bool:
    if value not in ("error", "skip"):
        raise TunefreeError(f"--{option} is error or skip, not {value}")
    return value == "skip"


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer reads it: instead of each group of options it has the options in the group.

    Parameters
    ----------
    command : function
        Its parameters are annotated for typer, or with groups.

    Returns
    -------
    function

    Examples
    --------
    >>> def count(files: Files, top: int = 20) -> None:
    ...     print(files.data, files.on_bad_row, top)
    >>> list(inspect.signature(ungrouped(count)).parameters)
    ['data', 'format', 'delimiter', 'encoding', 'max_line_bytes', 'on_bad_row', 'top']
    >>> given = dict(format=None, delimiter=None, encoding=None, max_line_bytes=9, on_bad_row="skip", top=3)
    >>> ungrouped(count)(data=["people.csv"], **given)
    ['people.csv'] skip 3
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: p.annotation for name, p in parameters.items() if is_dataclass(p.annotation)}
    if not groups:
        return command

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{own.name: given.pop(own.name) for own in fields(group)})
        command(**given)

    options: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        # By name alone, so that an argument without a default may follow options.
        options += _options(groups[name]) if name in groups else [parameter.replace(kind=parameter.KEYWORD_ONLY)]
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run


@cache
def _options(group: Any) -> list[inspect.Parameter]:
    """The fields of a group as parameters."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            own.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(own),
            annotation=hints[own.name],
        )
        for own in fields(group)
    ]


def _default(own: Any) -> Any:
    """The default of a field of a group."""
    if own.default_factory is not MISSING:
        return own.default_factory()
    return inspect.Parameter.empty if own.default is MISSING else own.default


def given(group: Any) -> list[str]:
    """Options of a group that differ from their defaults, as they are written on the command line.

    Examples
    --------
    >>> given(Problem(target="income", hash_bits=10))
    ['target', 'hash-bits']
    """
    optional = [own for own in fields(group) if own.default is not MISSING]
    return [own.name.replace("_", "-") for own in optional if getattr(group, own.name) != own.default]


def refuse(options: Iterable[str], why: str) -> None:
    """Raise an error that names the first of some options, if there is one."""
    for name in options:
        raise ModelError(f"--{name} {why}")


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


def figures_of_rows(bad: BadRows) -> dict[str, Any]:
    """For JSON: how many rows were skipped, and why; and what is odd about rows that were used."""
    tally = bad.tally
    return {
        "skipped": tally.count,
        "reasons": [asdict(reason) for reason in tally.reasons()],
        "oddities": [asdict(oddity) for oddity in tally.oddities()],
    }


def tell_of_rows(bad: BadRows) -> None:
    """Print how many rows were skipped, if any were, and why; and what is odd about rows that were used."""
    from tunefree.report.told import oddities_told, reasons_told

    if bad.count:
        typer.echo(f"{bad.count} rows skipped, the first: {bad.first[0]}", err=True)
    told = reasons_told(bad.tally.reasons())
    for reason, place, rows in told if len(told) > 1 else []:
        typer.echo(f"  {rows}: {reason}; the first: {place}", err=True)
    for line in oddities_told(bad.tally.oddities()):
        typer.echo(f"note: {line}", err=True)
