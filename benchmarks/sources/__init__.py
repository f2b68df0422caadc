"""Where the data of the benchmarks come from: declared files, checks, archives, downloads."""
