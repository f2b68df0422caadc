"""Comparison of two folders of images: better, tied, worse or undecided, skill by skill."""
