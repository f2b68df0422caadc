"""The queue, and the submissions that run now."""
