"""Page of the variation of models over their seeds."""
