"""Checks of what the GenAI-Bench JSON files hold: prompts, ratings and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.sources.folder import DataFolder

RATERS = 3
ID_DIGITS = 5
RATINGS = range(100)
"""What is read as a rating. The scale is 1 to 5, but the released files hold 41 and 33, two slips
that the benchmark reports; a number of more digits is no slip."""
_LONGEST_ID = 9


def prompt_records(folder: DataFolder, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Key and record of each prompt, in the file's order.

    Raises:
        SubmitterError: `data_missing`, or `data_malformed` naming the first wrong record.
    """
    content = folder.read_json(path)
    if not isinstance(content, dict) or not content:
        raise folder.malformed(path, "is not an object of prompts by id")
    numbers: dict[int, str] = {}
    for key, record in content.items():
        if not (key.isascii() and key.isdigit() and len(key) <= _LONGEST_ID):
            raise folder.malformed(
                path, f"has a prompt id {key[:60]!r}; expected digits, such as 00012"
            )
        earlier = numbers.setdefault(int(key), key)
        if earlier != key:  # tags and image files name prompts by number
            raise folder.malformed(path, f"has prompts {earlier!r} and {key!r}: the same number")
        if not isinstance(record, dict):
            raise folder.malformed(path, f"has no record under {key!r}; expected an object")
        prompt = record.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            raise folder.malformed(path, f"has no prompt under {key!r}; found {prompt!r}")
        yield key, record


def models_of(
    folder: DataFolder, path: str, key: str, record: Mapping[str, Any], models: Sequence[str]
) -> Mapping[str, Any]:
    """What a prompt's record holds for each model.

    Raises:
        SubmitterError: `data_malformed`, where a model is missing or unknown.
    """
    found = record.get("models")
    if not isinstance(found, dict) or set(found) != set(models):
        shown = ", ".join(found) if isinstance(found, dict) else repr(found)
        raise folder.malformed(
            path, f"has models {shown or 'none'} under {key!r}; expected {', '.join(models)}"
        )
    return found


def ratings_of(
    folder: DataFolder, path: str, where: str, found: object, raters: int | None = RATERS
) -> tuple[int, ...]:
    """The ratings of one image.

    Args:
        folder: of the benchmark.
        path: the declared file.
        where: the image, for the message.
        found: what the file holds for it.
        raters: how many ratings there must be; None: one at least.

    Raises:
        SubmitterError: `data_malformed`, where they are not so many whole numbers in `RATINGS`.
    """
    if (
        not isinstance(found, list)
        or (len(found) != raters if raters else not found)
        or not all(type(rating) is int and rating in RATINGS for rating in found)
    ):
        raise folder.malformed(
            path,
            f"has ratings {str(found)[:80]!r} for {where}; expected {raters or 'some'} whole "
            f"numbers from {RATINGS[0]} to {RATINGS[-1]}",
        )
    return tuple(found)


def skills(
    folder: DataFolder,
    path: str,
    prompts: Sequence[str],
    names: Sequence[str],
    *,
    others: bool = False,
) -> dict[str, frozenset[str]]:
    """Tags of prompts. A tag lists the numbers of the prompts' ids, not their positions.

    Args:
        folder: of the benchmark.
        path: the declared file.
        prompts: ids of all prompts.
        names: the tags that must be there, in the order wanted.
        others: whether the file may hold more: other tags, and prompts that are not in the set.
            They are passed over.

    Returns:
        Tag to ids of prompts.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`.
    """
    content = folder.read_json(path)
    if (
        not isinstance(content, dict)
        or not set(names) <= set(content)
        or (len(content) > len(names) and not others)
    ):
        shown = ", ".join(map(str, content)) if isinstance(content, dict) else repr(content)
        raise folder.malformed(path, f"has tags {shown}; expected {', '.join(names)}")
    by_number = {int(prompt): prompt for prompt in prompts}
    found: dict[str, frozenset[str]] = {}
    for name in names:
        numbers = content[name]
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise folder.malformed(path, f"has no list of whole numbers under {name!r}")
        strange = [number for number in numbers if number not in by_number]
        if strange and not others:
            raise folder.malformed(
                path, f"tags prompt {strange[0]} as {name!r}; no prompt has this number"
            )
        if len(set(numbers)) < len(numbers):
            raise folder.malformed(path, f"names a prompt twice under {name!r}")
        found[name] = frozenset(by_number[number] for number in numbers if number in by_number)
    return found
