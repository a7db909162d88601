"""What a command does, as functions of sources, plans and model files."""
