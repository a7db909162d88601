"""Texts that stand for a missing value, or for true and false."""

from __future__ import annotations

MISSING = ("", "?", "nan", "NaN")  # whatever the column holds, white space around them removed
# Beside these, in columns of numbers and dates.
DASHES = ("-", "--", "---", "\u2013", "\u2014", ".", "..", "*")
# Beside these, in text that does not tell strings from nulls.
NULLS = ("NA", "N/A", "n/a", "#N/A", "NAN", "null", "NULL", "Null", "None", "-nan", "-NaN", "<NA>", r"\N")
SIGNS_OF_MISSING = (
    *DASHES,
    *NULLS,
    *("n.a.", "N.A.", "none"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),  # of Excel
    *("0000-00-00", "0000-00-00 00:00:00"),  # of MySQL
)
TRUTHS = ("false", "true", "f", "t", "no", "yes", "n", "y", "0", "1")  # falsehoods and truths in turn, in lower case
