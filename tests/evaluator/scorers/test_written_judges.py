"""Judges that write ratings or comparisons: what they are asked, and what is kept of their replies."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import Reading
from evaluator.scorers.models.judge_replies import LONGEST_KEPT
from evaluator.scorers.registry import Checkpoint, Runtime, ScorerRow, load_rows, load_scorer
from tests.evaluator.scorers import tiny_models
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.scorers.questions.fakes import FakeWriter

rating = later("evaluator.scorers.families.written_rating")
comparison = later("evaluator.scorers.families.written_comparison")

ROWS = load_rows()
RATINGS = [name for name, row in ROWS.items() if row.family == "written_rating"]
COMPARISONS = [name for name, row in ROWS.items() if row.family == "written_comparison"]
RED, BLUE = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
HUGE = 100_000


def options_of(name: str) -> Any:
    family = rating if ROWS[name].family == "written_rating" else comparison
    return family.FAMILY.check(ROWS[name])


# Scorers


def rater(name: str, words: Callable[..., str], **more: Any) -> tuple[Any, FakeWriter]:
    model = FakeWriter(words, **more)
    return rating.WrittenRating(model, options_of(name)), model


def test_an_instruction_is_put_once_to_an_image_and_braces_in_a_prompt_mean_nothing() -> None:
    scorer, model = rater("unifiedreward", lambda _, put: f"Final Score: {1 + ('cat' in put)}")
    found = scorer.score_texts([RED, BLUE, RED], [["a {prompt}", "a cat", "a cat"], [], ["a dog"]])
    assert [[one.score for one in its] for its in found] == [[1, 2, 2], [], [1]]
    assert [put.rpartition("Text Caption: ")[2] for _, put in model.asked] == [
        "[a {prompt}]", "[a cat]", "[a dog]",
    ]  # fmt: skip
    assert scorer.truncated(["a", "a" * 10_000]) == [False, True]
    assert scorer.score_texts([], []) == []


def test_a_row_that_reads_no_prompt_asks_once_for_all_prompts() -> None:
    scorer, model = rater("visualquality-r1", lambda *_: "<answer>2.50</answer>")
    assert scorer.score_texts([RED], [["a", "b"]])[0][1].score == 2.5
    assert len(model.asked) == 1


@pytest.mark.parametrize("length", [LONGEST_KEPT, LONGEST_KEPT + 1, HUGE])
def test_replies_are_kept_bounded_with_a_hash_of_the_rest(length: int) -> None:
    reply = "y" * length
    (verdict,) = rater("unifiedreward", lambda *_: reply)[0].score_texts([RED], [["a cat"]])[0]
    (answer,) = verdict.answers
    assert math.isnan(verdict.score) and verdict.problem and not answer.valid
    assert answer.question.endswith("Text Caption: [a cat]")
    assert len(answer.raw) < LONGEST_KEPT + 100
    digest = hashlib.sha256(reply.encode()).hexdigest()
    assert (digest in answer.raw) == (length > LONGEST_KEPT)


def test_a_comparison_is_asked_with_both_images_in_the_order_given() -> None:
    def first_red(images: tuple[Any, ...], _: str) -> str:
        return f"<answer>Image {1 if images[0] == RED else 2} is better</answer>"

    model = FakeWriter(first_red)
    scorer = comparison.WrittenComparison(model, options_of("unifiedreward-think"))
    found = scorer.compare(["a", "b"], [RED, BLUE], [BLUE, RED])
    assert [one.score for one in found] == [1, -1]
    assert [images for images, _ in model.asked] == [(RED, BLUE), (BLUE, RED)]
    assert [len(one.answers) for one in found] == [1, 1]
    assert scorer.truncated(["a"]) == [False]


def test_a_comparison_that_cannot_be_read_is_no_tie() -> None:
    model = FakeWriter(lambda *_: "Neither.")
    scorer = comparison.WrittenComparison(model, options_of("unifiedreward-pair"))
    (found,) = scorer.compare(["a"], [RED], [BLUE])
    assert math.isnan(found.score) and found.problem and found.answers[0].raw == "Neither."


def test_rows_say_what_they_read_and_how_they_are_asked() -> None:
    for name in RATINGS:
        assert ROWS[name].reads_prompt == ("{prompt}" in options_of(name).instruction)
        assert ROWS[name].method == "score"
        options = options_of(name)
        ends = [sum(options.weights.values()) * end for end in (options.low, options.high)]
        assert ends == pytest.approx([ROWS[name].low, ROWS[name].high])
    assert {ROWS[name].method for name in COMPARISONS} == {"compare"}


# Small random models


def small(name: str, tokens: int = 6) -> ScorerRow:
    """A row whose weights are a folder's, in float32, that writes little."""
    options = {**ROWS[name].options, "instruction": "Rate {prompt}.", "max_new_tokens": tokens}
    changed = {"checkpoints": {"model": Checkpoint(id="nobody/tiny")}, "dtype": "float32"}
    return ROWS[name].model_copy(update={**changed, "options": options, "reads_prompt": True})


