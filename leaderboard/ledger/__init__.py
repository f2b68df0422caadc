"""Submissions and their events in the store, what is held of private ones, and the public chronicle."""
