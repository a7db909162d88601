"""A model in operation: it predicts and learns as rows are sent, loses nothing, and says what happens."""
