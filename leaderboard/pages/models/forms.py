"""Forms of the model track's pages, whose address is the link."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from leaderboard.models.reading import ModelReader
from leaderboard.pages.models.names import plain_name
from leaderboard.pages.shown.markup import text
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import clean
from leaderboard.views.models import Choice, sets_in_order

Option = tuple[str, str]
"""What is read, and the value behind it."""
_LONGEST = 60
SIMULATED_SETS = "Try it yourself (simulated)"


def asking_form(page: str, label: str, fields: Iterable[str], keeps: Mapping[str, str]) -> str:
    """A form that works without any script.

    Args:
        page: path of the page that it asks.
        label: what it chooses, for people who hear the page.
        fields: as HTML.
        keeps: what the address says beside the fields.
    """
    hidden = "".join(
        f'<input type="hidden" name="{text(name)}" value="{text(value)}">'
        for name, value in keeps.items()
        if value
    )
    return (
        f'<form class="as-asking as-items-form" method="get" action="./{text(page)}" role="search" '
        f'aria-label="{text(label)}">{hidden}{"".join(fields)}'
        '<button type="submit" class="as-plain">Show</button></form>'
    )


def select(
    label: str,
    name: str,
    options: Sequence[Option],
    chosen: str,
    group: tuple[str, Sequence[Option]] = ("", ()),
) -> str:
    """A field to choose one of several.

    Args:
        label: of the field.
        name: in the address.
        options: to choose from.
        chosen: value of the one that is.
        group: title of further options that stand together below these, and what they are.
    """
    shown = _options(options, chosen)
    if group[1]:
        shown += f'<optgroup label="{text(group[0])}">{_options(group[1], chosen)}</optgroup>'
    return f'<label><span>{label}</span><select name="{name}" aria-label="{label}">{shown}</select></label>'


def _options(options: Sequence[Option], chosen: str) -> str:
    return "".join(
        f'<option value="{text(value)}"{" selected" if value == chosen else ""}>'
        f"{text(title, limit=_LONGEST)}</option>"
        for title, value in options
    )


def words_field(value: str) -> str:
    """A field for words of the prompts."""
    return (
        '<label><span>Words in the prompt</span><input type="search" name="words" '
        f'value="{text(value)}" maxlength="300" aria-label="Words in the prompt"></label>'
    )


def set_field(reader: ModelReader, choice: Choice, rated: Collection[str] = ()) -> str:
    """The prompt sets, those with models to compare first, simulated ones in a group below.

    Args:
        reader: of the models.
        choice: what is looked at.
        rated: prompt sets on which people rated models; none on pages of submitted models alone.
    """
    track, real, simulated = reader.track(), list[Option](), list[Option]()
    for name in sets_in_order(reader, rated):
        card = reader.prompt_sets[name].card
        none = not track.of(name) and name not in rated
        title = f"{card.title} (no models yet)" if none else card.title
        (simulated if card.simulated else real).append((title, name))
    return select("Prompt set", "set", real, choice.card.name, (SIMULATED_SETS, simulated))


def skill_field(choice: Choice, every: str = "All skills") -> list[str]:
    """The skills, if the prompts have any."""
    options = [(every, ""), *((skill_title(choice.card, s), s) for s in choice.skills)]
    return [select("Skill", "skill", options, choice.query.skill)] if choice.skills else []


def split_field(choice: Choice) -> list[str]:
    """The splits, if the prompts have any."""
    splits = [(choice.card.splits.get(s, s), s) for s in choice.splits]
    options = [("All splits", ""), *splits]
    return [select("Split", "split", options, choice.query.split)] if splits else []


def judge_field(choice: Choice, standard: str, chosen: str | None = None) -> list[str]:
    """The metrics that scored the models.

    Args:
        choice: what is looked at.
        standard: what choosing none of them means; empty: one is always chosen.
        chosen: entry id; None: that of the query.
    """
    if not choice.judges:
        return []
    first = [(standard, "")] if standard else []
    options = [*first, *judge_options(choice.judges)]
    return [select("Metric", "judge", options, choice.query.judge if chosen is None else chosen)]


def judge_options(judges: Mapping[str, str]) -> list[Option]:
    """Metrics by name; equal names get their submission."""
    labels = [clean(title) for title in judges.values()]
    return [
        (f"{label} ({entry.partition('/')[0]})" if labels.count(label) > 1 else label, entry)
        for label, entry in zip(labels, judges, strict=True)
    ]


def seed_field(choice: Choice) -> list[str]:
    """One seed of each model, by its place; models may have different seeds."""
    if choice.n_seeds < 2:
        return []
    options = [
        ("Mean of all", ""),
        *((f"Seed no. {n}", f"{n}") for n in range(1, choice.n_seeds + 1)),
    ]
    return [select("Seed", "seed", options, choice.query.seed)]


def model_options(entries: Sequence[ModelEntry]) -> list[Option]:
    """Models by name; equal names get their submission."""
    labels = [plain_name(entry) for entry in entries]
    return [
        (f"{label} ({one.submission_id})" if labels.count(label) > 1 else label, one.submission_id)
        for label, one in zip(labels, entries, strict=True)
    ]


def models_field(choice: Choice) -> list[str]:
    """Check boxes, of which none means all."""
    if len(choice.entries) < 3:
        return []
    chosen = choice.query.models
    boxes = "".join(
        f'<label class="as-check"><input type="checkbox" name="models" value="{text(value)}"'
        f"{' checked' if value in chosen else ''}> {text(label, limit=_LONGEST)}</label>"
        for label, value in model_options(choice.entries)
    )
    said = f"{len(chosen)} of {len(choice.entries)} models" if chosen else "Only some models"
    return [
        f'<details class="as-some"{" open" if chosen else ""}><summary>{said}</summary>'
        f'<fieldset><legend class="as-sr">Models to compare; none: all</legend>{boxes}</fieldset></details>'
    ]
