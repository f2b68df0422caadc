"""Readers of released question files, as ours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchmarks.accumulation.question_scores import parse_parents
from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import parse_element_key
from benchmarks.parsing import parse_json
from benchmarks.tables import read_table
from evaluator.scorers.questions.files import (
    Line,
    Problem,
    Question,
    check_lines,
    errors_of,
    read_text,
)
from evaluator.scorers.questions.writers import parse_coverage, parse_questions, yes_no_fields


@dataclass(frozen=True, slots=True)
class Released:
    """The questions of a release."""

    lines: tuple[Line, ...]  # the questions and the lines they stand in there
    # what the reader itself found odd; see `checked` for the rest
    problems: tuple[Problem, ...] = ()


Reader = Callable[[Path], Released]


def checked(released: Released) -> Released:
    """Without the prompts that have an error, with every problem."""
    problems = [*released.problems, *check_lines(released.lines)]
    by_line = {line.number: line.record.prompt for line in released.lines}
    faulty = {by_line[problem.line] for problem in errors_of(problems) if problem.line in by_line}
    kept = tuple(line for line in released.lines if line.record.prompt not in faulty)
    return Released(kept, tuple(sorted(problems, key=lambda problem: problem.line)))


def with_prompts(released: Released, prompts: dict[str, str]) -> Released:
    """With the text of each prompt as given by its id; releases may have lost commas or spaces."""
    missing = {line.record.prompt_id for line in released.lines} - prompts.keys()
    if missing:
        raise SubmitterError(
            "unknown_prompts",
            f"{len(missing)} prompts of the release are not among the given ones, the first is "
            f"{min(missing)!r}.",
            "Give the prompts of the benchmark that the questions belong to.",
        )
    lines = tuple(
        replace(
            line, record=line.record.model_copy(update={"prompt": prompts[line.record.prompt_id]})
        )
        for line in released.lines
    )
    return Released(lines, released.problems)


def read_rows(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with the number of each, from 2 (quoted line breaks count for one)."""
    table = read_table(path, columns)
    rows = table.itertuples(index=False, name=None)
    return [(n, dict(zip(table.columns, row, strict=True))) for n, row in enumerate(rows, start=2)]


def make_lines(
    path: Path, fields: Iterable[tuple[int, dict[str, Any]]]
) -> tuple[tuple[Line, ...], tuple[Problem, ...]]:
    """Questions made of their fields; what cannot be one becomes a problem."""
    lines: list[Line] = []
    problems: list[Problem] = []
    for number, values in fields:
        try:
            lines.append(Line(number, Question.model_validate({**values, "source": path.name})))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            message = f"Prompt {values.get('prompt')!r}: {field}: {first['msg']}."
            problems.append(Problem("error", "bad_line", number, message))
    return tuple(lines), tuple(problems)


def _made_of(
    path: Path,
    records: Iterable[tuple[int, Any]],
    fields_of: Callable[[Any], list[dict[str, Any]]],
    lacking: str,
) -> Released:
    """Questions of numbered records; one that has none becomes a problem, by what it lacks."""
    fields: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    for number, record in records:
        try:
            fields += [(number, one) for one in fields_of(record)]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(Problem("error", "bad_line", number, f"It has no {lacking} ({error})."))
    lines, bad = make_lines(path, fields)
    return Released(lines, (*problems, *bad))


DSG_COLUMNS = (
    "item_id",
    "text",
    "proposition_id",
    "dependency",
    "category_broad",
    "category_detailed",
    "tuple",
    "question_natural_language",
)


def read_dsg(path: Path) -> Released:
    """Read a DSG CSV file.

    A prompt with a dependency that is no number (`1, outside`) has none at all, as in the released
    evaluation. A question that names itself has that dependency left out. Both are warnings.
    """
    rows = read_rows(path, DSG_COLUMNS)
    parsed = {number: parse_parents(row["dependency"], "dsg") for number, row in rows}
    odd = {row["item_id"]: number for number, row in reversed(rows) if not parsed[number][1]}
    lines, problems = make_lines(
        path,
        (
            (number, _dsg_fields(row, () if row["item_id"] in odd else parsed[number][0]))
            for number, row in rows
        ),
    )
    of_cells = [
        Problem(
            "warning",
            "unreadable_parents",
            number,
            f"Prompt {item!r} has a dependency that is no number; none of its questions "
            "depends on another, as in the released evaluation.",
        )
        for item, number in odd.items()
    ]
    selves = [
        Problem(
            "warning",
            "self_edge",
            number,
            f"Question {row['proposition_id']} of prompt {row['item_id']!r} depends on itself; "
            "that is left out.",
        )
        for number, row in rows
        if row["item_id"] not in odd and _own(row) in parsed[number][0]
    ]
    return Released(lines, (*problems, *of_cells, *selves))


