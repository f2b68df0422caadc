"""What is published of a run, and the snapshot that every page reads."""
