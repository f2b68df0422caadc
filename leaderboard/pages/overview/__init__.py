"""The front page: who leads, and where."""
