"""Learners and the pool beside each other on one pass over a stream, as the papers compare them."""
