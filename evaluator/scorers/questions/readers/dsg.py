"""Questions of DSG: one row per tuple, ids from 1, dependencies such as `1,2`, 0 for none."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accumulation.question_scores import parse_parents
from evaluator.scorers.questions.lines import Problem
from evaluator.scorers.questions.readers.released import Released, make_lines, read_rows

COLUMNS = (
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

    Raises:
        SubmitterError: `file_missing`, `unreadable_file` or `missing_columns`.
    """
    rows = read_rows(path, COLUMNS)
    parsed = {number: parse_parents(row["dependency"], "dsg") for number, row in rows}
    odd = {row["item_id"]: number for number, row in reversed(rows) if not parsed[number][1]}
    lines, problems = make_lines(
        path,
        (
            (number, _fields(row, () if row["item_id"] in odd else parsed[number][0]))
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


def _fields(row: dict[str, str], parents: tuple[int, ...]) -> dict[str, object]:
    _, _, content = row["tuple"].partition("(")
    return {
        "prompt_id": row["item_id"],
        "prompt": row["text"],
        "question_id": row["proposition_id"].strip(),
        "question": row["question_natural_language"],
        "choices": ("yes", "no"),
        "expected": "yes",
        "parents": tuple(dict.fromkeys(str(name) for name in parents if name != _own(row))),
        "element": content.rpartition(")")[0].strip(),
        "type": f"{row['category_broad']} - {row['category_detailed']}".strip(" -"),
    }


def _own(row: dict[str, str]) -> int:
    text = row["proposition_id"].strip()
    return int(text) if text.isascii() and text.isdigit() else -1
