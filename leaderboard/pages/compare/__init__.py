"""Entries compared with each other."""
