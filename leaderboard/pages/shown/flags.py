"""Flags beside a name: what a reader should know before taking an entry for a work of its own.

They are never a verdict: two people may send the same baseline in good faith.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from leaderboard.desk import UNNAMED
from leaderboard.pages.shown.markup import badge, text
from leaderboard.publication.snapshot import Entry
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
_HOW = {SAME_CONTENT: "The very same files as in", SAME_SCORES: "The very same scores as"}


def origin(entry: Entry) -> str:
    """Where scores come from that were not made here, in words; empty where Assay ran the metric."""
    if entry.released_with:
        return RELEASED
    return AS_SUBMITTED if entry.kind is Kind.SCORES else ""


def origin_badge(entry: Entry) -> str:
    """The same as a badge."""
    if entry.released_with:
        return badge(RELEASED, "info", f"Released with: {entry.released_with}")
    return badge(AS_SUBMITTED, "plain") if entry.kind is Kind.SCORES else ""


def flags_of(
    entries: Iterable[Entry], benchmarks: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Flag to the submissions it is about; none where it is about no other.

    Args:
        entries: of one metric.
        benchmarks: that are looked at; all if None.
    """
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


def flag_badges(found: dict[str, tuple[str, ...]]) -> str:
    """Flags as badges; those about other submissions lead to the first of them."""
    return " ".join(
        same(label, others) if others else badge(label, "warn", MEANINGS[label].capitalize())
        for label, others in found.items()
    )


def same(label: str, others: Sequence[str]) -> str:
    """A flag about other submissions, as a link to the first that may be named.

    Args:
        label: `SAME_CONTENT` or `SAME_SCORES`.
        others: their ids, at least one.
    """
    mark = badge(label, "warn", f"{_HOW[label]} {', '.join(others)}")
    named = next((other for other in others if other != UNNAMED), None)
    if named is None:
        return mark
    return f'<a class="as-flag" href="./queue?submission={text(named)}">{mark}</a>'


def flags_legend(
    entries: Iterable[Entry], benchmarks: Collection[str] | None = None
) -> tuple[str, ...]:
    """What the flags of some entries mean, a sentence each; nothing of flags that none has.

    Args:
        entries: those shown.
        benchmarks: as for `flags_of`.
    """
    met = flags_of(entries, benchmarks)
    return tuple(f"<b>{label}:</b> {MEANINGS[label]}" for label in MEANINGS if label in met)
