"""Fetching from the Hub: models that modules name, and submissions."""
