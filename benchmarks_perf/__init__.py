"""Measurements of speed and memory, each held to its limits: `python -m benchmarks_perf --list`."""
