"""The bundled demo split: rendered scenes with the structure of all four seed benchmarks."""
