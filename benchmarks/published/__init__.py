"""Printed tables of the papers, cell by cell, for comparison with what is computed here.

`cells` reads the tables, `papers.toml` says where each was printed. No figure here is computed.
"""

from __future__ import annotations

from benchmarks.published.cells import Paper, PublishedCell, papers, published

__all__ = ["Paper", "PublishedCell", "papers", "published"]
