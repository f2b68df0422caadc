"""Permutation tests of the difference of two metrics that are judged by the same gold."""
