"""Page of one prompt, and its generations by all models."""