def _dsg_fields(row: dict[str, str], parents: tuple[int, ...]) -> dict[str, object]:
    _, _, content = row["tuple"].partition("(")
    return {
        "prompt_id": row["item_id"],
        "prompt": row["text"],
        "parents": tuple(dict.fromkeys(str(name) for name in parents if name != _own(row))),
        **yes_no_fields(
            row["proposition_id"].strip(),
            row["question_natural_language"],
            content.rpartition(")")[0].strip(),
            f"{row['category_broad']} - {row['category_detailed']}".strip(" -"),
        ),
    }


def _own(row: dict[str, str]) -> int:
    text = row["proposition_id"].strip()
    return int(text) if text.isascii() and text.isdigit() else -1


QUESTION = "Does the image show {element}?"  # Ours, put where the file has elements only


def read_evalmuse(path: Path) -> Released:
    """Read a JSON file of prompts with their elements (`two cups (counting)`).

    The file is a list of objects, or an object of them, each with `prompt` and `element_score`,
    whose keys are the elements; `questions`, element to question, may stand beside it. Elements
    without a question get `QUESTION`. An object's number, from 1, stands for its line.
    """
    seen: dict[str, int] = {}
    fields: list[tuple[int, dict[str, Any]]] = []
    for number, record in enumerate(_records(path), start=1):
        if seen.setdefault(record["prompt"], number) == number:  # labels repeat it for each image
            fields += [(number, one) for one in _questions(record, path)]
    return Released(*make_lines(path, fields))


def elements_of(path: Path) -> dict[str, tuple[str, ...]]:
    """The element keys of each prompt, for the writer of questions."""
    return {record["prompt"]: tuple(record["element_score"]) for record in _records(path)}


