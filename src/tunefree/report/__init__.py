"""What commands print and pages show: blocks of facts, tables, charts and notes, and what renders them."""
