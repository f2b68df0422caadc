"""What is measured: the benchmarks, their protocols and the statistics behind them.

This package is the bottom layer: it imports nothing of `leaderboard`, `evaluator` or the app.
"""
