"""Sources of benchmark data: declared files, checks, archives, downloads."""
