"""Display names of models and judges on every page of the track."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.models.board_types import Judge, ModelBoard
from leaderboard.pages.shown.markup import badge, submitted, text
from leaderboard.publication.identities import shown_account
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import clean, count
from leaderboard.views.addresses import metric_address, model_address

SHARED, BEST_OF, SAME_FILES = "shared images", "best of", "same content"


def model_name(entry: ModelEntry, *, skill: str = "", judge: str = "") -> str:
    """Name and version, with submitter and description on hover; leads to the model's page."""
    key = shown_account(entry.account)
    hover = f"{entry.title} by {entry.submitter}{f' ({key})' if key else ''}"
    if entry.description:
        hover = f"{hover}: {entry.description}"
    version = f' <span class="as-version">{submitted(entry.version, limit=20)}</span>'
    address = model_address(entry.submission_id, skill=skill, judge=judge)
    return (
        f'<a class="as-name" title="{text(hover, limit=300)}" href="{text(address)}">'
        f"{submitted(entry.model)}</a>{version if entry.version else ''}"
    )


def plain_name(entry: ModelEntry, limit: int = 60) -> str:
    """Name and version as one line of text; not escaped yet."""
    shown = " ".join(clean(entry.title).split())
    return shown if len(shown) <= limit else f"{shown[: limit - 1].rstrip()}…"


def judge_name(entry_id: str, title: str) -> str:
    """A metric, leading to its page."""
    return (
        f'<a class="as-name" href="{text(metric_address(entry_id))}">{submitted(title, limit=50)}'
        "</a>"
    )


def judge_titles(board: ModelBoard) -> dict[str, str]:
    """Entry id of every metric of a board to its name."""
    return {judge.entry_id: judge.title for of in board.skills.values() for judge in of.judges}


def named_in_words(judges: Sequence[Judge]) -> str:
    """Metrics by name in a sentence; safe as HTML, without links."""
    return in_words([submitted(judge.title, limit=50) for judge in judges])


def in_words(names: Sequence[str]) -> str:
    """`A, B and C`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def badges(entry: ModelEntry) -> str:
    """What a reader must know of a model's images before comparing it."""
    seen, card, found = entry.images, entry.card, []
    if seen.shared:
        others = ", ".join(one.submission_id for one in seen.shared)
        found.append(badge(SHARED, "warn", f"To the eye the images of {others}"))
    if entry.same_content_as:
        found.append(badge(SAME_FILES, "warn",
                           f"The very same files as in {', '.join(entry.same_content_as)}"))  # fmt: skip
    withheld = sum(seen.withheld.values())
    if withheld:
        why = ", ".join(f"{reason}: {n:,}" for reason, n in seen.withheld.items())
        found.append(badge(f"{withheld:,} withheld", "warn", f"Withheld by its maker ({why})"))
    absent = seen.wanted - seen.present - withheld
    if absent > 0:
        found.append(badge(f"{absent:,} missing", "warn",
                           f"{seen.present:,} of {count(seen.wanted, 'image')} are there"))  # fmt: skip
    if card.selection == "best_of":
        by = f", taken by {card.selected_by}" if card.selected_by else ""
        many = f" {card.best_of}" if card.best_of else " several"
        found.append(badge(f"{BEST_OF}{many}", "warn", f"Not the first image drawn{by}"))
    return " ".join(found)
