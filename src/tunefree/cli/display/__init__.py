"""What commands print: progress on standard error, results on standard output."""
