"""Questions of T2IScoreScore: of DSG with parents such as `1-0`, of TIFA with choices."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accumulation.question_scores import parse_parents
from evaluator.scorers.questions.lines import Problem
from evaluator.scorers.questions.readers.released import Released, make_lines, read_rows

COLUMNS = ("id", "prompt", "question_id", "question", "choices", "answer")


def read_ts2(path: Path) -> Released:
    """Read a TS2 CSV file, with or without the column `parent_question_id`.

    Its prompts have lost some commas and spaces: give it those of `metadata.csv` (see
    `with_prompts`), or no scorer will find them.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file` or `missing_columns`.
    """
    rows = read_rows(path, COLUMNS)
    parsed = {n: parse_parents(row.get("parent_question_id", ""), "ts2") for n, row in rows}
    lines, problems = make_lines(path, ((n, _fields(row, parsed[n][0])) for n, row in rows))
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


def _fields(row: dict[str, str], parents: tuple[int, ...]) -> dict[str, object]:
    return {
        "prompt_id": row["id"],
        "prompt": row["prompt"],
        "question_id": row["question_id"],
        "question": row["question"],
        "choices": tuple(choice.strip() for choice in row["choices"].split("|") if choice.strip()),
        "expected": row["answer"].strip(),
        "parents": tuple(dict.fromkeys(map(str, parents))),
    }
