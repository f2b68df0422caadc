"""The index over all benchmarks."""
