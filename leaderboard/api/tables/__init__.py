"""Answers of the API's routes, as tables."""
