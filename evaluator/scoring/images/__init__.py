"""Images on their way to a scorer: read, made canonical, resized."""
