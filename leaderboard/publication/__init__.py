"""Publication of runs, and the snapshot that every page reads."""
