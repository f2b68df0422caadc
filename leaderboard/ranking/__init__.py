"""From values to orders: cells, ranks and their ranges, tiers, the index over benchmarks."""
