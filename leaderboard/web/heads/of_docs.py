"""Heads of guides and of pages of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping

from leaderboard.api.source import Source
from leaderboard.web.guides import guides
from leaderboard.web.heads.head import Head


def benchmark_head(params: Mapping[str, str], source: Source) -> Head | None:
    """Of a benchmark; None where there is none of that name."""
    card = source.cards.get(params.get("name", ""))
    return Head(card.title, card.summary) if card else None


def guide_head(params: Mapping[str, str], _: Source) -> Head | None:
    """Of a guide; None where there is none of that name."""
    guide = guides().get(params.get("name", ""))
    return Head(guide.title, guide.lead) if guide else None
