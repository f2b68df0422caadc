"""Training of metrics: data to a submission, by a recipe that is one file of `recipes/`."""
