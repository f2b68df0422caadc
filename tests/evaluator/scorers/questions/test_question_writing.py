from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.file import load_questions
from evaluator.scorers.questions.lines import read_lines
from evaluator.scorers.questions.question import Provenance, Question
from evaluator.scorers.questions.writers.writer import Written
from evaluator.scorers.questions.writing import Prompt, Summary, write_questions
from evaluator.scoring.progress import Progress
from tests.evaluator.scorers.questions.fakes import yes_no

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
FROM = Provenance(writer="dsg", model="owner/llm", revision="abc", wording="assay-1")


class Counting:
    """Writes one question per prompt; stops at `stop`, has none for `empty`."""

    def __init__(self, stop: str = "") -> None:
        self.stop = stop
        self.asked: list[str] = []

    def write(self, prompt: str) -> Written:
        if prompt == self.stop:
            raise KeyboardInterrupt
        self.asked.append(prompt)
        if prompt == "empty":
            return Written(none_because="no noun phrases")
        if prompt == "bad":
            return Written(faults=("no statements",))
        return Written((yes_no(prompt, "1", f"{prompt}?"),), ("a line was odd",))


def run(out: Path, writer: Counting, *prompts: str, seen: list[Progress] | None = None) -> Summary:
    return write_questions(
        [Prompt(prompt, f"id of {prompt}") for prompt in prompts],
        writer,
        out,
        provenance=FROM,
        clock=lambda: NOON,
        listener=None if seen is None else seen.append,
    )


def test_each_question_says_where_it_comes_from(tmp_path: Path) -> None:
    out = tmp_path / "q.jsonl"
    seen: list[Progress] = []
    summary = run(out, Counting(), "a", "empty", "bad", "a", seen=seen)
    first, second = [line.record for line in read_lines(out)[0]]
    assert isinstance(first, Question)
    assert first.provenance == FROM.model_copy(update={"written_at": NOON})
    assert first.prompt_id == "id of a"
    assert (summary.written, summary.n_questions) == (2, 1)
    assert summary.failed == {"bad": ("no statements",)}
    assert summary.faults == {"a": ("a line was odd",)}
    assert second.prompt == "empty"
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 3, 3)
    assert load_questions(out).of("empty").reason == "no noun phrases"


def test_a_stopped_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    out, straight = tmp_path / "q.jsonl", tmp_path / "straight.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(out, Counting(stop="c"), "a", "b", "c", "d")
    with out.open("ab") as file:
        file.write(b'{"prompt":"b","question_')  # as if the write itself had been cut off
    again = Counting()
    seen: list[Progress] = []
    summary = run(out, again, "a", "b", "c", "d", seen=seen)
    assert again.asked == ["b", "c", "d"]
    assert (summary.kept, summary.written, seen[0].done) == (1, 3, 1)
    run(straight, Counting(), "a", "b", "c", "d")
    assert out.read_bytes() == straight.read_bytes()


@pytest.mark.parametrize(
    "other", [{"writer": "tifa"}, {"model": "x/y"}, {"revision": "d"}, {"wording": "assay-2"}]
)
def test_a_file_of_another_writer_is_not_gone_on_with(
    tmp_path: Path, other: dict[str, str]
) -> None:
    out = tmp_path / "q.jsonl"
    run(out, Counting(), "a")
    with pytest.raises(SubmitterError, match="line 1") as caught:
        write_questions(
            [Prompt("b")],
            Counting(),
            out,
            provenance=FROM.model_copy(update=other),
            clock=lambda: NOON,
        )
    assert caught.value.code == "other_writer"
