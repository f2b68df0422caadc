"""Where a published figure does not follow from its own data, or a paper and its code differ.

`errata.toml` holds one entry per place; `entries` reads it. Entries that public data decide are
recomputed by the functions of the modules `recompute_*`: `python -m benchmarks.errata ID`. The
files they read are declared in `errata.toml` too, with address and hash; see `data`.
"""

from __future__ import annotations

from benchmarks.errata.entries import Erratum, ErratumCell, errata

__all__ = ["Erratum", "ErratumCell", "errata"]