def written(
    tiny: Any, images: list[Image.Image], prompt: str, n: int, text_format: str = "", **more: Any
) -> str:
    """What the library's own greedy generation gives, by the chat template or the text given."""
    model, processor = tiny
    content: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images]
    turn = {"role": "user", "content": [*content, {"type": "text", "text": prompt}]}
    text = processor.apply_chat_template([turn], add_generation_prompt=True, **more)
    if text_format:
        text = text_format.replace("{image}", processor.image_token).replace("{prompt}", prompt)
    inputs = processor(text=[text], images=[images], return_tensors="pt")
    with torch.no_grad():
        ids = model.generate(**inputs, max_new_tokens=n, do_sample=False)
    fresh = ids[0, inputs["input_ids"].shape[1] :]
    return str(processor.tokenizer.decode(fresh, skip_special_tokens=True)).strip()


IMAGES = [tiny_models.picture(1, 90, 60), tiny_models.picture(2, 56, 112)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("unifiedreward", tiny_models.qwen2_5_vl),
        ("unifiedreward2-qwen3vl-8b", tiny_models.qwen3_vl),
        ("unifiedreward-v1.5", tiny_models.llava_onevision),
    ],
)
def test_a_model_is_asked_by_its_template_and_writes_greedily(
    tmp_path: Path, name: str, kind: Any
) -> None:
    tiny = kind()
    row = small(name)
    written_by = row.options.get("reading", {}).get("text_format", "")
    loaded = load_scorer(row, tiny_models.here(tiny_models.saved(tmp_path, *tiny)))
    scorer: Any = loaded.scorer
    prepared = [scorer.prepare(image) for image in IMAGES]
    found = scorer.score_texts(prepared, [["a cat", "a dog"], ["a cat"]])
    for image, its, prompts in zip(IMAGES, found, (["a cat", "a dog"], ["a cat"]), strict=True):
        for verdict, prompt in zip(its, prompts, strict=True):
            wanted = written(tiny, [image], f"Rate {prompt}.", 6, text_format=written_by)
            assert verdict.answers[0].raw == wanted
            assert math.isnan(verdict.score) and verdict.problem
    assert loaded.environment["wording"]


@pytest.mark.parametrize(
    "kind",
    [
        tiny_models.qwen2_5_vl,
        tiny_models.qwen3_vl,
        tiny_models.llava_onevision,
    ],
)
def test_two_images_are_read_together_and_their_order_counts(tmp_path: Path, kind: Any) -> None:
    tiny = kind()
    row = small("unifiedreward-pair", 12)
    scorer: Any = load_scorer(row, tiny_models.here(tiny_models.saved(tmp_path, *tiny))).scorer
    a, b = IMAGES
    found = scorer.compare(["a cat", "a cat", "a dog"], [a, b, a], [b, a, b])
    asked = [("a cat", IMAGES), ("a cat", IMAGES[::-1]), ("a dog", IMAGES)]
    for verdict, (prompt, images) in zip(found, asked, strict=True):
        assert verdict.answers[0].raw == written(tiny, images, f"Rate {prompt}.", 12)
    assert found[0].answers[0].raw != found[1].answers[0].raw


def test_images_are_resized_and_templates_told_what_a_row_says(tmp_path: Path) -> None:
    reading = Reading(**ROWS["imagedoctor"].options["reading"])
    assert [reading.resized(tiny_models.picture(0, *size)).size for size in ((768, 512), (100, 100))] == [
        (627, 418), (512, 512),
    ]  # fmt: skip
    model, processor = tiny_models.qwen2_5_vl()
    template = "{% if add_vision_id %}Picture 1: {% endif %}"
    processor.chat_template = template + processor.chat_template
    tiny_models.saved(tmp_path, model, processor)
    row = small("visualquality-r1")
    scorer: Any = load_scorer(row, tiny_models.here(tmp_path)).scorer
    (found,) = scorer.score_texts([scorer.prepare(IMAGES[0])], [["a cat"]])[0]
    tiny = (model, processor)
    with_id = written(tiny, IMAGES[:1], "Rate a cat.", 6, add_vision_id=True)
    assert found.answers[0].raw == with_id != written(tiny, IMAGES[:1], "Rate a cat.", 6)


def test_a_checkpoint_that_is_no_decoder_and_a_row_at_odds_with_itself_are_refused(
    tmp_path: Path,
) -> None:
    with refusal("checkpoint_wrong_class"):
        load_scorer(
            small("unifiedreward"),
            tiny_models.here(tiny_models.saved(tmp_path, *tiny_models.blip_vqa())),
        )
    odd = ROWS["unifiedreward"].model_copy(update={"reads_prompt": False})
    with refusal("bad_scorer_row", kind=PlatformError):
        load_scorer(odd, Runtime())


def test_two_images_need_two_places(tmp_path: Path) -> None:
    row = small("unifiedreward-pair")
    row.options["reading"] = {"text_format": "{image} {prompt}"}
    scorer: Any = load_scorer(
        row, tiny_models.here(tiny_models.saved(tmp_path, *tiny_models.qwen2_5_vl()))
    ).scorer
    with refusal("checkpoint_wrong_class", "1", "2"):
        scorer.compare(["a cat"], IMAGES[:1], IMAGES[1:])
