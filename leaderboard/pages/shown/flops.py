"""Floating-point operations as authors declare them, in words."""

from __future__ import annotations

GIGA = 1e9
"""They are shown in thousands of millions, which is about what small models take for a pair."""
DECLARED = "declared by its author, not measured"
NOT_DECLARED = "not declared"


def gigaflops_text(value: float) -> str:
    """`98.6 GFLOPs`, from a number of them."""
    if value < 0.01:
        return f"{value:.1e} GFLOPs"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} GFLOPs"
