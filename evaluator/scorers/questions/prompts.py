"""Prompts that questions are written for: of a benchmark, or of a file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.accumulation.command import read_columns
from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from evaluator.scorers.questions.writing import Prompt

TEXT_COLUMNS = ("prompt", "target_prompt", "text", "caption")
ID_COLUMNS = ("prompt_id", "text_id", "id", "item_id")


def of_file(path: Path) -> list[Prompt]:
    """The prompts of a file, each text once with its first id.

    A `.csv` file has a column `prompt` (or one of `TEXT_COLUMNS`) and may have one of ids (one of
    `ID_COLUMNS`). Any other file is text with one prompt a line; spaces around it are dropped.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file`, `missing_columns`, `no_prompts`.
    """
    prompts = _of_csv(path) if path.suffix.lower() == ".csv" else _of_text(path)
    if not prompts:
        raise SubmitterError("no_prompts", f"{path} holds no prompts.", "Check the file.")
    first: dict[str, Prompt] = {}
    for prompt in prompts:
        first.setdefault(prompt.text, prompt)
    return list(first.values())


def by_id(path: Path) -> dict[str, str]:
    """Prompt id to text, of a CSV file.

    Raises:
        SubmitterError: as `of_file`; `missing_columns`, there are no ids.
    """
    found = {prompt.prompt_id: prompt.text for prompt in _of_csv(path)}
    if "" in found:
        raise SubmitterError(
            "missing_columns", f"{path} has no column of ids: {', '.join(ID_COLUMNS)}."
        )
    return found


def of_benchmark(name: str, data: Path | None) -> list[Prompt]:
    """The prompts of a benchmark: those for generating images, else those of its pairs.

    Raises:
        SubmitterError: `unknown_benchmark`, or what its data lack.
    """
    benchmark = find(load_registry(), name)
    try:
        table: pd.DataFrame = benchmark.prompts(data)
    except SubmitterError as error:
        if error.code != "no_prompts":
            raise
        return [Prompt(text, key) for key, text in benchmark.questions(data).texts.items()]
    rows = zip(table["prompt"], table["prompt_id"], strict=True)
    return [Prompt(str(text), str(key)) for text, key in rows]


def _of_csv(path: Path) -> list[Prompt]:
    table = read_columns(path, ())
    text = next((name for name in TEXT_COLUMNS if name in table), None)
    if text is None:
        raise SubmitterError(
            "missing_columns", f"{path} has no column of prompts: {', '.join(TEXT_COLUMNS)}."
        )
    key = next((name for name in ID_COLUMNS if name in table), None)
    ids = [""] * len(table) if key is None else table[key]
    return [Prompt(one, name) for one, name in zip(table[text], ids, strict=True) if one.strip()]


def _of_text(path: Path) -> list[Prompt]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SubmitterError("file_missing", f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SubmitterError("unreadable_file", f"{path} is not UTF-8 text.") from error
    return [Prompt(line.strip()) for line in lines if line.strip()]
