"""Spellings of a missing value, and of true and false."""

from __future__ import annotations

MISSING = ("", "?", "nan", "NaN")  # missing in columns of any type, after white space around them is stripped
# Also missing in columns of numbers and dates.
DASHES = ("-", "--", "---", "\u2013", "\u2014", ".", "..", "*")
# Also missing in text formats that do not distinguish strings from nulls.
NULLS = ("NA", "N/A", "n/a", "#N/A", "NAN", "null", "NULL", "Null", "None", "-nan", "-NaN", "<NA>", r"\N")
SIGNS_OF_MISSING = (
    *DASHES,
    *NULLS,
    *("n.a.", "N.A.", "none"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),  # of Excel
    *("0000-00-00", "0000-00-00 00:00:00"),  # of MySQL
)
TRUTHS = ("false", "true", "f", "t", "no", "yes", "n", "y", "0", "1")  # pairs of false and true, in lower case
