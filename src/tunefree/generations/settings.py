"""Settings of trees, which a generation inherits from the one before it (:mod:`tunefree.generations.inheritance`)."""

from __future__ import annotations

from typing import NamedTuple


class Settings(NamedTuple):
    """How trees are grown: each is a multiple of what follows from the number of rows, columns and classes.

    >>> Settings(trees=2.0**0.5, columns=2.0).in_words()
    '1.41 times the trees, 2 times the columns'
    """

    trees: float = 1.0
    columns: float = 1.0  # drawn for a tree, or tried at a node
    leaves: float = 1.0
    rate: float = 1.0
    least: float = 1.0  # rows of a leaf, or of a node that is split

    @property
    def fewest_trees(self) -> float:
        """The multiple at which the trees come as far, by their shrinkage rate, as those of a first generation."""
        return 1.0 / self.rate

    def in_words(self) -> str:
        """What differs from the settings of a first generation."""
        nouns = {"rate": "shrinkage rate", "least": "rows of the smallest node"}
        parts = [
            f"{multiple:.3g} times the {nouns.get(name, name)}"
            for name, multiple in self._asdict().items()
            if multiple != 1.0
        ]
        return ", ".join(parts) or "as at first"


USUAL = Settings()
