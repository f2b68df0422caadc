"""Further measures: each module here that defines `MEASURES` adds some to benchmarks that exist."""
