"""Situations that users bring: what a careful user would have reached, and how far ``fit`` may stay behind it."""
