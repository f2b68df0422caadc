"""Page of one text-to-image model."""
