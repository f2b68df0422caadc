"""Cards of prompt sets: their files, and what they share with a benchmark of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.prompt_sets.prompt_set import MEASURES
from benchmarks.schema import Card

FOLDER = Path(__file__).parent / "cards"


def set_card(name: str) -> Card:
    """The card of a prompt set.

    Raises:
        pydantic.ValidationError: a field is missing, misspelt or of the wrong type.
    """
    return Card.read(FOLDER / f"{name}.toml", MEASURES)


def card_beside(name: str, of: Card, paths: Sequence[str], *, skills: bool = True) -> Card:
    """The card of a prompt set that is read from files of a benchmark of metrics.

    Files and skills are declared once, by the benchmark: so both read the same release, and a
    skill goes by one key on the boards of metrics and of models.

    Args:
        name: of the set.
        of: the benchmark's card.
        paths: those of its files that hold the prompts.
        skills: whether the prompts have its skills.

    Raises:
        ValueError: the benchmark declares no such file.
    """
    declared = {file.path: file for file in of.files}
    missing = [path for path in paths if path not in declared]
    if missing:
        raise ValueError(f"{of.name} declares no {', '.join(missing)}")
    shared = {
        "licence": of.licence,
        "citation": of.citation,
        "links": of.links,
        "files": tuple(declared[path] for path in paths),
        "skills": of.skills if skills else {},
    }
    card = set_card(name)
    # What the set's own file says stands: it may narrow the licence or add a link.
    return card.model_copy(
        update={key: value for key, value in shared.items() if key not in card.model_fields_set}
    )
