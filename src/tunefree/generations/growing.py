"""What grows generations, by the name of their kind."""

from __future__ import annotations

from collections.abc import Callable

from tunefree.generations.boosted import BOOSTED, grow_boosted
from tunefree.generations.inheritance import Grower
from tunefree.generations.linear import Linear, grow_linear
from tunefree.generations.problem import Problem, prepared
from tunefree.generations.randomised import RANDOMISED, grow_randomised
from tunefree.generations.settings import USUAL, Settings
from tunefree.generations.trees import Trees

KINDS: dict[str, Callable[[Problem, int, Settings], Trees | Linear | None]] = {
    "boosted": grow_boosted,
    "randomised": grow_randomised,
    "linear": grow_linear,
}
GROWERS: dict[str, Grower] = {"boosted": BOOSTED, "randomised": RANDOMISED}  # of the kinds that inherit settings


def grow(kind: str, problem: Problem, seed: int, settings: Settings = USUAL) -> Trees | Linear | None:
    """A model of a problem, of a kind in ``KINDS``; None where the kind is not for such rows.

    The same model comes of the same problem and seed, whatever the number of threads.
    """
    return KINDS[kind](problem if problem.binned else prepared(problem), seed, settings)
