"""Parameters: each has one record of its meaning, its limits and its scopes.

A group of parameters is a dataclass with fields created by :func:`parameter`; the field defines the name, the type and
the default. Options of the command line and plans inherit from :class:`Parameters`; estimators are groups, too
(:mod:`tunefree.estimators.parameters`). The records define the checks of values, the docstring of the group, the
options and help of the command line, and the schema of the group in a model file.

Messages name a parameter in backticks, optionally with a value: "pass `on_bad_row='skip'`". Python shows them
unchanged. For the command line :func:`as_options` converts them into options: "pass --on-bad-row skip".
"""

from __future__ import annotations

import ast
import math
import numbers
import operator
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from tunefree.core.errors import ModelError, TunefreeError
from tunefree.core.registry import names_in

# Panels of a command's help, in this order.
PANELS = DATA, ROWS, COLUMNS, LEARNING, RESUMING, OUTPUT, EXPERTS = (
    "The data",
    "The target and rows",
    "Columns",
    "Learning",
    "Resuming and clusters",
    "Output",
    "For experts",
)
# A parameter in a message, and its value; backticks within quotation marks belong to the data.
NAMED = re.compile(
    r"""(?<![\w'"`])`([a-z][a-z_]*)
    (?:=('(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | \[[^\]]*\] | [\w.=]+))?`""",
    re.VERBOSE,
)
ASIDE = re.compile(r" \(`([a-z_]+)[^`]*`\)")  # a parameter in parentheses
# Options whose name differs from the parameter.
OTHER_OPTIONS = {"earlier": "--from", "ids": "--id", "sample_weight": "--weight", "groups": "--group"}
# Parameters without an option on the command line: of a plan, and others.
OF_PLANS = "settings", "view", "average", "kernel", "passes", "random_state"
OF_PYTHON = (*OF_PLANS, "max_line_bytes", "on_bad_shard", "checkpoint")
NUMPYS_BOOLS = {("numpy", "bool"), ("numpy", "bool_")}  # types by name, to avoid the slow import of NumPy
KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a string",
    dict: "a dict",
}


class Scope(NamedTuple):
    """The trainings in which a parameter has an effect."""

    says: str  # description of the scope, follows the name of the parameter
    remedy: str  # alternative to leaving the parameter out


@dataclass(frozen=True)
class Parameter:
    """The meaning of a parameter, its limits and its scopes."""

    meaning: str  # the first sentence is the help of the option
    panel: str = ""  # panel of the help; empty for parameters without an option
    low: float | None = None
    high: float | None = None
    above: float | None = None  # exclusive lower limit
    below: float | None = None  # exclusive upper limit
    choices: tuple[str, ...] = ()  # valid strings
    scopes: tuple[Scope, ...] = ()  # all must hold
    metavar: str | None = None
    short: str | None = None  # one-letter option
    types: str = ""  # type in docstrings, if not the type of the field

    def problem(self, kind: Any, value: Any) -> str:
        """The error message for a value of a field of this type; empty if the value is valid.

        >>> Parameter("Width.", above=0, choices=("median",)).problem(float | str, "mean")
        "must be 'median' or a number above 0, not 'mean'"
        >>> Parameter("Width.", low=1).problem(int, 0), Parameter("Width.", low=0).problem(float, 1e300)
        ('must be a whole number of at least 1, not 0', '')
        """
        alternatives = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        kinds = [get_origin(alternative) or alternative for alternative in alternatives if alternative is not NoneType]
        if not set(kinds) <= set(KINDS) or (value is None and NoneType in alternatives):
            return ""
        if any(_has_type(alternative, value) and self._allows(alternative, value) for alternative in kinds):
            return ""
        parts = [*map(repr, self.choices)] if str in kinds else []
        limits = {"of at least": self.low, "above": self.above, "at most": self.high, "below": self.below}
        words = " and ".join(f"{words} {limit:g}" for words, limit in limits.items() if limit is not None)
        parts += [
            f"{KINDS[alternative]} {words if alternative in (int, float) else ''}".strip()
            for alternative in kinds
            if alternative is not str or not self.choices
        ]
        *others, last = parts
        return f"must be {', '.join(others)}{' or ' * bool(others)}{last}, not {value!r}"

    def _allows(self, kind: Any, value: Any) -> bool:
        """Whether a string is a valid choice, or a number is within the limits."""
        if kind is str:
            return not self.choices or value in self.choices
        limits = (self.low, operator.ge), (self.high, operator.le), (self.above, operator.gt), (self.below, operator.lt)
        return all(limit is None or is_within(value, limit) for limit, is_within in limits)


