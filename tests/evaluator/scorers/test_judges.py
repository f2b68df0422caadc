"""Judges that write: VIEScore's ratings, LLMScore's two numbers, read or refused, never made up."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaluator.scorers.answering import pixel_hash
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.models.region_captions import CaptionModel, load_captions, main
from evaluator.scorers.models.sampling import Sampling
from evaluator.scorers.registry import Runtime, load_rows
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.questions.fakes import CannedText, FakeAnswers
from tests.evaluator.scorers.tiny_models import (
    qwen_tokenizer,
    save_language_model,
    saved,
)

ratings = later("evaluator.scorers.families.text_judge")
captions = later("evaluator.scorers.families.caption_judge")
generation = later("evaluator.scorers.models.text_models")

RED, BLUE = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")


# VIEScore


def test_an_unreadable_rating_is_no_score_with_the_reason_and_the_reply() -> None:
    reply = '{"score": [11]}'
    verdict = rater("sc", lambda *_: reply).score_texts([RED], [["a cat"]])[0][0]
    assert math.isnan(verdict.score)
    assert verdict.problem.startswith("SC: ") and "0 to 10" in verdict.problem
    assert [(answer.raw, answer.valid) for answer in verdict.answers] == [(reply, False)]


def rater(part: str, reply: Any) -> Any:
    return ratings.RatingScorer(FakeAnswers(reply), ratings.TextJudgeOptions(part=part))


def by_instruction(_: Any, prompt: str) -> str:
    if prompt == ratings.QUALITY:
        return '{"score": [9, 4], "reasoning": ""}'
    return '{"score": [8]}' if prompt.endswith("a cat") else '{"score": [1]}'


@pytest.mark.parametrize(("part", "wanted"), [("sc", 8.0), ("pq", 4.0), ("o", math.sqrt(8 * 4))])
def test_sc_and_pq_are_minima_and_o_is_their_geometric_mean(part: str, wanted: float) -> None:
    assert rater(part, by_instruction).score([RED], ["a cat"]) == [pytest.approx(wanted)]


def test_o_needs_both_ratings() -> None:
    scorer = rater("o", lambda _, put: "no" if put == ratings.QUALITY else '{"score": [5]}')
    (verdict,) = scorer.score_texts([RED], [["a cat"]])[0]
    assert math.isnan(verdict.score)
    assert verdict.problem.startswith("PQ: ")
    assert [answer.valid for answer in verdict.answers] == [True, False]


def test_the_quality_of_an_image_is_asked_once_for_all_its_prompts() -> None:
    model = FakeAnswers(by_instruction)
    scorer = ratings.RatingScorer(model, ratings.TextJudgeOptions(part="o"))
    verdicts = scorer.score_texts([RED, BLUE], [["a cat", "a {prompt} {0}", "a cat"], []])
    assert [round(verdict.score, 6) for verdict in verdicts[0]] == [5.656854, 2.0, 5.656854]
    assert verdicts[1] == []
    assert len(model.asked) == 3
    # Braces in a prompt mean nothing.
    assert ratings.CONSISTENCY.replace("{prompt}", "a {prompt} {0}") in model.asked
    assert scorer.truncated(["a", "a" * 2000]) == [False, True]


# LLMScore: an image in words, and a language model that compares

SEEN = "A red cat sits on the left of a mat."
COMPARED = '{"reasoning": "no dog", "overall": 60, "errors": 4}'
CAPTION, REGIONS = "A cat on a mat.", "- a red cat, left\n- a mat {caption}"


def see(_: Any, prompt: str) -> str:
    if prompt == captions.CAPTION:
        return f"{CAPTION}\n"
    return REGIONS.replace("\n-", "\n\n*") + "\n"


def judge(prompt: str) -> str:
    return COMPARED if "Reply with one JSON object" in prompt else f" {SEEN}\n"


def comparison(number: str, llm: CannedText, vlm: FakeAnswers) -> Any:
    model = CaptionModel(vlm, captions.CAPTION, captions.REGIONS, 64)
    return captions.ComparisonScorer(model, llm, captions.CaptionJudgeOptions(number=number))


@pytest.mark.parametrize(
    ("number", "row", "wanted", "higher"),
    [("overall", "llmscore-over", 60.0, True), ("errors", "llmscore-ec", 4.0, False)],
)
def test_the_score_is_the_judges_number(number: str, row: str, wanted: float, higher: bool) -> None:
    llm, prompt = CannedText(judge), "a cat and a {dog}"
    scorer = comparison(number, llm, FakeAnswers(see))
    (verdict,) = scorer.score_texts([RED], [[prompt]])[0]
    assert verdict.score == wanted
    assert [answer.raw for answer in verdict.answers] == [SEEN, COMPARED]
    paragraph, comparing = llm.told
    assert CAPTION in paragraph and REGIONS in paragraph
    assert f"Text: {prompt}" in comparing and f"Description: {SEEN}" in comparing
    assert load_rows()[row].higher_is_better is higher


def test_an_image_is_described_once_for_all_its_prompts() -> None:
    llm, vlm = CannedText(judge), FakeAnswers(see)
    verdicts = comparison("overall", llm, vlm).score_texts([RED, BLUE], [["a cat", "a dog"], []])
    assert [len(of_image) for of_image in verdicts] == [2, 0]
    assert (len(vlm.asked), len(llm.told)) == (2, 3)


@pytest.mark.parametrize(
    ("reply", "limit", "sees", "reason"),
    [
        (lambda prompt: "Four errors.", 5000, see, "'errors'"),
        (lambda prompt: '{"errors": 12}', 5000, see, "0 to 9"),
        (lambda prompt: "  ", 5000, see, "paragraph"), (judge, 100, see, "longer"),
        (judge, 600, see, "exceed"), (judge, 5000, lambda *_: " ", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_has_no_score_and_the_reason(
    reply: Any, limit: int, sees: Any, reason: str
) -> None:
    scorer = comparison("errors", CannedText(reply, limit=limit), FakeAnswers(sees))
    (verdict,) = scorer.score_texts([scorer.prepare(RED)], [["a cat"]])[0]
    assert math.isnan(verdict.score)
    assert verdict.problem and reason in verdict.problem
    assert math.isnan(scorer.score([scorer.prepare(RED)], ["a cat"])[0])


def test_captions_come_from_a_file_by_the_pixels_of_an_image(tmp_path: Path) -> None:
    region = {"text": "a red cat", "box": [0, 0.25, 0.5, 1]}
    line = {"image": pixel_hash(RED), "caption": "A cat.", "regions": [region]}
    (tmp_path / "captions.jsonl").write_text(json.dumps(line) + "\n\n")
    of_file = load_captions(tmp_path / "captions.jsonl")
    known, unknown = of_file.describe([of_file.prepare(RED.copy()), of_file.prepare(BLUE)])
    box = "[0.00, 0.25, 0.50, 1.00]"
    assert (known.caption, known.regions) == ("A cat.", (f"a red cat {box}",))
    assert unknown.problem


def test_keys_of_images_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    RED.save(tmp_path / "red.png")
    monkeypatch.setattr("sys.argv", ["region_captions", str(tmp_path / "red.png")])
    assert main() == 0
    assert capsys.readouterr().out.split() == [pixel_hash(RED), str(tmp_path / "red.png")]


@pytest.mark.parametrize("line", ["{", '{"image": "x", "caption": "y"}', '{"caption": "y"}'])
def test_a_bad_caption_file_is_refused_by_its_line(tmp_path: Path, line: str) -> None:
    good = json.dumps({"image": "0" * 64, "caption": "y"})
    (tmp_path / "captions.jsonl").write_text(f"{good}\n{line}\n")
    with refusal("bad_captions", "line 2"):
        load_captions(tmp_path / "captions.jsonl")


# The language model behind it


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_language_model(tmp_path_factory.mktemp("llm"))


def text_model(folder: Path) -> Any:
    return generation.load_text_model(Source(folder, str(folder), ""), Runtime())


def test_text_is_the_likeliest_token_after_token(language_model: Path) -> None:
    prompts = ["a cat", "two red dogs on a mat", "x"]
    written = text_model(language_model).generate(prompts, 6)
    model = hf.Qwen2ForCausalLM.from_pretrained(language_model).eval()
    tokenizer = qwen_tokenizer()
    for prompt, found in zip(prompts, written, strict=True):
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        start = ids.shape[1]
        for _ in range(6):
            with torch.no_grad():
                token = model(ids).logits[0, -1].argmax()
            if token == tokenizer.eos_token_id:
                break
            ids = torch.cat([ids, token.view(1, 1)], dim=1)
        wanted = tokenizer.decode(ids[0, start:], skip_special_tokens=True)
        assert found == wanted


def test_a_reply_is_drawn_by_its_seed_alone(language_model: Path) -> None:
    model, how = text_model(language_model), Sampling(temperature=2.0, top_p=1.0)
    first = model.sample(["a cat"] * 3, [1, 2, 1], 8, how)
    assert first[0] == first[2] != first[1]
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    assert model.sample(["x", "a cat"], [5, 2], 8, how)[1] == first[1]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(one.cut for one in model.sample(["a cat"] * 2, [1, 2], 1, how) if one.text)
    [refused] = model.sample(["a" * 2001], [1], 48, how)
    assert (refused.text, bool(refused.refusal)) == ("", True)


def test_the_presence_penalty_is_taken_once_off_what_the_reply_has() -> None:
    scores = torch.arange(5, dtype=torch.float32).view(1, 5)
    found = generation.PresencePenalty(2, 0.5)(torch.tensor([[0, 1, 3, 3, 4]]), scores)
    assert found.tolist() == [[0.0, 1.0, 2.0, 2.5, 3.5]]


def test_a_chat_template_is_used_where_there_is_one(language_model: Path, tmp_path: Path) -> None:
    tokenizer = qwen_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}USER {{ m.content }}{% endfor %} SAY"
    saved(tmp_path, hf.Qwen2ForCausalLM.from_pretrained(language_model), tokenizer)
    plain, chat, wrapped = text_model(language_model), text_model(tmp_path), "USER a cat SAY"
    assert chat.generate(["a cat"], 6) == plain.generate([wrapped], 6)
    assert chat.generate(["a cat"], 6) != plain.generate(["a cat"], 6)


def test_a_prompt_beyond_the_context_is_refused(language_model: Path) -> None:
    model = text_model(language_model)
    assert (model.fits("a" * 2000, 48), model.fits("a" * 2001, 48)) == (True, False)
    with refusal("prompt_too_long"):
        model.generate(["a" * 2001], 48)


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    with refusal("checkpoint_wrong_class"):
        text_model(saved(tmp_path, hf.CLIPConfig()))
