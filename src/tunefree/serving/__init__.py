"""A model in operation: it predicts and learns as rows are sent, keeps them in a journal, and logs events."""
