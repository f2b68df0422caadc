"""Environments of scoring modules: locks, and the folders of packages that are built from them."""
