"""Generator of the demo split: scenes in words and pictures, simulated models and raters.

`python -m tools.demo_split` writes the files that `benchmarks.demo.load` reads; everything follows
from a seed, so that it writes the same split on every machine.
"""
