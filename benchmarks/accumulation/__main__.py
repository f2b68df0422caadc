"""Command `python -m benchmarks.accumulation`: a file of answers becomes a scores file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benchmarks.accumulation.question_scores import (
    AnsweredQuestions,
    Correctness,
    Notation,
    QuestionGraph,
    Rule,
    Unanswered,
    Unparsable,
    contains_yes,
    equals_yes,
    image_scores,
    pairs_of,
    stated_correctness,
    tifa,
)
from benchmarks.arrays import BoolArray
from benchmarks.command_line import ForceOption, errors, run
from benchmarks.sources.output import check_output, write_whole
from benchmarks.tables import read_table


def write_scores(path: Path, scores: pd.Series) -> None:
    """Write a scores file: columns `pair_id` and `score`, an empty cell where there is none."""
    write_whole(path, lambda place: scores.to_csv(place, header=["score"]))


@dataclass(frozen=True)
class Settings:
    """Settings of a released metric, which the command line can replace."""

    correct: Correctness
    notation: Notation
    unanswered: Unanswered


RELEASED: dict[Rule, Settings] = {
    "mean": Settings("tifa", "ts2", "empty"),
    "dsg": Settings("equals_yes", "dsg", "zero"),
    "recursive": Settings("contains_yes", "ts2", "empty"),
}
_QUESTION_COLUMNS: dict[Correctness, tuple[str, ...]] = {
    "equals_yes": (),
    "contains_yes": (),
    "tifa": ("choices", "expected"),
    "given": (),
}
_ANSWER_COLUMNS: dict[Correctness, tuple[str, ...]] = {
    "equals_yes": ("answer",),
    "contains_yes": ("answer",),
    "tifa": ("answer", "mc_answer"),
    "given": ("correct",),
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")


@app.command()
def accumulate(
    answers: Annotated[Path, typer.Argument(help="CSV file of answers.")],
    *,
    questions: Annotated[Path, typer.Option(help="CSV file of questions.")],
    rule: Annotated[Rule, typer.Option(help="How answers become a score; see above.")],
    out: Annotated[Path, typer.Option(help="Scores file to write.")],
    pairs: Annotated[
        Path | None, typer.Option(help="CSV file of images; without it, those with answers.")
    ] = None,
    correct: Annotated[
        Correctness | None, typer.Option(help="When an answer is correct; see above.")
    ] = None,
    parents: Annotated[
        Notation | None, typer.Option(help="How column parents is written; see above.")
    ] = None,
    unparsable: Annotated[
        Unparsable,
        typer.Option(
            help="A cell of parents that is not so written: its prompt uses no parents at all, "
            "the numbers in it are used, or it is an error."
        ),
    ] = "independent",
    unanswered: Annotated[
        Unanswered | None,
        typer.Option(help="Score of an image without any answer: 0, or an empty cell."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Turn answers to questions about images into a scores file: columns pair_id and score.

    ANSWERS has one row per answer: pair_id, question_id, text_id (the prompt; not needed with
    --pairs), and answer. It also has mc_answer (the choice nearest to the answer) for --correct
    tifa, or correct (1 or 0) in place of answer for --correct given.

    QUESTIONS has one row per question: text_id, question_id (a whole number) and parents (ids of
    questions of the same prompt; not needed for --rule mean). It also has choices (joined by |)
    and expected (the right one) for --correct tifa.

    PAIRS has one row per image: pair_id, text_id.

    --rule mean: the share of correct answers (TIFA). dsg: a question counts if its answer and
    those to its direct parents are correct (DSG). recursive: if its answer is correct and its
    parents count (T2IScoreScore).

    --correct equals_yes: the answer is "yes". contains_yes: it has "yes" in it. tifa: of two
    choices, it has "yes" in it; of more, mc_answer is the expected one. given: column correct.

    --parents dsg: 1,2 with 0 for none. ts2: 1-0 with -1 for none.

    What is not named is as in the release the rule comes from: mean with tifa, ts2 and empty;
    dsg with equals_yes, dsg and zero; recursive with contains_yes, ts2 and empty.

    Example: python -m benchmarks.accumulation answers.csv --questions questions.csv --rule dsg
    --out scores.csv
    """
    check_output(out, force=force, inputs=filter(None, (answers, questions, pairs)))
    released = RELEASED[rule]
    chosen = Settings(
        correct or released.correct,
        parents or released.notation,
        unanswered or released.unanswered,
    )
    answered = _load(
        answers, questions=questions, pairs=pairs, rule=rule, chosen=chosen, unparsable=unparsable
    )
    scores = image_scores(answered, rule, chosen.unanswered)
    write_scores(out, scores)
    errors().print(_summary(answered, out, unparsable), markup=False, highlight=False)


def _load(
    answers: Path,
    *,
    questions: Path,
    pairs: Path | None,
    rule: Rule,
    chosen: Settings,
    unparsable: Unparsable,
) -> AnsweredQuestions:
    needs_parents = () if rule == "mean" else ("parents",)
    asked = read_table(
        questions, ("text_id", "question_id", *needs_parents, *_QUESTION_COLUMNS[chosen.correct])
    )
    needs_text = () if pairs else ("text_id",)
    given = read_table(
        answers, ("pair_id", "question_id", *needs_text, *_ANSWER_COLUMNS[chosen.correct])
    )
    images = (
        read_table(pairs, ("pair_id", "text_id")) if pairs else pairs_of(given, source=str(answers))
    )
    graph = QuestionGraph.of(
        asked if needs_parents else asked[["text_id", "question_id"]],
        notation=chosen.notation,
        unparsable=unparsable,
        source=str(questions),
    )
    # Whether answers are correct is known only once each has found its question.
    joined = AnsweredQuestions.of(
        given, pd.Series(False, index=given.index).to_numpy(), graph, images, source=str(answers)
    )
    of_question = asked.iloc[joined.question].reset_index(drop=True)
    return AnsweredQuestions(
        graph, joined.pair_ids, joined.pair, joined.question, _correct(given, of_question, chosen)
    )


def _correct(answers: pd.DataFrame, of_question: pd.DataFrame, chosen: Settings) -> BoolArray:
    if chosen.correct == "given":
        return stated_correctness(answers["correct"])
    if chosen.correct == "tifa":
        return tifa(
            answers["answer"], answers["mc_answer"], of_question["choices"], of_question["expected"]
        )
    rule = equals_yes if chosen.correct == "equals_yes" else contains_yes
    return rule(answers["answer"])


def _summary(answered: AnsweredQuestions, out: Path, unparsable: Unparsable) -> str:
    n_empty = int((answered.n_answers == 0).sum())
    odd: Sequence[str] = answered.graph.unparsable
    done = "use no parents" if unparsable == "independent" else "are repaired"
    return "".join(
        [
            f"{out}: {len(answered.pair_ids)} images, {answered.correct.size} answers, "
            f"{int(answered.correct.sum())} of them correct.",
            f" Images without answers: {n_empty}." if n_empty else "",
            f" Prompts with a cell of parents that cannot be read {done}: {', '.join(odd)}."
            if odd
            else "",
        ]
    )


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