def _has_type(kind: Any, value: Any) -> bool:
    """Whether a value is acceptable for a type."""
    if kind is bool:
        return isinstance(value, bool) or (type(value).__module__, type(value).__name__) in NUMPYS_BOOLS
    if kind in (str, dict):
        return isinstance(value, kind)
    abstract: Any = numbers.Integral if kind is int else numbers.Real
    limit = 2**64 if kind is int else math.inf
    return isinstance(value, abstract) and not isinstance(value, bool) and abs(value) < limit


def parameter(default: Any, meaning: str, panel: str = "", **record: Any) -> Any:
    """A field of a group, with its default and the fields of its :class:`Parameter`."""
    return field_of(Parameter(meaning, panel, **record), default)


def field_of(record: Parameter, default: Any, **options: Any) -> Any:
    """A field of a group, with its default and options of :func:`dataclasses.field`."""
    chosen = {"default_factory": default} if callable(default) else {"default": default}
    return field(**chosen, **options, metadata={"parameter": record})


def require(name: str, kind: Any, value: Any, **limits: Any) -> None:
    """Raise an error unless a parameter has this type and is within the limits (of :class:`Parameter`).

    >>> require("repeats", int, 0, low=1)
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: `repeats` must be a whole number of at least 1, not 0
    """
    if problem := Parameter("", **limits).problem(kind, value):
        raise ModelError(f"`{name}` {problem}")


def check(group: Any) -> None:
    """Raise an error for the first parameter of a group with a value of a wrong type or outside its limits."""
    cls: Any = type(group)
    for name, (kind, record) in _fields_of(cls).items():
        value = getattr(group, name)
        if value is not getattr(cls, name, MISSING) and (problem := record.problem(kind, value)):
            raise ModelError(f"`{name}` {problem}")


def refuse(group: Any, names: Collection[str], why: str) -> None:
    """Raise an error with the reason ``why`` if one of the named parameters differs from its default."""
    for entry in fields(group):
        if entry.name in names and getattr(group, entry.name) != default_of(entry):
            raise ModelError(f"`{entry.name}` {why}")


@dataclass(frozen=True)
class Parameters:
    """A group of parameters; a single name may be passed for a sequence of names.

    >>> @dataclass(frozen=True)
    ... class Cutting(Parameters):
    ...     parts: int = parameter(2, "Number of parts.", low=1)
    ...     ignore: tuple[str, ...] = parameter((), "Parts to leave out.")
    >>> Cutting(ignore="a").changed()
    {'ignore': ('a',)}
    >>> Cutting(parts=0)
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: `parts` must be a whole number of at least 1, not 0
    """

    def __post_init__(self) -> None:
        group: Any = type(self)
        for name, (kind, _) in _fields_of(group).items():
            if kind == tuple[str, ...]:
                object.__setattr__(self, name, texts_in(getattr(self, name)))
        check(self)

    def changed(self) -> dict[str, Any]:
        """The values that differ from the defaults, by name."""
        defaults = {entry.name: default_of(entry) for entry in fields(self) if "parameter" in entry.metadata}
        return {name: getattr(self, name) for name, value in defaults.items() if getattr(self, name) != value}

    def check_scopes(self, scopes: Collection[Scope]) -> None:
        """Raise an error if a parameter that differs from its default has no effect under these scopes."""
        records = records_of(type(self))
        for name in self.changed():
            for scope in records[name].scopes:
                if scope not in scopes:
                    raise ModelError(f"`{name}` {scope.says}; leave it out, or {scope.remedy}")


