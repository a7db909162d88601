"""Explanation of models: contributions, importance and interactions of columns, and partial dependence."""
