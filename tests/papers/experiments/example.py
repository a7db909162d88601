"""The parts of an experiment, apart from its tests: processes that compute them import no more than they need."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from tunefree.papers.experiments.experiment import Part


class Settings(NamedTuple):
    """Of an experiment made for these tests."""

    parts: int = 4
    scale: float = 1.0


def parts(settings, results):
    """Squares of numbers; once they are known, their sum's square root as a last part."""
    found = [Part(f"square-{i}", {"number": i * settings.scale}) for i in range(settings.parts)]
    if all(part.name in results for part in found):
        found.append(Part("last", {"number": float(sum(results[part.name]["square"] for part in found)) ** 0.5}))
    return found


def work(files, number):
    return {"square": np.array(number**2)}


def stops_at_two(files, number):
    if number == 2:
        raise KeyboardInterrupt
    return work(files, number)


def ends_its_process(files, number):
    os._exit(1)
