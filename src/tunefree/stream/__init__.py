"""Reading of files, standard input and tables in memory, as batches of rows of features."""
