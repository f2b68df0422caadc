"""Flags of an entry: what a reader should know before taking it for a work of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from benchmarks.schema import Card
from leaderboard.publication.entries import Entry
from leaderboard.ranking.cells import UNSANDBOXED
from leaderboard.records import Kind

RELEASED, AS_SUBMITTED = "released by the authors", "scores as submitted, not re-run"
SAME_CONTENT, SAME_SCORES = "same content", "same scores"
TEMPLATE = "template"
MEANINGS = {
    SAME_CONTENT: "the very same files as in an earlier submission by somebody else; both stand.",
    SAME_SCORES: "the very same scores as in a submission by somebody else, to six digits.",
    TEMPLATE: "a template of Assay’s, unchanged; it is not recommended and judges no models.",
    UNSANDBOXED: "the operator ran code of their own without isolation; it gets no rank.",
}
"""Flag to what it says."""


def origin(entry: Entry) -> str:
    """Where scores come from that were not made here, in words; empty where Assay ran the metric."""
    if entry.released_with:
        return RELEASED
    return AS_SUBMITTED if entry.kind is Kind.SCORES else ""


def flags_of(
    entries: Iterable[Entry], benchmarks: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Flag to the submissions it is about; none where it is about no other."""
    content: list[str] = []
    scores: list[str] = []
    loose = template = False
    for entry in entries:
        template = template or bool(entry.template)
        content += entry.same_content_as
        for name, others in entry.same_scores_as.items():
            scores += others if benchmarks is None or name in benchmarks else ()
        loose = loose or any(
            UNSANDBOXED in layers
            for name, layers in entry.isolation.items()
            if benchmarks is None or name in benchmarks
        )
    found = {SAME_CONTENT: tuple(dict.fromkeys(content)), SAME_SCORES: tuple(dict.fromkeys(scores))}
    shown = {label: others for label, others in found.items() if others}
    bare = ((TEMPLATE, template), (UNSANDBOXED, loose))
    return {**shown, **{label: () for label, holds in bare if holds}}


def is_trained_on(entry: Entry, card: Card) -> bool:
    """Whether the author declared this benchmark, or the one it is modelled on."""
    return bool({name.casefold() for name in entry.trained_on} & {card.name, card.family})
