"""Boards of text-to-image models: means, tests, consensus of metrics."""
