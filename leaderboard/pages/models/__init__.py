"""The board of text-to-image models."""
