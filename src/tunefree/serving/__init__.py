"""Models that answer and learn over HTTP."""
