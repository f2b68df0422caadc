"""CROCScore: which captions with which images, the answer as target, and its scorer."""
