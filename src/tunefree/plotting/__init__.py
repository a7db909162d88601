"""Charts by matplotlib: one palette, functions that draw on axes, and figures as files and as parts of pages."""
