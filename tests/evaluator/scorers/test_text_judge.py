"""VIEScore: ratings are read or refused, never made up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from evaluator.scorers.models.judge_replies import read_integer, read_list
from evaluator.scorers.registry import find_row, load_rows, load_scorer
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.canned_models import CannedVLM
from tests.evaluator.scorers.tiny_qwen import qwen2_vl
from tests.evaluator.scorers.tiny_vlm import picture, saved

if TYPE_CHECKING:
    from evaluator.scorers.families.text_judge import RatingScorer

RED, BLUE = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")

READABLE = {
    "as asked": ('{"score": [8], "reasoning": "fine"}', 8.0),
    "a fence and words around it": ('Sure!\n```json\n{"score": [7.5]}\n```\nBye {}', 7.5),
    "braces in the reasoning": ('{"reasoning": "a {cat} \\"x\\"", "score": [3]}', 3.0),
    "the smallest": ('{"score": [0]}', 0.0),
    "the largest": ('{"score": [10]}', 10.0),
    "twice the same": ('{"score": [4]} again: {"score": [4]}', 4.0),
}
UNREADABLE = {
    "malformed": ('{"score": [8, "reasoning": "x"', "no JSON object"),
    "list only": ("[8]", "no JSON object"),
    "number only": ("8", "no JSON object"),
    "number in place of a list": ('{"score": 8}', "not a list"),
    "refusal": ("I'm sorry, I cannot rate images.", "no JSON object"),
    "nothing": ("", "no JSON object"),
    "no score": ('{"rating": [8]}', "no JSON object with 'score'"),
    "longer list": ('{"score": [8, 9]}', "2 numbers and not 1"),
    "empty list": ('{"score": []}', "0 numbers and not 1"),
    "above": ('{"score": [11]}', "outside 0 to 10"),
    "below": ('{"score": [-1]}', "outside 0 to 10"),
    "not a number": ('{"score": [NaN]}', "outside 0 to 10"),
    "words": ('{"score": ["eight"]}', "something else"),
    "truth": ('{"score": [true]}', "something else"),
    "twice, differently": ('{"score": [4]} or rather {"score": [5]}', "more than once"),
}


@pytest.mark.parametrize("case", READABLE)
def test_a_readable_rating_is_read(case: str) -> None:
    reply, wanted = READABLE[case]
    assert read_list(reply, "score", 1, 0, 10).numbers == (wanted,)


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_rating_is_no_score_with_the_reason_and_the_reply(case: str) -> None:
    reply, reason = UNREADABLE[case]
    verdict = rater("sc", lambda *_: reply).score_texts([RED], [["a cat"]])[0][0]
    assert math.isnan(verdict.score)
    assert verdict.problem.startswith("SC: ")
    assert reason in verdict.problem
    assert [(answer.raw, answer.valid) for answer in verdict.answers] == [(reply, False)]


INTEGERS = {
    "as asked": ('{"reasoning": "x", "overall": 85, "errors": 2}', 85.0),
    "a line": ("Overall: 85/100\nbecause of 3 cats", 85.0),
    "a line in bold": ("**Overall score**: 85", 85.0),
    "a whole number with a point": ('{"overall": 85.0}', 85.0),
    "half": ('{"overall": 8.5}', None),
    "above": ('{"overall": 101}', None),
    "below": ("Overall: -5", None),
    "two lines that differ": ("Overall: 85\nOverall: 80", None),
    "somewhere in a sentence": ("I think overall it is 85", None),
    "words": ("It is good.", None),
}


@pytest.mark.parametrize("case", INTEGERS)
def test_whole_numbers_are_read_from_objects_or_lines(case: str) -> None:
    reply, wanted = INTEGERS[case]
    found = read_integer(reply, "overall", 1, 100)
    assert found.numbers == (() if wanted is None else (wanted,))
    assert bool(found.problem) == (wanted is None)


def rater(part: Any, reply: Any) -> RatingScorer:
    from evaluator.scorers.families.text_judge import RatingScorer, TextJudgeOptions

    return RatingScorer(CannedVLM(reply), TextJudgeOptions(part=part))


def by_instruction(_: Any, prompt: str) -> str:
    from evaluator.scorers.families.text_judge import QUALITY

    if prompt == QUALITY:
        return '{"score": [9, 4], "reasoning": ""}'
    return '{"score": [8]}' if prompt.endswith("a cat") else '{"score": [1]}'


def test_sc_and_pq_are_minima_and_o_is_their_geometric_mean() -> None:
    for part, wanted in (("sc", 8.0), ("pq", 4.0), ("o", math.sqrt(8 * 4))):
        assert rater(part, by_instruction).score([RED], ["a cat"]) == [pytest.approx(wanted)]


def test_o_needs_both_ratings() -> None:
    from evaluator.scorers.families.text_judge import QUALITY

    scorer = rater("o", lambda _, prompt: "no" if prompt == QUALITY else '{"score": [5]}')
    (verdict,) = scorer.score_texts([RED], [["a cat"]])[0]
    assert math.isnan(verdict.score)
    assert verdict.problem.startswith("PQ: ")
    assert [answer.valid for answer in verdict.answers] == [True, False]


def test_the_quality_of_an_image_is_asked_once_for_all_its_prompts() -> None:
    from evaluator.scorers.families.text_judge import RatingScorer, TextJudgeOptions

    model = CannedVLM(by_instruction)
    scorer = RatingScorer(model, TextJudgeOptions(part="o"))
    images = [scorer.prepare(RED), scorer.prepare(BLUE)]
    verdicts = scorer.score_texts(images, [["a cat", "a dog", "a cat"], []])
    assert len(model.asked) == 3
    assert [round(verdict.score, 6) for verdict in verdicts[0]] == [5.656854, 2.0, 5.656854]
    assert verdicts[1] == []


def test_braces_in_a_prompt_mean_nothing() -> None:
    from evaluator.scorers.families.text_judge import CONSISTENCY, RatingScorer, TextJudgeOptions

    model = CannedVLM(by_instruction)
    RatingScorer(model, TextJudgeOptions(part="sc")).score([RED], ["a {prompt} {0}"])
    assert model.asked[0][1] == CONSISTENCY.replace("{prompt}", "a {prompt} {0}")


def test_a_prompt_longer_than_the_model_reads_is_said_to_be() -> None:
    assert rater("sc", by_instruction).truncated(["a", "a" * 2000]) == [False, True]


def test_a_real_adapter_is_asked_and_its_reply_kept(tmp_path: Path) -> None:
    from evaluator.scorers.families.text_judge import WORDING

    folder = saved(*qwen2_vl(), tmp_path)
    row = find_row("viescore-o", load_rows())
    small = {**row.options, "max_new_tokens": 16}
    row = row.model_copy(update={"options": small, "dtype": "float32"})
    loaded = load_scorer(row, Runtime(folders={"model": folder}))
    assert loaded.environment["wording"] == WORDING
    scorer: Any = loaded.scorer
    images = [scorer.prepare(picture(seed)) for seed in (0, 1)]
    verdicts = scorer.score_texts(images, [["a cat"], ["a cat", "a dog"]])
    assert [len(of_image) for of_image in verdicts] == [1, 2]
    for verdict in (verdict for of_image in verdicts for verdict in of_image):
        assert math.isnan(verdict.score)
        assert verdict.problem
        assert all(answer.raw for answer in verdict.answers)
