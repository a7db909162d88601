"""Registries: objects that can be chosen by name, loaded at their first use.

Learners, losses, kernels, file formats and commands are each a registry with one line an entry. Names cost
nothing, so that help texts and messages are made from them without importing what they name; users add their own with
:meth:`Registry.register`.
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

    Parameters
    ----------
    kind : str
        What is registered, in the singular, for messages.
    entries : dict of str to str
        For each name the place of its object, ``"package.module:attribute"``.
    group : str, optional
        Of entry points of other packages, where names are looked for that are not among these.

    Examples
    --------
    >>> shapes = Registry("shape", {"path": "pathlib:PurePosixPath"})
    >>> shapes["path"]("a/b").name, list(shapes)
    ('b', ['path'])
    >>> shapes.register("number", int)
    >>> shapes["circle"]
    Traceback (most recent call last):
    tunefree.core.registry.UnknownNameError: unknown shape 'circle'; choose one of path, number
    """

    def __init__(self, kind: str, entries: dict[str, str], group: str | None = None) -> None:
        self.kind, self._group = kind, group
        self._places: dict[str, str] = dict(entries)
        self._of_others: dict[str, str] = {}  # found by entry points: not listed, as others may be installed
        self._loaded: dict[str, Any] = {}

    def register(self, name: str, entry: Any) -> None:
        """Add an object under a name.

        Parameters
        ----------
        name : str
            A name that is not taken.
        entry : object
            The object itself, or its place as a string ``"package.module:attribute"``.

        Raises
        ------
        ModelError
            If the name is taken by another object.
        """
        if name in self._places and self._places[name] != entry and self._loaded.get(name) is not entry:
            raise ModelError(f"there is a {self.kind} {name!r} already; choose another name")
        place = f"{getattr(entry, '__module__', '')}:{getattr(entry, '__qualname__', name)}"
        self._places.setdefault(name, entry if isinstance(entry, str) else place)
        if not isinstance(entry, str):
            self._loaded[name] = entry

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise UnknownNameError(f"unknown {self.kind} {name!r}; choose one of {', '.join(self._places)}")
        if name not in self._loaded:
            self._loaded[name] = load(self._places.get(name) or self._of_others[name])
        return self._loaded[name]

    def objects(self) -> tuple[Any, ...]:
        """All objects, in the order of their names."""
        if self._loaded.keys() >= self._places.keys():
            return tuple(map(self._loaded.__getitem__, self._places))
        return tuple(self.values())

    def __contains__(self, name: object) -> bool:
        if name in self._places or name in self._of_others:
            return True
        if self._group is not None and isinstance(name, str):
            from importlib.metadata import entry_points  # packages are searched only then, which is slow

            for point in entry_points(group=self._group, name=name):
                self._of_others[name] = f"{point.module}:{point.attr}"
        return name in self._of_others

    def search(self) -> list[str]:
        """All names, including the group."""
        if self._group is not None:
            from importlib.metadata import entry_points

            return list(dict.fromkeys([*self._places, *sorted(entry_points(group=self._group).names)]))
        return list(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def load(place: str) -> Any:
    """The object at a place ``"package.module:attribute"``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


class UnknownNameError(ModelError, KeyError):
    """A name that a registry does not hold."""

    __str__ = ModelError.__str__
