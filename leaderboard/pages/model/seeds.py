"""Variation of one model over its seeds, by one metric."""

from __future__ import annotations

from leaderboard.models.seeds_types import SeedReport, SeedVariation
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.seeds.variation import seed_means
from leaderboard.pages.seeds.verdicts import verdict
from leaderboard.pages.shown.markup import section, text
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import number
from leaderboard.views.addresses import seeds_address


def seeds_section(entry: ModelEntry, report: SeedReport) -> str:
    """Means and ranks with each seed, and whether the order of the models holds.

    Args:
        entry: the model.
        report: of its set, by one metric; empty where it has none.
    """
    own = next(iter(report.judges), None)
    mine = next(
        (one for one in own.variation if one.submission_id == entry.submission_id), None
    ) if own else None  # fmt: skip
    if own is None or mine is None:
        return ""
    ranks = [
        f"{one.rank} <span class=as-muted>(seed no. {text(one.seed)})</span>"
        for one in own.scores
        if one.model == entry.submission_id and one.rank is not None
    ]
    stable = verdict(own.stability)
    rows = [("Mean with each seed", seed_means(mine))]
    rows += [("Rank with each seed", ", ".join(ranks))] if ranks else []
    rows += [("Order of the models", stable), *_spreads(mine)]
    told = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    address = text(seeds_address(entry.prompt_set, judge=own.judge.entry_id))
    return section(
        "Over its seeds",
        f"<p>By {judge_name(own.judge.entry_id, own.judge.title)}. "
        f'<a href="{address}">All models over seeds</a></p><dl class="as-facts">{told}</dl>',
        ident="seeds",
    )


def _spreads(mine: SeedVariation) -> list[tuple[str, str]]:
    return [
        ("Spread of the means", number(mine.spread, 4)),
        ("Within a prompt", f"{number(mine.within)} over the seeds, {number(mine.between)} between prompts"),
    ]  # fmt: skip
