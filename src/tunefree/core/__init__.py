"""The foundation of all packages: errors, rows, fields and parts, parameters, threads, files of arrays."""
