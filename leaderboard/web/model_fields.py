"""Fields of the forms of the place of models, and the filters that are on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.models.reading import ModelReader
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import clean, count
from leaderboard.views.models import Choice, PlaceQuery, plain_name, sets_in_order
from leaderboard.web.components import Link

Option = tuple[str, str]
"""What is read, and the value behind it."""
SIMULATED = "Try it yourself (simulated)"
QUALIFIED = "qualified metrics"


@dataclass(frozen=True)
class Select:
    """A field to choose one of several."""

    name: str  # in the address
    label: str  # of the field
    options: tuple[Option, ...]  # to choose from
    chosen: str  # value of the one that is
    group: str = ""  # title of further options that stand together below these
    grouped: tuple[Option, ...] = ()  # these options


def set_field(reader: ModelReader, choice: Choice, rated: Collection[str] = ()) -> Select:
    """The prompt sets: those with models to compare first, simulated ones in a group below."""
    track, real, simulated = reader.track(), list[Option](), list[Option]()
    for name in sets_in_order(reader, rated):
        card = reader.prompt_sets[name].card
        none = not track.of(name) and name not in rated
        title = f"{card.title} (no models yet)" if none else card.title
        (simulated if card.simulated else real).append((title, name))
    return Select("set", "Prompt set", tuple(real), choice.card.name, SIMULATED, tuple(simulated))


def skill_field(choice: Choice, every: str = "All skills") -> tuple[Select, ...]:
    """The skills, if the prompts have any."""
    if not choice.skills:
        return ()
    options = ((every, ""), *((skill_title(choice.card, one), one) for one in choice.skills))
    return (Select("skill", "Skill", options, choice.query.skill),)


def split_field(choice: Choice) -> tuple[Select, ...]:
    """The splits, if the prompts have any."""
    if not choice.splits:
        return ()
    splits = ((choice.card.splits.get(one, one), one) for one in choice.splits)
    return (Select("split", "Split", (("All splits", ""), *splits), choice.query.split),)


def judge_field(
    choice: Choice, standard: str = QUALIFIED, chosen: str | None = None
) -> tuple[Select, ...]:
    """The metrics that scored the models."""
    if not choice.judges:
        return ()
    first = ((standard, ""),) if standard else ()
    options = (*first, *_judges(choice.judges))
    return (Select("judge", "Judged by", options,
                   choice.query.judge if chosen is None else chosen),)  # fmt: skip


def seed_field(choice: Choice) -> tuple[Select, ...]:
    """One seed of each model, by its place; models may have different seeds."""
    if choice.n_seeds < 2:
        return ()
    places = ((f"Seed no. {n}", f"{n}") for n in range(1, choice.n_seeds + 1))
    return (Select("seed", "Seed", (("Mean of all", ""), *places), choice.query.seed),)


def model_options(entries: Sequence[ModelEntry]) -> tuple[Option, ...]:
    """Models by name; equal names get their submission."""
    labels = [plain_name(entry) for entry in entries]
    return tuple(
        (f"{label} ({one.submission_id})" if labels.count(label) > 1 else label, one.submission_id)
        for label, one in zip(labels, entries, strict=True)
    )


def pair_fields(choice: Choice, a: str, b: str) -> tuple[Select, ...]:
    """The two models, where there are two."""
    if len(choice.entries) < 2:
        return ()
    options = model_options(choice.entries)
    return Select("a", "First", options, a), Select("b", "Second", options, b)


def filter_links(choice: Choice, query: PlaceQuery) -> tuple[Link, ...]:
    """What is filtered, each with the address of the state without it."""
    asked, card = choice.query, choice.card
    named = {
        "skill": f"skill: {skill_title(card, asked.skill)}",
        "split": f"split: {card.splits.get(asked.split, asked.split)}",
        "words": f"words: {asked.words}",
        "judge": f"only {choice.judges.get(asked.judge, asked.judge)}",
        "seed": f"seed no. {asked.seed}",
        "models": f"{len(asked.models)} of {count(len(choice.entries), 'model')}",
    }
    return tuple(
        Link(clean(said)[:80], _without(query, name), f"without-{name}")
        for name, said in named.items()
        if getattr(asked, name)
    )


def _without(query: PlaceQuery, name: str) -> str:
    return query.to_link(models=()) if name == "models" else query.to_link(**{name: ""})


def _judges(judges: Mapping[str, str]) -> tuple[Option, ...]:
    """Metrics by name; equal names get their submission."""
    labels = [clean(title) for title in judges.values()]
    return tuple(
        (f"{label} ({entry.partition('/')[0]})" if labels.count(label) > 1 else label, entry)
        for label, entry in zip(labels, judges, strict=True)
    )
