"""The boards of the benchmarks: their tables, heatmaps and tests between pairs."""
