"""Questions of TIFA: a JSON list of questions with choices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.json_parsing import parse_json
from evaluator.scorers.questions.readers.released import Released, make_lines


def read_tifa(path: Path) -> Released:
    """Read a TIFA JSON file: objects with caption, question, choices, answer, element and type.

    Questions are numbered from 1 within each caption; the number of an object, from 1, stands for
    its line.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file`.
    """
    try:
        records = parse_json(path.read_bytes())
    except OSError as error:
        raise SubmitterError("file_missing", f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SubmitterError("unreadable_file", f"{path} is not JSON: {error}.") from error
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
