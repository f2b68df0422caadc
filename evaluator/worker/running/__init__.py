"""Running one submission: its code in a box, or its file."""
