"""Leaderboard: the store, its records, the boards and the pages.

Imports `benchmarks`, never `evaluator` or the app; needs no torch.
"""
