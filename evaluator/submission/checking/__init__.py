"""The author's dry run: what is scored in it, what it costs, what the real run will take."""
