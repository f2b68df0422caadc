"""Benchmarks: protocols, the statistics behind them, and the figures that people released.

This package is the bottom layer: it imports nothing of `leaderboard`, `evaluator` or the app.
"""
