"""Registries: objects chosen by name and loaded at first use.

Learners, losses, kernels, file formats and commands are each a registry with one line per entry. Help texts and
messages list the names without importing the objects. Users add objects with :meth:`Registry.register`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from tunefree.core.errors import ModelError


def names_in(names: Any) -> list[Any]:
    """One or several names as a list; a string is one name.

    >>> names_in("age"), names_in(("age", "job")), names_in(3), names_in(None)
    (['age'], ['age', 'job'], [3], [])
    """
    if names is None:
        return []
    return list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]


class Registry(Mapping[str, Any]):
    """A mapping from names to objects, in a fixed order.

    ``kind`` is the singular noun for an object in messages. ``entries`` maps each name to the location of its object,
    ``"package.module:attribute"``. Other names are looked up in the entry points ``group`` of other packages.

    >>> shapes = Registry("shape", {"path": "pathlib:PurePosixPath"})
    >>> shapes["path"]("a/b").name, list(shapes)
    ('b', ['path'])
    >>> shapes.register("number", int)
    >>> shapes["circle"]
    Traceback (most recent call last):
    tunefree.core.registry.UnknownNameError: unknown shape 'circle'; choose one of path, number
    """

    def __init__(self, kind: str, entries: dict[str, str], group: str = "") -> None:
        self.kind, self._group = kind, group
        self._entries: dict[str, Any] = dict(entries)  # objects, or their locations until first use
        self._of_others: dict[str, Any] = {}  # from entry points; not listed, as installed packages vary

    def register(self, name: str, entry: Any) -> None:
        """Add an object under a name.

        Parameters
        ----------
        name : str
            A name that is not taken.
        entry : object
            The object itself, or its location as a string ``"package.module:attribute"``.

        Raises
        ------
        ModelError
            If the name is taken by another object.
        """
        registered = self._entries.setdefault(name, entry)
        if registered != entry and self[name] is not load(entry):
            raise ModelError(f"there is a {self.kind} {name!r} already; choose another name")

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise UnknownNameError(f"unknown {self.kind} {name!r}; choose one of {', '.join(self._entries)}")
        entries = self._entries if name in self._entries else self._of_others
        entries[name] = load(entries[name])
        return entries[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._entries and name not in self._of_others and isinstance(name, str):
            for point in self._entry_points():
                if point.name == name:
                    self._of_others[name] = f"{point.module}:{point.attr}"
        return name in self._entries or name in self._of_others

    def search(self) -> list[str]:
        """All names, including the group."""
        return list(dict.fromkeys([*self._entries, *sorted(point.name for point in self._entry_points())]))

    def _entry_points(self) -> Iterable[Any]:
        if not self._group:
            return ()
        from importlib.metadata import entry_points  # imported here because searching packages is slow

        return entry_points(group=self._group)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def load(location: Any) -> Any:
    """The object at a location ``"package.module:attribute"``; an object itself is returned unchanged."""
    if not isinstance(location, str):
        return location
    module, _, attribute = location.partition(":")
    return getattr(import_module(module), attribute)


class UnknownNameError(ModelError, KeyError):
    """A name that is not in a registry."""

    __str__ = ModelError.__str__
