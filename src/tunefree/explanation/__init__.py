"""What a model has learned, in terms: a constant, functions of single columns, functions of pairs of columns."""
