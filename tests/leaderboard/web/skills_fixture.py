"""A made-up store whose benchmarks name the same skills differently, for tests of their page."""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.schema import Card, MeasureInfo, Scale, Selector
from leaderboard.publication.reader import View
from leaderboard.publication.results import Published
from leaderboard.records import Cost, Kind, Submission
from leaderboard.store.interface import Store
from tests.kit.boards import NASTY_NAME, NOW, card_of, measured, publish, run_of, trust, view_over
from tests.kit.boards import submission as any_submission
from tests.kit.store import memory_store

__all__ = ["NASTY", "NOW", "cards", "fill", "skills_view_of", "submission"]
NASTY = NASTY_NAME
SKILLS: dict[str, dict[str, str]] = {
    "croc": {"counting": "Counting", "spacial_relation": "Spatial Relation", "negation": "Negation"},
    "gecko": {"count": "Count", "spatial": "Spatial", "lang_complexity:complexity_negation":
              "Language: complexity, negation", "named_entity": "Named entity"},
    "evalmuse": {"counting": "Counting", "spatial": "Spatial", "a./h.": "Animal or human"},
    "closed": {"counting": "Counting"},
    "demo": {"counting": "Counting"},
}  # fmt: skip
"""Family of each benchmark, which is its name, to its skills."""
SPEED = {"VQAScore": 210.0, "CLIPScore": 2.1, "BLIP2-ITM": 14.0, "PickScore": 2.4, "SigLIP-2": 3.2,
         "ImageReward": 9.0, NASTY: 30.0, "always-half": 0.4}  # fmt: skip
"""Metric to the seconds it takes for a thousand pairs; others are scores files."""
PRICE = {"VQAScore": 2.5}
"""Metric to its price in USD for a thousand pairs."""
WORTH = {"VQAScore": 0.80, "BLIP2-ITM": 0.66, "SigLIP-2": 0.62, "ImageReward": 0.52, "CLIPScore":
         0.45, "PickScore": 0.40, NASTY: 0.30, "Closed-API": 0.83, "always-half": 0.02}  # fmt: skip
FLOPS = {"VQAScore": 5.1e12, "CLIPScore": 1.6e10, "BLIP2-ITM": 9.86e11, "SigLIP-2": 2.4e10,
         "Closed-API": 8e14}  # fmt: skip
"""Metric to what its author declares for a pair; others say nothing."""
AGAINST = ("gecko", "BLIP2-ITM", 1.2)
"""On this benchmark a metric is worth something quite different."""
LACKS = ("PickScore", "gecko")
FEW = ("croc", "negation")
"""Rests on too few clusters to order anybody by it."""


def cards() -> dict[str, Card]:
    """Five benchmarks; one withholds its answers, one has simulated ratings."""
    return {family: _card(family) for family in SKILLS}


def _card(family: str) -> Card:
    measures = {
        "srcc": MeasureInfo(
            title="Spearman ρ", meaning="How far scores and ratings agree.", low=-1.0, high=1.0,
            chance=0.0, source="Paper, Table 3",
        ),
        "element_accuracy": MeasureInfo(
            title="Element accuracy", meaning="Elements told right.", low=0.0, high=1.0
        ),
    }  # fmt: skip
    return card_of(
        family, family.capitalize(), measures,
        Selector(measure="srcc", variant="assay" if family == "gecko" else "paper"),
        family="croc" if family in {"closed", "demo"} else family, simulated=family == "demo",
        answers_public=family != "closed", skills=SKILLS[family],
        headline_scale=Scale(
            chance=0.0, ceiling=0.8, ceiling_is="Agreement of people.", source="Table 3"
        ),
        links={"data": f"https://huggingface.co/datasets/someone/{family}"},
        citation="Doe, Roe: On Measuring: A Study. 2024. arXiv:2401.00001"
        if family == "croc" else "",
    )  # fmt: skip


def submission(place: int, name: str, boards: tuple[str, ...]) -> Submission:
    """One that made an entry of that name."""
    scored, nasty = name in SPEED, name == NASTY
    links = {"code": "https://example.org/code", "bad": "javascript:alert(1)"}
    return any_submission(
        place, name, boards, kind=Kind.METRIC if scored else Kind.SCORES,
        version=f"1.{place}" if scored else "", submitter=NASTY if nasty else "A group",
        account="hub:ada" if place % 2 else "", same_content_as=(),
        description=f"A made-up metric. {NASTY}" if nasty else "A made-up metric.",
        authors=("Ada", NASTY) if nasty else (), licence="Apache-2.0" if scored else "",
        links=links if scored else {}, trained_on=("croc",) if name == "ImageReward" else (),
        flops_per_pair={name: FLOPS[name]} if name in FLOPS else {},
    )  # fmt: skip


def runs_of() -> list[Published]:
    """A run of every metric on every benchmark, but for one."""
    rng = np.random.default_rng(3)
    found = []
    for place, name in enumerate(WORTH):
        boards = tuple(board for board in SKILLS if (name, board) != LACKS)
        own = submission(place, name, boards)
        found += [_run(own, board, rng) for board in boards]
    return found


def _run(own: Submission, board: str, rng: np.random.Generator) -> Published:
    card, values = cards()[board], []
    worth = AGAINST[2] if (board, own.name) == AGAINST[:2] else WORTH[own.name]
    for skill in (None, *card.skills):
        measure = "element_accuracy" if (board, skill) == ("evalmuse", "spatial") else "srcc"
        values.append(
            measured(
                own, board, Selector(measure=measure, variant=card.headline.variant),
                0.8 * worth + 0.03 * rng.standard_normal(), rng, skill=skill,
                clusters=120 if skill is None else 6 if (board, skill) == FEW else 40,
                n_missing=1 if own.name == "CLIPScore" and board == "croc" else 0,
                plan="0123abcd", versions="assay 1; numpy 2",
            )
        )  # fmt: skip
    if (seconds := SPEED.get(own.name)) is None:
        return run_of(own, board, values, isolation=("scores as submitted",))
    cost = Cost(
        pairs=2000, images=800, seconds=2 * seconds, pairs_per_s=1000 / seconds, calls=63,
        peak_memory_bytes=int((0.4 + seconds / 40) * 2**30), usd=2 * PRICE.get(own.name, 0.0),
    )  # fmt: skip
    return run_of(own, board, values, versions={"numpy": "2.4.6"}, cost=cost, trust=trust(board))


@cache
def _published() -> Store:
    """Everything that is published, made once for all stores."""
    return publish(memory_store(), runs_of(), cards(), closed=("closed",))


def fill(store: Store) -> Store:
    """Publish everything."""
    published = _published()
    for source, target in ((published.public, store.public), (published.private, store.private)):
        files = {path: source.read(path) for path in source.list()}
        target.commit(files, parent=target.head(), message="publish")
    return store


def skills_view_of() -> View:
    """What the pages see of it."""
    return view_over(fill(memory_store()), cards(), runs_of())
