"""Docstrings in numpydoc format, with sections generated from parameter records.

The section "Parameters" of a group of parameters is generated from its records; for a method, from descriptions of
arguments that several methods share. The section "Attributes" of a class lists its own entries, the entries of its base
classes, and properties whose names end in an underscore. Missing text is inherited from base classes.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Self, TypeVar

from tunefree.core.parameters import default_of

Described = TypeVar("Described")
SECTIONS = ("Parameters", "Returns", "Attributes", "Raises", "Warns", "References", "Examples")  # in this order
HEADING = re.compile(rf"^({'|'.join(SECTIONS)})\n-+\n", re.MULTILINE)
WIDTH = 120


def described(group: type[Described]) -> type[Described]:
    """Add the descriptions of its parameters to the docstring of a group.

    >>> from dataclasses import dataclass
    >>> from tunefree.core.parameters import parameter
    >>> @described
    ... @dataclass
    ... class Cutting:
    ...     '''How to cut.'''
    ...     parts: int = parameter(2, "Number of parts.")
    >>> print(Cutting.__doc__)
    How to cut.
    <BLANKLINE>
    Parameters
    ----------
    parts : int, default=2
        Number of parts.
    """
    sections = sections_of(group.__doc__)
    by_name: dict[str, Any] = {entry.name: entry for entry in fields(group)}  # type: ignore[arg-type]
    names = [name for base in group.__mro__ for name in inspect.get_annotations(base) if name in by_name]
    sections["Parameters"] = "\n".join(map(_parameter_entry, map(by_name.__getitem__, dict.fromkeys(names))))
    sections["Attributes"] = "\n".join(_attributes(group).values())
    inherited = [sections_of(base.__doc__) for base in group.__mro__ if "__dataclass_fields__" in vars(base)]
    sections["References"] = next(filter(None, (part.get("References") for part in inherited)), "")
    details = (part[""].partition("\n\n")[2] for part in inherited)
    sections[""] = "\n\n".join(filter(None, [sections[""].partition("\n\n")[0], next(filter(None, details), "")]))
    group.__doc__ = _joined(sections)
    return group


def with_arguments(method: Described, descriptions: Mapping[str, str]) -> Described:
    """Add descriptions of arguments, by name, to the docstring of a method.

    A return annotation ``Self`` is described as ``self``.

    >>> def fit(self, X):
    ...     '''Fit.'''
    >>> with_arguments(fit, {"X": "X : array-like\\n    Rows."}).__doc__.splitlines()
    ['Fit.', '', 'Parameters', '----------', 'X : array-like', '    Rows.']
    """
    signature, sections = inspect.signature(method), sections_of(method.__doc__)  # type: ignore[arg-type]
    names = list(signature.parameters)
    method_entries = map(str.rstrip, re.split(r"(?m)^(?=\w+ : )", sections.get("Parameters", "")))
    entries = [*(descriptions[name] for name in names if name in descriptions), *filter(None, method_entries)]
    sections["Parameters"] = "\n".join(sorted(entries, key=lambda text: names.index(text.split(" : ")[0])))
    if signature.return_annotation in ("Self", Self):
        sections["Returns"] = "self"
    method.__doc__ = _joined(sections)
    return method


def sections_of(docstring: str | None) -> dict[str, str]:
    """The text of each section of a docstring by heading; the text before the first heading has the key ''.

    >>> sections_of("Cut.\\n\\nReturns\\n-------\\nlist")
    {'': 'Cut.', 'Returns': 'list'}
    """
    first, *rest = HEADING.split(inspect.cleandoc(docstring or ""))
    return {"": first.strip()} | {name: text.rstrip() for name, text in zip(rest[::2], rest[1::2], strict=True)}


def _joined(sections: dict[str, str]) -> str:
    """A docstring made of the sections that are not empty."""
    parts = [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in SECTIONS if sections.get(name)]
    return "\n\n".join([sections[""], *parts])


def _parameter_entry(entry: Field[Any]) -> str:
    record, default = entry.metadata["parameter"], default_of(entry)
    default = "" if default is MISSING else ", optional" if default is None else f", default={default!r}"
    names = [name for name in str(entry.type).split(" | ") if name != "None"]
    if record.choices:
        names = [f"{{{', '.join(map(repr, record.choices))}}}", *(name for name in names if name != "str")]
    return _entry(entry.name, (record.types or " or ".join(names)) + default, record.meaning)


def _entry(name: str, types: str, meaning: str) -> str:
    indent = {"initial_indent": "    ", "subsequent_indent": "    "}
    lines = textwrap.fill(meaning, WIDTH - 4, break_long_words=False, break_on_hyphens=False, **indent)  # type: ignore
    return f"{name} : {types}\n{lines}"


def _attributes(group: type) -> dict[str, str]:
    """The entries of the attributes of a class, by name."""
    entries: dict[str, str] = {}
    for base in group.__mro__:
        for entry in re.split(r"\n(?=\S)", sections_of(base.__doc__).get("Attributes", "")):
            entries.setdefault(entry.partition(" : ")[0], entry)
        for name, attribute in vars(base).items():
            if isinstance(attribute, property) and re.fullmatch(r"[a-z]\w*_", name) and name not in entries:
                types = str(inspect.signature(attribute.fget).return_annotation).replace("np.", "")  # type: ignore
                paragraph = inspect.cleandoc(attribute.__doc__ or "").partition("\n\n")[0]
                entries[name] = _entry(name, types, " ".join(paragraph.split()))
    return {name: entry for name, entry in entries.items() if name}
