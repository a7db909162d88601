"""What every room stands on: errors, compiled code, rows, threads, files of arrays."""
