"""Writes the reference part of the documentation from the code, so that the two cannot differ."""
