"""A model as a sum of terms: a constant, functions of single columns, functions of pairs of columns."""
