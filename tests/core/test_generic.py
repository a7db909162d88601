"""Generic functions: the body of a class, and a default, are the same in Python and in compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numba
import pytest

from tunefree.core.generic import generic, generic_with_default


class Circle(NamedTuple):
    radius: float


class Square(NamedTuple):
    side: float


@generic
def area(shape):
    raise TypeError(f"{type(shape).__name__} has no area")


@generic_with_default
def corners(shape, times):
    return 0 * times


@area.register(Circle)
def area_of_circle(shape):
    return 3.0 * shape.radius**2


@corners.register(Square)
def corners_of_square(shape, times):
    return 4 * times


@numba.njit
def both(shape, times):
    return corners(shape, times)


def test_a_class_has_its_own_body():
    assert area(Circle(2.0)) == 12.0
    assert corners(Square(1.0), 2) == both(Square(1.0), 2) == 8


def test_a_default_serves_other_classes_in_python_and_in_compiled_code():
    assert corners(Circle(1.0), 2) == both(Circle(1.0), 2) == 0


def test_without_a_default_the_declaration_answers():
    with pytest.raises(TypeError, match="Square has no area"):
        area(Square(1.0))
