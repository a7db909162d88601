"""From files, standard input and tables in memory to batches of rows of features."""
