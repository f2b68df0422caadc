"""LLMScore: an image in words, a judge's two numbers, and the language model behind it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.models.region_captions import (
    CaptionModel,
    load_captions,
    main,
)
from evaluator.scorers.pixel_hash import pixel_hash
from evaluator.scorers.registry import find_row, load_rows, load_scorer
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.canned_models import CannedLLM, CannedVLM
from tests.evaluator.scorers.tiny_qwen import qwen_tokenizer

if TYPE_CHECKING:
    from evaluator.scorers.families.caption_judge import ComparisonScorer

RED, BLUE = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
SEEN = "A red cat sits on the left of a mat."


def see(_: Any, prompt: str) -> str:
    from evaluator.scorers.families.caption_judge import CAPTION

    return "A cat on a mat.\n" if prompt == CAPTION else "- a red cat, left\n\n* a mat {caption}\n"


def judge(prompt: str) -> str:
    if "Reply with one JSON object" in prompt:
        return '{"reasoning": "the dog is missing", "overall": 60, "errors": 4}'
    return f" {SEEN}\n"


def comparison(number: Any, llm: CannedLLM, vlm: CannedVLM) -> ComparisonScorer:
    from evaluator.scorers.families.caption_judge import (
        CAPTION,
        REGIONS,
        CaptionJudgeOptions,
        ComparisonScorer,
    )

    options = CaptionJudgeOptions(number=number)
    return ComparisonScorer(CaptionModel(vlm, CAPTION, REGIONS, 64), llm, options)


@pytest.mark.parametrize(("number", "wanted"), [("overall", 60.0), ("errors", 4.0)])
def test_the_score_is_the_judges_number(number: str, wanted: float) -> None:
    from evaluator.scorers.families.caption_judge import COMPARISON

    llm = CannedLLM(judge)
    scorer = comparison(number, llm, CannedVLM(see))
    (verdict,) = scorer.score_texts([scorer.prepare(RED)], [["a cat and a {dog}"]])[0]
    assert verdict.score == wanted
    assert [answer.raw for answer in verdict.answers] == [SEEN, judge(COMPARISON)]
    paragraph, comparing = llm.asked
    assert "A cat on a mat." in paragraph
    assert "- a red cat, left\n- a mat {caption}" in paragraph
    assert "Text: a cat and a {dog}" in comparing
    assert f"Description: {SEEN}" in comparing


def test_errors_count_downwards() -> None:
    rows = load_rows()
    assert rows["llmscore-over"].higher_is_better
    assert not rows["llmscore-ec"].higher_is_better


def test_an_image_is_described_once_for_all_its_prompts() -> None:
    llm, vlm = CannedLLM(judge), CannedVLM(see)
    scorer = comparison("overall", llm, vlm)
    images = [scorer.prepare(RED), scorer.prepare(BLUE)]
    verdicts = scorer.score_texts(images, [["a cat", "a dog"], []])
    assert [len(of_image) for of_image in verdicts] == [2, 0]
    assert len(vlm.asked) == 2
    assert len(llm.asked) == 3


@pytest.mark.parametrize(
    ("reply", "limit", "reason"),
    [
        (lambda prompt: "Four errors, I think.", 5000, "no JSON object with 'errors'"),
        (lambda prompt: '{"errors": 12}', 5000, "outside 0 to 9"),
        (lambda prompt: "  ", 5000, "no paragraph"),
        (judge, 100, "longer than the judge reads"),
        (judge, 600, "exceed what the judge reads"),
    ],
)
def test_what_cannot_be_judged_has_no_score_and_the_reason(
    reply: Any, limit: int, reason: str
) -> None:
    scorer = comparison("errors", CannedLLM(reply, limit), CannedVLM(see))
    (verdict,) = scorer.score_texts([scorer.prepare(RED)], [["a cat"]])[0]
    assert math.isnan(verdict.score)
    assert reason in verdict.problem


def test_a_model_that_describes_nothing_gives_no_score() -> None:
    scorer = comparison("errors", CannedLLM(judge), CannedVLM(lambda *_: " "))
    assert math.isnan(scorer.score([scorer.prepare(RED)], ["a cat"])[0])


def test_captions_come_from_a_file_by_the_pixels_of_an_image(tmp_path: Path) -> None:
    region = {"text": "a red cat", "box": [0, 0.25, 0.5, 1]}
    line = {"image": pixel_hash(RED), "caption": "A cat.", "regions": [region]}
    (tmp_path / "captions.jsonl").write_text(json.dumps(line) + "\n\n")
    captions = load_captions(tmp_path / "captions.jsonl")
    RED.save(tmp_path / "red.png")
    with Image.open(tmp_path / "red.png") as again:
        known, unknown = captions.describe([captions.prepare(again), captions.prepare(BLUE)])
    assert (known.caption, known.regions) == ("A cat.", ("a red cat [0.00, 0.25, 0.50, 1.00]",))
    assert unknown.problem
    assert pixel_hash(RED.resize((2, 8))) != pixel_hash(RED)


def test_keys_of_images_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    RED.save(tmp_path / "red.png")
    monkeypatch.setattr("sys.argv", ["region_captions", str(tmp_path / "red.png")])
    assert main() == 0
    assert capsys.readouterr().out.split() == [pixel_hash(RED), str(tmp_path / "red.png")]


@pytest.mark.parametrize(
    ("line", "named"),
    [("{", "line 2"), ('{"image": "x", "caption": "y"}', "image"), ('{"caption": "y"}', "image")],
)
def test_a_bad_caption_file_is_refused_by_its_line(tmp_path: Path, line: str, named: str) -> None:
    good = json.dumps({"image": "0" * 64, "caption": "y"})
    (tmp_path / "captions.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(SubmitterError) as refusal:
        load_captions(tmp_path / "captions.jsonl")
    assert refusal.value.code == "bad_captions"
    assert "line 2" in refusal.value.message
    assert named in refusal.value.message


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = qwen_tokenizer()
    tokenizer.chat_template = None
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=37,
            max_position_embeddings=2048,
            initializer_range=0.5,
        )
    )
    # As checkpoints come: sampling and a penalty, which must not matter.
    model.generation_config.do_sample = True
    model.generation_config.repetition_penalty = 3.0
    folder = tmp_path_factory.mktemp("llm")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def source(folder: Path) -> Source:
    return Source(folder, str(folder), "")


def test_text_is_the_likeliest_token_after_token_alone_and_in_a_batch(language_model: Path) -> None:
    import torch
    from transformers import Qwen2ForCausalLM

    from evaluator.scorers.models.text_generation import load_text_model

    prompts = ["a cat", "two red dogs on a mat", "x"]
    alone = load_text_model(source(language_model), Runtime()).generate(prompts, 6)
    together = load_text_model(source(language_model), Runtime(), batch=3).generate(prompts, 6)
    model: Any = Qwen2ForCausalLM.from_pretrained(language_model).eval()
    tokenizer = qwen_tokenizer()
    for prompt, found, in_batch in zip(prompts, alone, together, strict=True):
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        start = ids.shape[1]
        for _ in range(6):
            with torch.no_grad():
                token = model(ids).logits[0, -1].argmax()
            if token == tokenizer.eos_token_id:
                break
            ids = torch.cat([ids, token.view(1, 1)], dim=1)
        wanted = tokenizer.decode(ids[0, start:], skip_special_tokens=True)
        assert found == in_batch == wanted


def test_a_chat_template_is_used_where_there_is_one(language_model: Path, tmp_path: Path) -> None:
    from transformers import Qwen2ForCausalLM

    from evaluator.scorers.models.text_generation import load_text_model

    Qwen2ForCausalLM.from_pretrained(language_model).save_pretrained(tmp_path)
    tokenizer = qwen_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}USER {{ m.content }}{% endfor %} SAY"
    tokenizer.save_pretrained(tmp_path)
    plain = load_text_model(source(language_model), Runtime())
    chat = load_text_model(source(tmp_path), Runtime())
    assert chat.generate(["a cat"], 6) == plain.generate(["USER a cat SAY"], 6)
    assert chat.generate(["a cat"], 6) != plain.generate(["a cat"], 6)


def test_a_prompt_beyond_the_context_is_refused(language_model: Path) -> None:
    from evaluator.scorers.models.text_generation import load_text_model

    model = load_text_model(source(language_model), Runtime())
    assert model.fits("a" * 2000, 48)
    assert not model.fits("a" * 2001, 48)
    with pytest.raises(SubmitterError) as refusal:
        model.generate(["a" * 2001], 48)
    assert refusal.value.code == "prompt_too_long"


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    from transformers import CLIPConfig

    from evaluator.scorers.models.text_generation import load_text_model

    CLIPConfig().save_pretrained(tmp_path)
    with pytest.raises(SubmitterError) as refusal:
        load_text_model(source(tmp_path), Runtime())
    assert refusal.value.code == "checkpoint_wrong_class"


def test_the_row_loads_with_a_caption_file_and_a_real_judge(
    language_model: Path, tmp_path: Path
) -> None:
    line = {"image": pixel_hash(RED), "caption": "A cat."}
    (tmp_path / "captions.jsonl").write_text(json.dumps(line))
    row = find_row("llmscore-over", load_rows())
    small = {**row.options, "max_new_tokens": 16}
    row = row.model_copy(update={"options": small, "dtype": "float32"})
    folders = {"captions": tmp_path / "captions.jsonl", "judge": language_model}
    loaded = load_scorer(row, Runtime(folders=folders))
    scorer: Any = loaded.scorer
    assert loaded.environment["captions"].startswith("captions.jsonl sha256:")
    known, unknown = scorer.score_texts(
        [scorer.prepare(RED), scorer.prepare(BLUE)], [["a cat"], ["a cat"]]
    )
    assert known[0].answers[-1].raw
    assert math.isnan(unknown[0].score)
    assert "does not have this image" in unknown[0].problem
