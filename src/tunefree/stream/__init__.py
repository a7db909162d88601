"""Sources of batches: from files, standard input and data frames to blocks of rows."""
