"""What makes the documentation site of the pages in docs/: blocks of code are executed, reference pages generated."""
