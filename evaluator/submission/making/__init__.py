"""Writing a submission to begin with."""
