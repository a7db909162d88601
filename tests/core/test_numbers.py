"""Arithmetic at the ends of what can be represented."""

from math import inf

from tunefree.core import numbers as n


def test_numbers_stay_finite_and_exact():
    exponents = (-1024, -1023, -1022, 0, 1023)
    assert [n.power_of_two(exponent) for exponent in exponents] == [0.0, 2.0**-1023, 2.0**-1022, 1.0, 2.0**1023]
    assert [n.power_below(number) for number in (-0.3, 8.0, inf)] == [0.25, 8.0, 2.0**1023]
    assert [n.unit_below(7.9), n.unit_below(0.0)] == [4.0, n.SMALLEST_UNIT]
    assert [n.norm(3.0, -4.0), n.norm(2.0**1000, 0.0), n.norm(1.7e308, 1.7e308)] == [5.0, 2.0**1000, n.LARGEST]
    assert [n.raised(10.0, 309.0), n.raised(0.5, 3.0)] == [n.MOST, 0.125]
    assert [n.approach(2.0, 100.0, 0.5, 8.0), n.approach(0.0, 100.0, 0.5, 8.0)] == [9.0, 50.0]
