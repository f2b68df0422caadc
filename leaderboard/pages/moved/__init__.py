"""Changes between two revisions of a benchmark."""
