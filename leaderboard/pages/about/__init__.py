"""What the words mean, and what is known to be wrong."""
