"""The page of one text-to-image model as HTML."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.schema import Card
from leaderboard.models.board_types import SkillBoard
from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.records import JudgeRun
from leaderboard.rendering import render
from leaderboard.text import MISSING, clean, count
from leaderboard.views.addresses import prompt_address
from leaderboard.views.figures import rank_range
from leaderboard.views.model_place import (
    AbsentModel,
    ModelView,
    model_view,
)
from leaderboard.views.models import ModelQuery, ModelsQuery, PlaceQuery, plain_name
from leaderboard.web.components import Link
from leaderboard.web.model_parts import NAMES, by_seed, fine_percent, judges_of_boards
from leaderboard.web.model_place import Select, judge_field, skill_field, split_field

_ORDERS = (
    ("Lowest score first", "worst"),
    ("Highest score first", "best"),
    ("As in the set", "set"),
)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MOST_SEEDS = 24
_EXAMPLES = 3
Values = dict[str, Any]


def model_html(query: ModelQuery, reader: ModelReader, view: View) -> tuple[str, str, str]:
    """The page of a model."""
    found = model_view(query, reader, view)
    if isinstance(found, AbsentModel):
        places = (Link("Models", "./models"),)
        page = render("models/model.html", **NAMES, absent=found, places=places)
        return page, query.to_link().removeprefix("./model"), "Model"
    page = render("models/model.html", **NAMES, **_values(found))
    link = found.query.to_link(page=found.page)
    return page, link.removeprefix("./model"), plain_name(found.entry, 80)


def _values(view: ModelView) -> Values:
    entry, choice = view.entry, view.choice
    others = [one.submission_id for one in choice.entries if one != entry] if view.current else []
    return {
        "absent": None,
        "view": view,
        "place": PlaceQuery(ModelsQuery(entry.prompt_set)),
        "other": next(iter(others), ""),
        "said": _summary(view),
        "hub": f"https://huggingface.co/{entry.card.model}"
        if _HUB_ID.fullmatch(entry.card.model)
        else "",
        "shared": _shared(view),
        "seeds_said": _seeds(entry.images.seeds),
        "fields": _fields(view),
        "cases": [
            {
                "prompt": (prompt := choice.prompts[place]),
                "images": by_seed(drawn, prompt),
                "href": prompt_address(
                    choice.card.name, prompt.prompt_id, judge=view.judge, skill=choice.query.skill
                ),
            }
            for place, drawn in view.images
        ],
        "to_page": lambda page: view.query.to_link(page=page),
        "runs": [_run(one, run, view) for one, run in view.runs.items()],
        "command": command(entry, choice.card),
        **_means(view),
        **_over_seeds(view),
    }


def _summary(view: ModelView) -> str:
    """Where it stands over all prompts, and what its images are."""
    entry, card = view.entry, view.choice.card
    seen = f"{count(entry.images.present, 'image')} of the prompts of {card.title}"
    said = f"{seen} with {count(len(entry.images.seeds), 'seed')}."
    overall = view.board.skills.get(None) if view.board else None
    standing = overall.standings.get(entry.submission_id) if overall else None
    if overall is None or standing is None:
        return said
    if standing.rank_low is None:
        return f"{said} No rank: {standing.unranked}"
    judges = count(len(overall.trusted), "qualified metric")
    return (
        f"Rank {rank_range(standing)} of {len(overall.standings)} models over all prompts by "
        f"{judges}: significantly better than {len(standing.better_than)}, significantly worse "
        f"than {len(standing.worse_than)}. {said}"
    )


def _fields(view: ModelView) -> tuple[Select, ...]:
    choice = view.choice
    order = Select("order", "Order", _ORDERS, view.query.order)
    judges = judge_field(choice, "", view.judge)
    return (*skill_field(choice), *split_field(choice), *judges, order)


def _shared(view: ModelView) -> list[Values]:
    """Who has the same images."""
    entry = view.entry
    found = [
        {
            "said": f"{count(one.n_images, 'image')} as in",
            "submission_id": one.submission_id,
            "entry": view.known.get(one.submission_id),
            "examples": ", ".join(
                f"{clean(prompt)[:40]} seed {seed}" for prompt, seed in one.examples[:_EXAMPLES]
            ),
        }
        for one in entry.images.shared
    ]
    found += [
        {
            "said": "the very same files as",
            "submission_id": one,
            "entry": view.known.get(one),
            "examples": "",
        }
        for one in entry.same_content_as
    ]
    return found


def _means(view: ModelView) -> Values:
    """Skills down, metrics across."""
    ident = view.entry.submission_id
    skills = view.board.skills.values() if view.board else ()
    having = [of for of in skills if ident in of.standings]
    judges = judges_of_boards(having)

    def row(of: SkillBoard) -> Values:
        standing = of.standings[ident]
        here = {judge.entry_id: judge for judge in of.judges}
        return {
            "title": of.title,
            "n_prompts": of.n_prompts,
            "href": view.query.to_link(skill=of.skill or ""),
            "standing": standing,
            "rank": rank_range(standing),
            "cells": [(standing.means.get(one.entry_id), here.get(one.entry_id)) for one in judges],
        }

    return {"means_judges": judges, "means": [row(of) for of in having] if judges else []}


def _over_seeds(view: ModelView) -> Values:
    own = next(iter(view.seeds.judges), None) if view.seeds else None
    ident = view.entry.submission_id
    mine = next((one for one in own.variation if one.submission_id == ident), None) if own else None
    if own is None or mine is None:
        return {"own": None}
    ranks = [
        (one.rank, one.seed) for one in own.scores if one.model == ident and one.rank is not None
    ]
    return {"own": own, "mine": mine, "seed_ranks": ranks}


def _run(entry_id: str, run: JudgeRun, view: ModelView) -> Values:
    cost, change = run.cost, view.changes.get(entry_id)
    in_gaps = change.in_gaps if change else None
    return {
        "entry_id": entry_id,
        "title": view.choice.judges.get(entry_id, run.metric),
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
    if not _HUB_ID.fullmatch(model.model):
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
