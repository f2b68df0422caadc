"""Writes the questions of many prompts into a file, going on where an earlier run stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.lines import append_records, mend_end, read_lines
from evaluator.scorers.questions.question import NoQuestions, Provenance, Record
from evaluator.scorers.questions.writers.writer import Writer, Written
from evaluator.scoring.progress import Listener, Tracker


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and its id in the benchmark; several may have no id."""

    text: str
    prompt_id: str = ""


@dataclass
class Summary:
    """What came of a run.

    Attributes:
        written: prompts that were written now.
        kept: prompts that an earlier run had written.
        n_questions: questions that were written now.
        failed: prompts without any usable question, with what was wrong; the next run tries again.
        faults: what was left out of prompts that were written.
    """

    written: int = 0
    kept: int = 0
    n_questions: int = 0
    failed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    faults: dict[str, tuple[str, ...]] = field(default_factory=dict)


def write_questions(
    prompts: Sequence[Prompt],
    writer: Writer,
    out: Path,
    *,
    provenance: Provenance,
    clock: Callable[[], datetime],
    listener: Listener | None = None,
) -> Summary:
    """Write what the file lacks, prompt by prompt; each is on disk before the next begins.

    Args:
        prompts: those with the same text are written once.
        writer: asks the language model.
        out: file to write or to go on with.
        provenance: without time.
        clock: gives the time of each prompt.
        listener: told of progress.

    Raises:
        SubmitterError: `other_writer`, the file holds questions of another writer, model or
            wording; `bad_questions`, it holds lines that are none; `cannot_write`.
    """
    wanted: dict[str, Prompt] = {}
    for prompt in prompts:
        wanted.setdefault(prompt.text, prompt)
    there = _there(out, provenance)
    left = [prompt for prompt in wanted.values() if prompt.text not in there]
    summary = Summary(kept=len(wanted) - len(left))
    tracker = Tracker(len(wanted), listener, already_done=summary.kept, stage="writing")
    for prompt in left:
        found = writer.write(prompt.text)
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
