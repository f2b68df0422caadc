"""All HTML of the page about seeds."""

from __future__ import annotations

from leaderboard.models.reading import ModelReader
from leaderboard.models.seeds_types import JudgeSeeds, SeedReport
from leaderboard.pages.models.forms import (
    asking_form,
    judge_field,
    set_field,
    skill_field,
    split_field,
    words_field,
)
from leaderboard.pages.models.names import judge_name, model_name, plain_name
from leaderboard.pages.models.view import SIMULATED, empty
from leaderboard.pages.seeds.bump import Ranks, bump_chart, rank_table
from leaderboard.pages.seeds.variation import variation_table
from leaderboard.pages.seeds.verdicts import swaps_list, verdict, verdict_table
from leaderboard.pages.shown.markup import notice, page, section, text
from leaderboard.publication.measure_names import skill_title
from leaderboard.text import count
from leaderboard.views.models import Choice


def seeds_view(choice: Choice, report: SeedReport | None, reader: ModelReader, judge: str) -> str:
    """The page.

    Args:
        choice: what is looked at.
        report: how the models vary; None where there is nothing to compare.
        reader: of the models, for the list of prompt sets.
        judge: entry id of the metric whose ranks are drawn.
    """
    card = choice.card
    parts = ["<h1>Models over seeds</h1>", _intro(choice)]
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    fields = [set_field(reader, choice)]
    if choice.entries:
        fields += [*skill_field(choice, "All prompts"), *split_field(choice)]
        fields += [words_field(choice.query.words), *judge_field(choice, "", judge)]
    parts.append(asking_form("seeds", "Choose what to look at", fields,
                             {"models": ",".join(choice.query.models)}))  # fmt: skip
    if report is None:
        return page([*parts, empty(choice)])
    own = next((one for one in report.judges if one.judge.entry_id == judge), None)
    parts.append(_one_seed(report))
    where = skill_title(card, report.skill) if report.skill else "all prompts"
    title = f"Does the order hold? {where[:1].upper()}{where[1:]}"
    parts.append(section(title, verdict_table(report.judges),
                         aside=f"<span>{count(report.n_prompts, 'prompt')}</span>",
                         ident="stability"))  # fmt: skip
    if own is not None:
        parts += [_ranks(own, report), _variation(own, report)]
    return page(parts)


def ranks_of(own: JudgeSeeds) -> tuple[Ranks, tuple[str, ...]]:
    """Rank and mean of every model with every seed, and what each seed is called."""
    seeds = tuple(dict.fromkeys(one.seed for one in own.scores))
    found: dict[str, list[tuple[int | None, float]]] = {}
    for one in own.scores:
        found.setdefault(one.model, [(None, float("nan"))] * len(seeds))
        found[one.model][seeds.index(one.seed)] = one.rank, one.value
    return found, tuple(f"Seed no. {seed}" for seed in seeds)


def _intro(choice: Choice) -> str:
    back = text(choice.query.to_link())
    return (
        '<p class="as-intro">The same models and prompts with another random seed: an order that '
        "changes with the seed says little. Models have seeds of their own; the first of each are "
        f'held against each other, and so on. <a href="{back}">The board of models</a></p>'
    )


def _one_seed(report: SeedReport) -> str:
    if not report.one_seed:
        return ""
    names = ", ".join(
        text(plain_name(report.entries[one])) for one in report.one_seed if one in report.entries
    )
    return notice(f"With one seed only, so that nothing can be said of them here: {names}.")


def _ranks(own: JudgeSeeds, report: SeedReport) -> str:
    if own.stability is None:
        why = text(own.note) or "Fewer than two models have two seeds or more by this metric."
        return section("Rank with each seed", f'<div class="as-empty"><p>{why}</p></div>')
    ranks, seeds = ranks_of(own)
    plain = {one: plain_name(entry) for one, entry in report.entries.items()}
    linked = {one: model_name(entry) for one, entry in report.entries.items()}
    by = judge_name(own.judge.entry_id, own.judge.title)
    label = f"Rank with each seed by {own.judge.title}"
    swaps = swaps_list(own.stability, linked)
    pairs = (
        f"<h3>Pairs that seeds order in opposite ways</h3>{swaps}"
        if swaps
        else ("<p>No two seeds order any two models in opposite ways.</p>")
    )
    figures = rank_table(ranks, linked, seeds, "Rank and mean with each seed")
    return section(
        "Rank with each seed",
        f"<p>By {by}: {verdict(own.stability)}</p>{bump_chart(ranks, plain, seeds, label)}{pairs}"
        f'<details data-keep="seed-ranks"><summary>As a table</summary>{figures}</details>',
        ident="ranks",
    )


def _variation(own: JudgeSeeds, report: SeedReport) -> str:
    by = judge_name(own.judge.entry_id, own.judge.title)
    return section(
        "How much each model varies",
        f"<p>By {by}, over all of its own seeds.</p>{variation_table(own.variation, report.entries)}",
        ident="variation",
    )
