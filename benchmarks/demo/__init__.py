"""The bundled demo split: drawn scenes with the structure of all four seed benchmarks."""
