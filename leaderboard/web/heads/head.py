"""Head of a page as HTML: what is shown of a link by programs that run no script."""

from __future__ import annotations

import re
from dataclasses import dataclass

from leaderboard.rendering import render
from leaderboard.text import clean
from leaderboard.views.figures import rank_range
from leaderboard.web.page import Page

SITE = "Assay"
MOST_LINES = 5
LONGEST_TITLE = 110
LONGEST_DESCRIPTION = 300
WIDTH, HEIGHT = 1200, 630
"""Pixels of the picture; the size that all who show one expect."""

_OF_GRADIO = re.compile(
    rb'\s*<meta\b[^>]*?\b(?:property="og:|name="(?:twitter:|description"))[^>]*>'
)
_START = b"<head>"
_SCRIPT = b"<script"


@dataclass(frozen=True)
class Line:
    """One of the first rows of a view."""

    name: str  # of a metric or a benchmark; it may come from a stranger
    value: float | None = None  # None where there is none
    low: float | None = None  # lower end of its 95 % interval
    high: float | None = None  # upper end
    rank_low: int | None = None  # best rank within the resamples; None where there is no rank
    rank_high: int | None = None  # worst

    @property
    def ranks(self) -> str:
        """`1–3`, `2`, or empty."""
        return "" if self.rank_low is None else rank_range(self)


@dataclass(frozen=True)
class PageMetadata:
    """What a view says of itself. Nothing in it is escaped yet."""

    title: str  # without the name of the site
    description: str  # a few sentences
    lines: tuple[Line, ...] = ()  # its first rows
    axis: str = ""  # what the values are; empty where they are not on one scale
    note: str = ""  # what must be known of the rows, and when they were made


def document_title(title: str) -> str:
    """With the name of the site; one line of harmless text."""
    return f"{_limited(title, LONGEST_TITLE)} · {SITE}"


def tags(head: PageMetadata, address: str = "", picture: str = "") -> str:
    """The tags of a head."""
    return render(
        "shell/tags.html",
        title=document_title(head.title),
        said=_limited(head.description, LONGEST_DESCRIPTION),
        site=SITE,
        address=address,
        picture=picture,
        width=WIDTH,
        height=HEIGHT,
    )


def with_tags(page: bytes, found: str) -> bytes:
    """A page of Gradio's with these tags in place of its own; as it was where it has no head."""
    start = page.find(_START)
    if start < 0:
        return page
    start += len(_START)
    # Gradio's tags come before its scripts, which hold whatever the site holds.
    end = page.find(_SCRIPT, start)
    end = len(page) if end < 0 else end
    own = _OF_GRADIO.sub(b"", page[start:end])
    charset, mark, rest = own.partition(b"/>")  # The encoding must come among the first bytes.
    if b"charset" not in charset:
        charset, mark, rest = b"", b"", own
    return page[:start] + charset + mark + found.encode() + rest + page[end:]


def _limited(value: str, most: int) -> str:
    """A line of harmless text that is not longer than that."""
    said = " ".join(clean(value).split())
    return said if len(said) <= most else f"{said[: most - 1].rstrip()}…"


DESCRIPTIONS = {
    "": "Metrics for text-to-image models, tested against human ratings and known errors: one table "
    "over benchmarks and skills with intervals, rank ranges, tiers and cost.",
    "models": "Text-to-image models compared on the same prompts by qualified metrics and by human "
    "ratings: skills, images, seeds, tests between any two, and where metrics disagree.",
    "model": "One text-to-image model: mean scores by skill and metric with intervals, its images, "
    "its variation over seeds, and how to generate them again.",
    "compare": "Two to four metrics on one benchmark: by how much they differ, how sure that is, "
    "and images where they differ or fail.",
    "metric": "Everything about one metric: its results on all benchmarks, trust checks, cost, "
    "history and citation.",
    "submit": "Submit a metric, its scores, or the images of a model; what is waiting, in work and done.",
    "operators": "Everybody’s submissions, bans and the policy, for the operators of this site.",
    "status": "How the service is doing: its workers, its queue and its store.",
    "ledger": "The public record of everything that was done, chained by hashes.",
    "docs": "Guides for metric authors, model developers and operators; the benchmarks, the methods "
    "and the API.",
    "guide": "A guide to Assay: submit, read the boards, run your own, extend.",
    "benchmark": "A benchmark of text-to-image metrics: its measures, protocol, data and citation.",
    "about": "How metrics are tested here: benchmarks, measures, intervals, ranks and tiers.",
    "errata": "What is wrong in the papers and their data, and how it is dealt with here.",
}
"""Path of a page to a sentence."""


def own_head(page: Page) -> PageMetadata:
    """What a page says where there is nothing more to be said."""
    return PageMetadata(
        page.title, DESCRIPTIONS.get(page.path, "Assay tests text-to-image metrics.")
    )
