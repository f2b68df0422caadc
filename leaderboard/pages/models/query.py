"""Query of the model track: to and from a link, resolved to what exists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from benchmarks.prompt_sets.prompt_set import SetPrompt
from benchmarks.schema import Card
from leaderboard.models.board_columns import slices_of
from leaderboard.models.board_selection import selection
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.entries import ModelEntry
from leaderboard.models.reading import ModelReader
from leaderboard.pages.reading import View
from leaderboard.pages.shown.markup import clean

MOST_NAMED = 60
"""Models that a link may name."""
_LONGEST = 300
_LONGEST_NAMED = 60
_TEXTS = ("skill", "split", "words", "judge", "seed")


@dataclass(frozen=True)
class ModelsQuery:
    """The state of a view of a prompt set. Everything is as asked for, and may not exist.

    Attributes:
        prompt_set: its name; empty: the first of `sets_in_order`.
        skill: key of the one skill whose sub-skills are shown; empty: all skills.
        split: only prompts of this split.
        words: only prompts that hold all these words.
        judge: entry id of the one metric to judge by; empty: those that earned it.
        seed: place, from 1, of the one seed of each model that counts; empty: the mean of all.
        models: submission ids of the only models that are compared; none: all.
    """

    prompt_set: str = ""
    skill: str = ""
    split: str = ""
    words: str = ""
    judge: str = ""
    seed: str = ""
    models: tuple[str, ...] = ()

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> ModelsQuery:
        """Read an address; unknown parameters are left alone."""
        given = {name: str(params.get(name, ""))[:_LONGEST].strip() for name in _TEXTS}
        # A form names each model in a parameter of its own, a link all of them in one.
        listed = getattr(params, "getlist", None)
        models = listed("models") if listed else [params.get("models", "")]
        named = (one.strip()[:_LONGEST] for part in models for one in str(part).split(","))
        kept = tuple(dict.fromkeys(one for one in named if one))[:MOST_NAMED]
        return cls(str(params.get("set", ""))[:_LONGEST].strip(), models=kept, **given)

    def to_params(self) -> dict[str, str]:
        """The parameters of its address; what says nothing is left out."""
        given = {"set": self.prompt_set, **{name: getattr(self, name) for name in _TEXTS},
                 "models": ",".join(self.models)}  # fmt: skip
        return {name: value for name, value in given.items() if value}

    def to_link(self, page: str = "models", **changes: Any) -> str:
        """The address of this view, or of one that differs from it; not escaped for HTML yet."""
        given = replace(self, **changes).to_params()
        return f"./{page}?{urlencode(given, safe='~:,/')}" if given else f"./{page}"

    def to_data(self, part: str = "", **changes: Any) -> str:
        """The address of the table of this view in the API."""
        given = replace(self, **changes).to_params()
        name = given.pop("set", "")
        query = f"?{urlencode(given, safe='~:,/')}" if given else ""
        return f"./v1/models/{name}{f'/{part}' if part else ''}{query}"


@dataclass(frozen=True)
class Choice:
    """A query resolved against what exists.

    Attributes:
        query: the exact state, for links.
        card: of the prompt set.
        prompts: of it; empty where its files are not here.
        places: of the prompts that the filters keep, also by the skill of the query.
        entries: the models that drew its prompts as they are now, oldest first.
        skills: every skill and sub-skill of its prompts.
        splits: of its prompts.
        judges: entry id of every metric that scored at least one of them, to its name.
        n_seeds: most seeds that a model has.
        remarks: what was asked for and could not be shown, in sentences.
    """

    query: ModelsQuery
    card: Card
    prompts: tuple[SetPrompt, ...]
    places: tuple[int, ...]
    entries: tuple[ModelEntry, ...]
    skills: tuple[str, ...]
    splits: tuple[str, ...]
    judges: Mapping[str, str]
    n_seeds: int
    remarks: tuple[str, ...] = ()

    @property
    def wanted(self) -> BoardQuery:
        """The same as the board is asked for."""
        query = self.query
        return BoardQuery(
            prompt_set=self.card.name,
            split=query.split,
            words=query.words,
            judge=query.judge,
            models=query.models,
            seed=int(query.seed) - 1 if query.seed else None,
            skills=self.with_parts(query.skill) if query.skill else (),
        )

    def with_parts(self, skill: str) -> tuple[str, ...]:
        """A skill and its sub-skills."""
        return (skill, *(one for one in self.skills if one.startswith(f"{skill}:")))

    def entry(self, submission_id: str) -> ModelEntry | None:
        """One of the models."""
        return next((one for one in self.entries if one.submission_id == submission_id), None)


def resolve(
    query: ModelsQuery, reader: ModelReader, view: View, rated: Collection[str] = ()
) -> Choice | None:
    """Find what a query asks for, saying so wherever something else is shown instead.

    Args:
        query: as asked for.
        reader: of the models.
        view: what is published of the metrics.
        rated: prompt sets on which people rated models.

    Returns:
        None where there is no prompt set.

    Raises:
        TransientError: the store cannot be read.
    """
    track, sets, said = reader.track(), reader.prompt_sets, list[str]()
    name = _known(query.prompt_set, sets, "prompt set", said)
    name = name or next(iter(sets_in_order(reader, rated)), "")
    if not name:
        return None
    card = sets[name].card
    prompts = reader.prompts(name) or ()
    revisions = {card.revision, *card.same_questions_as}
    entries = tuple(one for one in track.of(name) if one.images.revision in revisions)
    skills = in_card_order(card, slices_of(reader, prompts).skills) if prompts else ()
    splits = tuple(dict.fromkeys(one.split for one in prompts if one.split))
    n_seeds = max((len(one.images.seeds) for one in entries), default=0)
    ids = [one.submission_id for one in entries]
    models = tuple(one for one in query.models if _known(one, ids, "model", said))
    judges = judges_of([one for one in entries if not models or one.submission_id in models], view)
    exact = ModelsQuery(
        name,
        _known(query.skill, skills, "skill", said),
        _known(query.split, splits, "split", said),
        query.words,
        _known(query.judge, judges, "metric", said),
        _seed(query.seed, n_seeds, said),
        models,
    )
    choice = Choice(exact, card, prompts, (), entries, skills, splits, judges, n_seeds, tuple(said))
    if not prompts:
        return choice
    kept = selection(reader, view, choice.wanted).testing(exact.skill or None)
    return replace(choice, places=tuple(kept.tolist()))


def sets_in_order(reader: ModelReader, rated: Collection[str] = ()) -> tuple[str, ...]:
    """The prompt sets: those with models to compare first, of these the simulated ones last.

    Args:
        reader: of the models.
        rated: prompt sets on which people rated models.

    Raises:
        TransientError: the store cannot be read.
    """
    track, sets = reader.track(), reader.prompt_sets

    def place(name: str) -> tuple[bool, bool]:
        return not track.of(name) and name not in rated, sets[name].card.simulated

    return tuple(sorted(sets, key=place))


def judges_of(entries: Sequence[ModelEntry], view: View) -> dict[str, str]:
    """Every metric on the boards that scored one of some models, to its name and version."""
    scored = (
        entry_id for entry in entries for entry_id, run in entry.judges.items() if not run.failed
    )
    return {
        entry_id: f"{view.entries[entry_id].metric} {view.entries[entry_id].version}".strip()
        for entry_id in dict.fromkeys(scored)
        if entry_id in view.entries
    }


def in_card_order(card: Card, skills: Sequence[str]) -> tuple[str, ...]:
    """Skills as the card orders them, then the others."""
    listed = [skill for skill in card.skills if skill in skills]
    return (*listed, *(skill for skill in skills if skill not in card.skills))


def _seed(asked: str, n_seeds: int, remarks: list[str]) -> str:
    if not asked:
        return ""
    usable = asked.isascii() and asked.isdecimal() and len(asked) < 4
    if usable and 1 <= int(asked) <= max(n_seeds, 1):
        return str(int(asked))
    remarks.append(f"No model has a seed number “{_named(asked)}”; shown is the mean of all seeds.")
    return ""


def _known(asked: str, known: Any, what: str, remarks: list[str]) -> str:
    if not asked or asked in known:
        return asked
    remarks.append(f"There is no {what} “{_named(asked)}” here.")
    return ""


def _named(asked: str) -> str:
    shown = clean(asked)
    return shown if len(shown) <= _LONGEST_NAMED else f"{shown[:_LONGEST_NAMED]}…"
