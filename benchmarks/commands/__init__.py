"""The commands of `python -m benchmarks`, one a file."""
