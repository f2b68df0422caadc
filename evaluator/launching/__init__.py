"""Scoring on machines of the Hub: one job for each run, started and followed from here."""
