"""One text-to-image model."""
