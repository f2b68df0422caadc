"""Writing of the questions of many prompts, going on where an earlier run stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.tables import read_table
from evaluator.scorers.questions.files import (
    NoQuestions,
    Provenance,
    Record,
    append_records,
    mend_end,
    read_lines,
    read_text,
)
from evaluator.scorers.questions.writers import Write, Written
from evaluator.scoring.progress import Listener, Tracker


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and its id in the benchmark; several may have no id."""

    text: str
    prompt_id: str = ""


@dataclass
class Summary:
    """What came of a run."""

    written: int = 0  # prompts that were written now
    kept: int = 0  # prompts that an earlier run had written
    n_questions: int = 0  # questions that were written now
    # prompts without any usable question, with what was wrong; the next run tries again
    failed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # what was left out of prompts that were written
    faults: dict[str, tuple[str, ...]] = field(default_factory=dict)


def write_questions(
    prompts: Sequence[Prompt],
    write: Write,
    out: Path,
    *,
    provenance: Provenance,
    clock: Callable[[], datetime],
    listener: Listener | None = None,
) -> Summary:
    """Write what the file lacks, prompt by prompt; each is on disk before the next begins."""
    wanted: dict[str, Prompt] = {}
    for prompt in prompts:
        wanted.setdefault(prompt.text, prompt)
    there = _there(out, provenance)
    left = [prompt for prompt in wanted.values() if prompt.text not in there]
    summary = Summary(kept=len(wanted) - len(left))
    tracker = Tracker(len(wanted), listener, already_done=summary.kept, stage="writing")
    for prompt in left:
        found = write(prompt.text)
        _keep(found, prompt, out, provenance.model_copy(update={"written_at": clock()}), summary)
        tracker.advance(1)
    return summary


def _keep(
    found: Written, prompt: Prompt, out: Path, provenance: Provenance, summary: Summary
) -> None:
    records: list[Record] = [
        question.model_copy(update={"prompt_id": prompt.prompt_id, "provenance": provenance})
        for question in found.questions
    ]
    if found.none_because:
        records = [
            NoQuestions(
                prompt=prompt.text,
                prompt_id=prompt.prompt_id,
                no_questions=found.none_because,
                provenance=provenance,
            )
        ]
    if not records:
        summary.failed[prompt.text] = found.faults
        return
    append_records(out, records)
    summary.written += 1
    summary.n_questions += len(found.questions)
    if found.faults:
        summary.faults[prompt.text] = found.faults


def _there(out: Path, provenance: Provenance) -> set[str]:
    """The prompts that the file has."""
    if not out.exists():
        return set()
    mend_end(out)
    lines, problems = read_lines(out)
    if problems:
        raise SubmitterError(
            "bad_questions",
            f"{out}, line {problems[0].line}: {problems[0].message}",
            "Mend the line, or write to another file.",
        )
    for line in lines:
        other = line.record.provenance
        if other is None or other.model_copy(update={"written_at": None}) != provenance:
            raise SubmitterError(
                "other_writer",
                f"{out}, line {line.number}: this question was not written by {provenance.writer} "
                f"with {provenance.model or 'no model'} and wording {provenance.wording}.",
                "Write to another file.",
            )
    return {line.record.prompt for line in lines}


TEXT_COLUMNS = ("prompt", "target_prompt", "text", "caption")
ID_COLUMNS = ("prompt_id", "text_id", "id", "item_id")


def prompts_of_file(path: Path) -> list[Prompt]:
    """The prompts of a file, each text once with its first id.

    A `.csv` file has a column `prompt` (or one of `TEXT_COLUMNS`) and may have one of ids (one of
    `ID_COLUMNS`). Any other file is text with one prompt a line; spaces around it are dropped.
    """
    prompts = _of_csv(path) if path.suffix.lower() == ".csv" else _of_text(path)
    if not prompts:
        raise SubmitterError("no_prompts", f"{path} holds no prompts.", "Check the file.")
    first: dict[str, Prompt] = {}
    for prompt in prompts:
        first.setdefault(prompt.text, prompt)
    return list(first.values())


def prompts_by_id(path: Path) -> dict[str, str]:
    """Prompt id to text, of a CSV file."""
    found = {prompt.prompt_id: prompt.text for prompt in _of_csv(path)}
    if "" in found:
        raise SubmitterError(
            "missing_columns", f"{path} has no column of ids: {', '.join(ID_COLUMNS)}."
        )
    return found


def prompts_of_benchmark(name: str, data: Path | None) -> list[Prompt]:
    """The prompts of a benchmark: those for generating images, else those of its pairs."""
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
    table = read_table(path)
    text = next((name for name in TEXT_COLUMNS if name in table), None)
    if text is None:
        raise SubmitterError(
            "missing_columns", f"{path} has no column of prompts: {', '.join(TEXT_COLUMNS)}."
        )
    key = next((name for name in ID_COLUMNS if name in table), None)
    ids = [""] * len(table) if key is None else table[key]
    return [Prompt(one, name) for one, name in zip(table[text], ids, strict=True) if one.strip()]


def _of_text(path: Path) -> list[Prompt]:
    return [Prompt(line.strip()) for line in read_text(path).splitlines() if line.strip()]
