"""What moved between two revisions of a benchmark."""
