"""A model: its members, how they are mixed, how they see rows, and how they are saved."""
