"""Figures of docs/statistics.md, computed with the code of the boards."""
