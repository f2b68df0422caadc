"""Errata: published figures that do not follow from their data, papers that differ from their code.

`errata.toml` holds one entry per place; `entries` reads it. Entries that public data decide are
recomputed by `figures`: `python -m benchmarks.errata ID`. The files they are made from are
declared in `errata.toml` too, with address and hash.
"""

from __future__ import annotations

from benchmarks.errata.entries import Erratum, ErratumCell, errata

__all__ = ["Erratum", "ErratumCell", "errata"]