def texts_in(names: Any) -> tuple[str, ...]:
    """Names as strings; a string is one name, and an item of a dict becomes ``name=value``.

    >>> texts_in("id"), texts_in({"yes": 5, "day": "%d.%m.%Y"})
    (('id',), ('yes=5.0', 'day=%d.%m.%Y'))
    """
    if isinstance(names, Mapping):
        values = {name: float(value) if isinstance(value, numbers.Real) else value for name, value in names.items()}
        names = [f"{name}={value}" for name, value in values.items()]
    return tuple(map(str, names_in(names)))


def default_of(entry: Field[Any]) -> Any:
    """The default of a field; MISSING if it has none."""
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def records_of(group: Any) -> dict[str, Parameter]:
    """The records of a group's parameters, by name."""
    return {name: record for name, (_, record) in _fields_of(group).items()}


@cache
def _fields_of(group: Any) -> dict[str, tuple[Any, Parameter]]:
    """The types and the records of a group's parameters; cached because resolving annotations is slow."""
    hints, entries = get_type_hints(group), [entry for entry in fields(group) if "parameter" in entry.metadata]
    return {entry.name: (hints[entry.name], entry.metadata["parameter"]) for entry in entries}


def option(name: str) -> str:
    """The option of a parameter.

    >>> option("on_bad_row")
    '--on-bad-row'
    """
    return OTHER_OPTIONS.get(name, f"--{name.replace('_', '-')}")


def words_of(name: str, value: Any) -> list[str]:
    """The words of a command line that set a parameter to a value.

    >>> words_of("shuffle", True), words_of("ignore", ("id", "zip code")), words_of("loss", "hinge")
    (['--shuffle'], ['--ignore', 'id', '--ignore', 'zip code'], ['--loss', 'hinge'])
    """
    if value is True:
        return [option(name)]
    return [word for each in names_in(value) for word in (option(name), f"{each}")]


def as_options(message: str, write: Callable[[str, str], str] = lambda name, words: words) -> str:
    """A message with the names of parameters replaced by options of the command line.

    ``write`` maps the name of a parameter and the words of its option to the replacement.

    >>> as_options("the number is missing; pass `on_bad_row='skip'`, or leave `na_values` out")
    'the number is missing; pass --on-bad-row skip, or leave --na-values out'
    >>> as_options("pass `passes=1`, or `date=FORMAT`")
    'pass `passes=1` in Python, or --date FORMAT'
    """

    def replaced(match: re.Match[str]) -> str:
        name, text = match.groups()
        if name in OF_PYTHON:
            return write(name, f"{match[0]} in Python")
        if text is None:
            return write(name, option(name))
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):  # a placeholder of a value, such as FORMAT
            value = text
        return write(name, shlex.join(words_of(name, value)))

    return NAMED.sub(replaced, message)


@contextmanager
def naming(owner: str, present: Collection[str] = ()) -> Iterator[None]:
    """A context in which errors name the owner of parameters that the caller does not have (not ``present``).

    In parentheses these parameters are left out.

    >>> with naming("tunefree.train", ["text"]):
    ...     raise ModelError("leave it out (`ignore='a'`), or of `text`, or pass `decimal=','`")
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: leave it out, or of `text`, or pass `decimal=','` of tunefree.train
    """
    try:
        yield
    except TunefreeError as error:
        message = ASIDE.sub(lambda match: match[0] if match[1] in present else "", str(error))
        error.args = (NAMED.sub(lambda match: match[0] if match[1] in present else f"{match[0]} of {owner}", message),)
        raise
