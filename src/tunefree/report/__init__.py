"""Output of commands and pages: blocks of facts, tables, charts and notes, and their rendering."""
