"""Figures of the documents, computed with the code of the boards."""