def _read_json(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise SubmitterError("file_missing", f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SubmitterError("unreadable_file", f"{path} is not JSON: {error}.") from error


def _records(path: Path) -> Iterator[dict[str, Any]]:
    found = _read_json(path)
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
            **yes_no_fields(
                str(position),
                written.get(key) or QUESTION.replace("{element}", element.text),
                element.text,
                element.kind,
            ),
        }


def read_gecko(path: Path) -> Released:
    """Read blocks of text, with an empty line between two prompts.

    Each block is

        Prompt: A red colored dog.
        Coverage: A {1}[red colored] {2}[dog].
        {1} Q: What color is the dog? Choices: red, blue, black, white A: red
        {2} Q: What animal is it? Choices: dog, cat, cow, horse A: dog
    """
    text = read_text(path)
    fields: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    for start, block in _blocks(text):
        found, faults = _of_block(start, block)
        fields += found
        problems += faults
    lines, bad = make_lines(path, fields)
    return Released(lines, (*problems, *bad))


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each block with the number of its first line."""
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _of_block(
    start: int, block: list[str]
) -> tuple[list[tuple[int, dict[str, Any]]], list[Problem]]:
    prompt = _headed("Prompt", block[0])
    coverage = _headed("Coverage", block[1]) if len(block) > 1 else None
    if prompt is None or coverage is None:
        message = "A block begins with the lines `Prompt:` and `Coverage:`."
        return [], [Problem("error", "bad_line", start, message)]
    parts = parse_coverage(coverage, prompt)
    asked, odd = parse_questions("\n".join(block[2:]), parts.parts)
    problems = [
        Problem("error", "bad_line", start, f"Prompt {prompt!r}: {fault}")
        for fault in (*parts.faults, *odd)
    ]
    return [
        (start + 2 + one.row, {"prompt": prompt, **one.fields(parts.parts)}) for one in asked
    ], problems


def _headed(head: str, line: str) -> str | None:
    found = re.fullmatch(rf"{head}:\s*(.*\S)\s*", line)
    return found[1] if found else None


def read_tifa(path: Path) -> Released:
    """Read a TIFA JSON file: objects with caption, question, choices, answer, element and type.

    Questions are numbered from 1 within each caption; the number of an object, from 1, stands for
    its line.
    """
    records = _read_json(path)
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise SubmitterError(
            "unreadable_file", f"{path} is not a list of objects.", "See the files of TIFA."
        )
    asked: Counter[str] = Counter()
    fields = []
    for number, record in enumerate(records, start=1):
        caption = record.get("caption")
        key = f"{record.get('id', '')} {caption}"
        asked[key] += 1
        fields.append(
            (
                number,
                {
                    "prompt_id": str(record.get("id", "")),
                    "prompt": caption,
                    "question_id": str(asked[key]),
                    "question": record.get("question"),
                    "choices": record.get("choices") or (),
                    "expected": record.get("answer"),
                    "element": record.get("element") or "",
                    "type": record.get("element_type") or "",
                },
            )
        )
    return Released(*make_lines(path, fields))


TS2_COLUMNS = ("id", "prompt", "question_id", "question", "choices", "answer")


def read_ts2(path: Path) -> Released:
    """Read a TS2 CSV file, with or without the column `parent_question_id`.

    Its prompts have lost some commas and spaces: give it those of `metadata.csv` (see
    `with_prompts`), or no scorer will find them.
    """
    rows = read_rows(path, TS2_COLUMNS)
    parsed = {n: parse_parents(row.get("parent_question_id", ""), "ts2") for n, row in rows}
    lines, problems = make_lines(path, ((n, _ts2_fields(row, parsed[n][0])) for n, row in rows))
    odd = [
        Problem(
            "error",
            "unreadable_parents",
            number,
            f"Question {row['question_id']} of prompt {row['prompt']!r} has the parents "
            f"{row['parent_question_id']!r}, which are no ids.",
        )
        for number, row in rows
        if not parsed[number][1]
    ]
    return Released(lines, (*problems, *odd))


def _ts2_fields(row: dict[str, str], parents: tuple[int, ...]) -> dict[str, object]:
    return {
        "prompt_id": row["id"],
        "prompt": row["prompt"],
        "question_id": row["question_id"],
        "question": row["question"],
        "choices": tuple(choice.strip() for choice in row["choices"].split("|") if choice.strip()),
        "expected": row["answer"].strip(),
        "parents": tuple(dict.fromkeys(map(str, parents))),
    }


def read_geneval2(path: Path) -> Released:
    """Read GenEval 2's file: JSON Lines with a prompt, its `vqa_list` of questions and answers.

    Questions are numbered from 1 within each prompt, and have the prompt's `skills` as types.
    """
    lines = enumerate(read_text(path).splitlines(), start=1)
    written = ((number, line) for number, line in lines if line.strip())
    lacking = "prompt with a vqa_list of questions and answers"
    return _made_of(path, written, _geneval2_fields, lacking)


def _geneval2_fields(line: str) -> list[dict[str, Any]]:
    record: Any = parse_json(line.encode())
    asked = record["vqa_list"]
    if not isinstance(asked, list) or not asked:
        raise ValueError("its vqa_list is no list, or empty")
    skills = record.get("skills") or [""] * len(asked)
    return [
        {
            "prompt": record["prompt"],
            "question_id": str(place),
            "question": question,
            "expected": answer,
            "type": skill,
        }
        for place, ((question, answer), skill) in enumerate(zip(asked, skills, strict=True), 1)
    ]


UNIGENBENCH_COLUMNS = ("index", "prompt_en", "sub_dims_en")


def read_unigenbench(path: Path) -> Released:
    """Read UniGenBench's CSV file of English prompts, whose last column is JSON of test points.

    The type of a question is its test point, and its text what that is in the prompt.
    """
    rows = read_rows(path, UNIGENBENCH_COLUMNS)
    return _made_of(path, rows, _unigenbench_fields, "test points with a description each")


def _unigenbench_fields(row: Mapping[str, str]) -> list[dict[str, Any]]:
    found: Any = parse_json(row["sub_dims_en"].encode())
    kinds, texts = found["Testpoints"], found["Testpoint Description"]
    if not isinstance(kinds, list) or not isinstance(texts, list):
        raise TypeError("they are no lists")
    points = list(zip(kinds, texts, strict=True))
    return _numbered(row["prompt_en"], row["index"], points, "1")


def read_evalalign(path: Path) -> Released:
    """Read EvalAlign's JSON file of alignment: a list of prompts, each with `question_info` by aspect.

    Its records are numbered from 1; the largest of the three ratings is what is expected.
    """
    records = _read_json(path)
    if not isinstance(records, list):
        raise SubmitterError("unreadable_file", f"{path} holds no list of prompts.")
    lacking = "prompt with a question_info of texts"
    return _made_of(path, enumerate(records, 1), _evalalign_fields, lacking)


def _evalalign_fields(record: Any) -> list[dict[str, Any]]:
    aspects = record["question_info"].items()
    texts = [(kind, text.removeprefix("<image>").strip()) for kind, text in aspects]
    return _numbered(record["prompt"], record["prompt_id"], texts, "2")


def _numbered(
    prompt: Any, prompt_id: Any, asked: Sequence[tuple[Any, Any]], expected: str
) -> list[dict[str, Any]]:
    """Questions of a prompt by type and text, one at least, numbered from 1."""
    if not asked:
        raise ValueError("nothing is asked")
    return [
        {
            "prompt": prompt,
            "prompt_id": prompt_id,
            "question_id": str(place),
            "question": text,
            "expected": expected,
            "type": kind,
        }
        for place, (kind, text) in enumerate(asked, 1)
    ]


READERS: dict[str, Reader] = {
    "tifa": read_tifa,
    "dsg": read_dsg,
    "dpg": read_dsg,  # DPG-Bench: the columns of DSG, and one of keywords
    "ts2": read_ts2,
    "evalmuse": read_evalmuse,
    "gecko": read_gecko,
    "geneval2": read_geneval2,
    "unigenbench": read_unigenbench,
    "evalalign": read_evalalign,
}
