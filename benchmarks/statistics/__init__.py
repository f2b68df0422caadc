"""The mathematics of the protocols: pure functions of arrays, no input or output."""
