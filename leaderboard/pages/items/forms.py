"""Form of the item browser, whose address is the link to the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leaderboard.pages.shown.markup import text
from leaderboard.publication.measure_names import skill_title
from leaderboard.text import clean
from leaderboard.views.examples import Choice

MOST_OPTIONS = 400
_LONGEST = 60
_SHOWN = {
    "failures": "Failures of A",
    "disagreements": "A and B disagree",
    "all": "All cases",
}
Option = tuple[str, str]
"""What is read, and the value behind it."""


def chooser(choice: Choice, names: Callable[[str], str], benchmarks: Sequence[Option]) -> str:
    """The form; it works without any script.

    Args:
        choice: what is looked at.
        names: entry id to what it is called, as submitted.
        benchmarks: title and name of every benchmark.
    """
    card, asked = choice.card, choice.query
    skills = [("All skills", ""), *((skill_title(card, s), s) for s in choice.skills)]
    splits = [("All splits", ""), *((card.splits.get(s, s), s) for s in choice.splits)]
    entries = entry_options(choice.entries, (choice.a, choice.b), names)
    fields = [_select("Benchmark", "benchmark", benchmarks, card.name)]
    fields += [_select("Skill", "skill", skills, asked.skill)] if choice.skills else []
    fields += [_select("Split", "split", splits, asked.split)] if choice.splits else []
    if entries:
        fields.append(_select("Metric A", "a", entries, choice.a))
        fields.append(_select("Metric B", "b", [("None", ""), *entries], choice.b))
        shows = [(label, show) for show, label in _SHOWN.items()]
        fields.append(_select("Show", "show", shows, choice.show))
    return (
        '<form class="as-asking as-items-form" method="get" action="./items" role="search" '
        f'aria-label="Choose cases">{"".join(fields)}'
        '<button type="submit" class="as-plain">Show</button></form>'
    )


def entry_options(
    entries: Sequence[str], chosen: Sequence[str], names: Callable[[str], str]
) -> list[Option]:
    """Name and id of entries, in their order; equal names get their submission.

    Args:
        entries: ids, best first. Of very many, only the first are offered, and those chosen.
        chosen: ids that are looked at.
        names: entry id to what it is called.
    """
    offered = list(dict.fromkeys([*entries[:MOST_OPTIONS], *filter(None, chosen)]))
    labels = [clean(names(entry)) for entry in offered]
    return [
        (f"{label} ({entry.partition('/')[0]})" if labels.count(label) > 1 else label, entry)
        for label, entry in zip(labels, offered, strict=True)
    ]


def _select(label: str, name: str, options: Sequence[Option], chosen: str) -> str:
    shown = "".join(
        f'<option value="{text(value)}"{" selected" if value == chosen else ""}>'
        f"{text(title, limit=_LONGEST)}</option>"
        for title, value in options
    )
    return f'<label><span>{label}</span><select name="{name}" aria-label="{label}">{shown}</select></label>'
