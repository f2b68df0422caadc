"""Page of one text-to-image model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.schema import Card
from leaderboard.models.board_types import ModelBoard, SeedReport, SkillBoard
from leaderboard.models.reading import ModelReader
from leaderboard.models.variation import Robustness, robustness, seed_report
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.records import JudgeRun
from leaderboard.rendering import render
from leaderboard.text import MISSING, clean, count
from leaderboard.views.addresses import paged, prompt_address
from leaderboard.views.citation import NOWHERE, CitedAt, model_citation
from leaderboard.views.figures import Option, rank_range
from leaderboard.views.hub_results import hub_model_of
from leaderboard.views.models import (
    PER_PAGE,
    Choice,
    Drawn,
    ModelQuery,
    ModelsQuery,
    PlaceQuery,
    plain_name,
    resolve,
)
from leaderboard.web.components import Link, Values
from leaderboard.web.model_parts import NAMES, by_seed, fine_percent, judges_of_boards
from leaderboard.web.model_place import Select, judge_field, skill_field, split_field

_ORDERS = (
    Option("worst", "Lowest score first"),
    Option("best", "Highest score first"),
    Option("set", "As in the set"),
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MOST_SEEDS = 24
_FORMS = (
    ("every-eval-ever.json", "Every Eval Ever"),
    ("every-eval-ever-samples.jsonl", "its samples"),
    ("inspect.json", "Inspect log"),
    ("eval-results.yaml", "results for the Hub"),
)
"""Exports of a model by their names in the API, and what they are called."""
_EXAMPLES = 3


def model_html(
    query: ModelQuery, reader: ModelReader, view: View, at: CitedAt = NOWHERE
) -> tuple[str, str, str]:
    """The page of a model, its query and its title; which there are where it is not there."""
    known = reader.track().entries
    entry = known.get(query.submission_id)
    if entry is None or entry.prompt_set not in reader.prompt_sets:
        html = render(
            "models/model.html", **NAMES, absent=query.submission_id, on_boards=entry is not None,
            entries=list(known.values()), places=(Link("Models", "./models"),),
        )  # fmt: skip
        return html, query.to_link().removeprefix("./model"), "Model"
    choice = resolve(replace(query.of, prompt_set=entry.prompt_set, models=()), reader, view)
    assert choice is not None  # Its prompt set is there.
    query = replace(query, of=choice.query)
    current = entry in choice.entries
    # Of an earlier revision nothing is compared: its prompts may be others.
    board = choice.board(whole=True) if current else None
    judge, seeds = "", None
    changes: Sequence[Robustness] = ()
    images: list[tuple[int, Drawn]] = []
    page, pages = 1, 1
    if board is not None:
        judge = choice.judge
        changes = robustness(reader, view, choice.whole_query)
        seeds = seed_report(reader, view, replace(choice.whole_query, judge=judge))
        drawn = choice.drawn(entry, choice.places)
        shown, page, pages = paged(in_order(drawn, query), query.page, PER_PAGE)
        images = [(choice.places[at], drawn[at]) for at in shown]
    # Metrics that were taken off the boards are named nowhere.
    runs = {one: run for one, run in entry.judges.items() if one in view.entries}
    html = render(
        "models/model.html",
        **NAMES,
        absent=None,
        entry=entry,
        choice=choice,
        current=current,
        board=board,
        judge=judge,
        page=page,
        pages=pages,
        place=PlaceQuery(ModelsQuery(entry.prompt_set)),
        other=next((one.submission_id for one in choice.entries if current and one != entry), ""),
        said=_summary(entry, choice, board),
        hub=f"https://huggingface.co/{hub}" if (hub := hub_model_of(entry)) else "",
        cite=model_citation(entry, choice.card, at),
        forms=_FORMS,
        shared=_shared(entry, known),
        seeds_said=_seeds(entry.images.seeds),
        fields=(*skill_field(choice), *split_field(choice), *judge_field(choice, judge),
                Select("order", "Order", _ORDERS, query.order)),
        cases=[
            {
                "prompt": (prompt := choice.prompts[place]),
                "images": by_seed(of, prompt),
                "href": prompt_address(
                    choice.card.name, prompt.prompt_id, judge=judge, skill=choice.query.skill
                ),
            }
            for place, of in images
        ],
        to_page=lambda page: query.to_link(page=page),
        runs=[_run(one, run, choice, changes) for one, run in runs.items()],
        command=command(entry, choice.card),
        **_means(entry.submission_id, board, query),
        **_over_seeds(entry.submission_id, seeds),
    )  # fmt: skip
    return html, query.to_link(page=page).removeprefix("./model"), plain_name(entry, 80)


def in_order(drawn: Sequence[Drawn], query: ModelQuery) -> list[int]:
    """Places of the prompts in the order of a query; those without a score come last."""
    places = list(range(len(drawn)))
    if query.order == "set":
        return places
    sign = 1.0 if query.order == "worst" else -1.0
    means = [one.mean for one in drawn]
    return sorted(
        places, key=lambda at: sign * means[at] if not math.isnan(means[at]) else math.inf
    )


def _summary(entry: ModelEntry, choice: Choice, board: ModelBoard | None) -> str:
    """Where it stands over all prompts, and what its images are."""
    seen = f"{count(entry.images.present, 'image')} of the prompts of {choice.card.title}"
    said = f"{seen} with {count(len(entry.images.seeds), 'seed')}."
    overall = board.skills.get(None) if board else None
    standing = overall.standings.get(entry.submission_id) if overall else None
    if overall is None or standing is None:
        return said
    if standing.rank_low is None:
        return f"{said} No rank: {standing.unranked}"
    judges = count(len(overall.trusted), "qualified metric")
    n_ranked = sum(one.rank_low is not None for one in overall.standings.values())
    return (
        f"Rank {rank_range(standing)} of {n_ranked} models over all prompts by "
        f"{judges}: significantly better than {len(standing.better_than)}, significantly worse "
        f"than {len(standing.worse_than)}. {said}"
    )


def _shared(entry: ModelEntry, known: Mapping[str, ModelEntry]) -> list[Values]:
    """Who has the same images."""
    found = [
        (
            one.submission_id,
            f"{count(one.n_images, 'image')} as in",
            ", ".join(
                f"{clean(prompt)[:40]} seed {seed}" for prompt, seed in one.examples[:_EXAMPLES]
            ),
        )
        for one in entry.images.shared
    ]
    found += [(one, "the very same files as", "") for one in entry.same_content_as]
    return [
        {"said": said, "submission_id": one, "entry": known.get(one), "examples": examples}
        for one, said, examples in found
    ]


def _means(ident: str, board: ModelBoard | None, query: ModelQuery) -> Values:
    """Skills down, metrics across."""
    having = [of for of in board.skills.values() if ident in of.standings] if board else []
    judges = judges_of_boards(having)

    def row(of: SkillBoard) -> Values:
        standing = of.standings[ident]
        here = {judge.entry_id: judge for judge in of.judges}
        return {
            "title": of.title,
            "n_prompts": of.n_prompts,
            "href": query.to_link(skill=of.skill or ""),
            "standing": standing,
            "rank": rank_range(standing),
            "cells": [(standing.means.get(one.entry_id), here.get(one.entry_id)) for one in judges],
        }

    return {"means_judges": judges, "means": [row(of) for of in having] if judges else []}


def _over_seeds(ident: str, seeds: SeedReport | None) -> Values:
    own = next(iter(seeds.judges), None) if seeds else None
    mine = next((one for one in own.variation if one.submission_id == ident), None) if own else None
    if own is None or mine is None:
        return {"own": None}
    ranks = [
        (one.rank, one.seed) for one in own.scores if one.model == ident and one.rank is not None
    ]
    return {"own": own, "mine": mine, "seed_ranks": ranks}


def _run(entry_id: str, run: JudgeRun, choice: Choice, changes: Sequence[Robustness]) -> Values:
    cost = run.cost
    in_gaps = next((one.in_gaps for one in changes if one.judge.entry_id == entry_id), None)
    return {
        "entry_id": entry_id,
        "title": choice.judges.get(entry_id, run.metric),
        "run": run,
        "lacking": sum(run.unscored.values()),
        "why": ", ".join(f"{clean(code)}: {n:,}" for code, n in run.unscored.items()),
        "per_image": cost.seconds / max(cost.images, 1) if cost and cost.images else None,
        "memory": f"{cost.peak_memory_bytes / 2**30:.1f} GiB"
        if cost and cost.peak_memory_bytes
        else MISSING,
        "change": ""
        if in_gaps is None
        else f"{fine_percent(in_gaps)} of its smallest gap between models",
    }


def command(entry: ModelEntry, card: Card) -> str:
    """What generates the images again; nothing submitted that a shell could read otherwise."""
    model, seen = entry.card, entry.images
    if not hub_model_of(entry):
        return f"python -m benchmarks prompts {card.name}"
    parts = [
        f"python -m evaluator generate --benchmark {card.name} --model {model.model} --out images"
    ]
    parts += [f"--revision {model.revision}"] if _COMMIT.fullmatch(model.revision) else []
    parts += [f"--seeds {','.join(map(str, seen.seeds))}"] if seen.seeds else []
    parts += [f"--steps {model.steps}"] if model.steps is not None else []
    parts += [f"--guidance {model.guidance:g}"] if model.guidance is not None else []
    return " \\\n    ".join(parts)


def _seeds(seeds: tuple[int, ...]) -> str:
    more = f" and {len(seeds) - _MOST_SEEDS:,} more" if len(seeds) > _MOST_SEEDS else ""
    return ", ".join(str(seed) for seed in seeds[:_MOST_SEEDS]) + more
