"""Elements of EvalMuse prompts, as its files of labels hold them, each with a question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import parse_element_key
from benchmarks.json_parsing import parse_json
from evaluator.scorers.questions.readers.released import Released, make_lines

QUESTION = "Does the image show {element}?"
"""Ours, put where the file has elements only."""


def read_evalmuse(path: Path) -> Released:
    """Read a JSON file of prompts with their elements (`two cups (counting)`).

    The file is a list of objects, or an object of them, each with `prompt` and `element_score`,
    whose keys are the elements; `questions`, element to question, may stand beside it. Elements
    without a question get `QUESTION`. An object's number, from 1, stands for its line.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file`.
    """
    seen: dict[str, int] = {}
    fields: list[tuple[int, dict[str, Any]]] = []
    for number, record in enumerate(_records(path), start=1):
        if seen.setdefault(record["prompt"], number) == number:  # labels repeat it for each image
            fields += [(number, one) for one in _questions(record, path)]
    return Released(*make_lines(path, fields))


def elements_of(path: Path) -> dict[str, tuple[str, ...]]:
    """The element keys of each prompt, for the writer of questions.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file`.
    """
    return {record["prompt"]: tuple(record["element_score"]) for record in _records(path)}


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        found = parse_json(path.read_bytes())
    except OSError as error:
        raise SubmitterError("file_missing", f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SubmitterError("unreadable_file", f"{path} is not JSON: {error}.") from error
    records = found.values() if isinstance(found, dict) else found
    for record in records:
        if not (
            isinstance(record, dict)
            and isinstance(record.get("prompt"), str)
            and isinstance(record.get("element_score"), dict)
        ):
            raise SubmitterError(
                "unreadable_file", f"{path} holds an item without prompt and element_score."
            )
        yield record


def _questions(record: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    written = record.get("questions") or {}
    for position, key in enumerate(record["element_score"], start=1):
        try:
            element = parse_element_key(key)
        except ValueError as error:
            raise SubmitterError("unreadable_file", f"{path}: {error}.") from error
        yield {
            "prompt_id": str(record.get("prompt_id", "")),
            "prompt": record["prompt"],
            "question_id": str(position),
            "question": written.get(key) or QUESTION.replace("{element}", element.text),
            "choices": ("yes", "no"),
            "expected": "yes",
            "element": element.text,
            "type": element.kind,
        }
