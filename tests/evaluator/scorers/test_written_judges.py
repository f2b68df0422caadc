"""Judges that write ratings or comparisons: what is read of their replies, and what never is."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import ValidationError

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import Reading, WrittenReply
from evaluator.scorers.models.judge_replies import LONGEST_KEPT
from evaluator.scorers.models.reply_text import read_flags
from evaluator.scorers.registry import Checkpoint, Runtime, ScorerRow, load_rows, load_scorer
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.scorers.questions.fakes import FakeWriter
from tests.evaluator.scorers.tiny_models import (
    blip_vqa,
    here,
    llava_onevision,
    picture,
    qwen2_5_vl,
    qwen3_vl,
    saved,
)

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


def read(name: str, reply: str, *, cut: bool = False) -> tuple[float, str]:
    """What the row of a name reads of a reply."""
    written, options = WrittenReply(reply, cut), options_of(name)
    if ROWS[name].family == "written_rating":
        found: tuple[float, str] = rating.rated(written, options)
    else:
        found = comparison.margin(written, options)
    return found


AXES = "Alignment Score (1-5): 2.694700002670288\nCoherence Score (1-5): 2.3\nStyle Score (1-5): 3"
DOCTOR = (
    "Semantic Alignment score: 0.5\nMisalignment Locations: none\nAesthetic score: 0.75\n"
    "Plausibility score: 1.0\nArtifact Locations: [1,2,3,4]\nOverall Impression score: 0.6"
)
SHARES = (
    "Alignment Score:\n Image 1: 0.75\n Image 2: 0.25\n\nCoherence Score:\n Image 1: 0.4\n"
    " Image 2: 0.6\n\nStyle Score:\n Image 1: 0.5\n Image 2: 0.509"
)

READ: list[tuple[str, str, float]] = [
    ("unifiedreward", "cat (object): 1\nred (colour): 0\nFinal Score: 3", 3),
    ("unifiedreward", "Final Score: 3.5.", 3.5),
    ("unifiedreward", "**Final Score:** 4/5", 4),
    ("unifiedreward", "final score : 2 out of 5", 2),
    ("unifiedreward", "- Final Score (out of 5): `2` (out of 5) stars", 2),
    ("unifiedreward", "Final Score: 3. All of the cats are red.", 3),
    ("unifiedreward2", '{"Alignment Score": 3, "Coherence Score": 2, "Style Score": 4}', 3),
    ("unifiedreward", "Final Score:\n4\n- 2 objects are missing", 4),
    ("unifiedreward", '```json\n{"Final Score": 4}\n```', 4),
    ("unifiedreward", "Final Score: 4. So the Final Score: 4.0", 4),
    ("unifiedreward", "<think>Final Score: 2</think>Final Score: 5", 5),
    ("unifiedreward", "it ends with the Final Score: as asked. Final Score: 1", 1),
    ("unifiedreward2", AXES, (2.694700002670288 + 2.3 + 3) / 3),
    ("unifiedreward2-alignment", AXES, 2.694700002670288),
    ("unifiedreward2", AXES.replace("\n", ", "), (2.694700002670288 + 2.3 + 3) / 3),
    (
        "unifiedreward2",
        f"**{AXES.replace(' (1-5)', '** (out of 5)')}".replace("\n", " | **"),
        7.994700002670288 / 3,
    ),
    ("unifiedreward2-coherence", AXES.replace(" (1-5)", ""), 2.3),
    ("unifiedreward2-style", AXES, 3),
    ("visualquality-r1", "<think>3 flaws, 10 strengths</think><answer> 3.75 </answer>", 3.75),
    ("visualquality-r1", "good</think><answer>The rating is 4.</answer>", 4),
    ("visualquality-r1-fast", "<answer>1</answer> <answer>1</answer>", 1),
    ("imagedoctor", f"<think>x</think><answer>{DOCTOR}</answer>", 0.4 + 0.075 + 0.1),
    ("imagedoctor-alignment", f"<answer>{DOCTOR}</answer>", 0.5),
    ("imagedoctor-aesthetic", f"<answer>{DOCTOR}</answer>", 0.75),
    ("imagedoctor-plausibility", f"<answer>{DOCTOR}</answer>", 1),
    ("imagedoctor-overall", f"<answer>{DOCTOR}</answer>", 0.6),
    ("unifiedreward-pair", "Image 1 is better.", 1),
    (
        "unifiedreward-pair",
        "The cat is red only there. So:\n**image 2**  is better than image 1.",
        -1,
    ),
    ("unifiedreward-pair", "Only it has a cat. Image 2 is better.", -1),
    ("unifiedreward-pair", "Both images are equally good.", 0),
    ("unifiedreward-pair", "Its cat is black. Therefore, Image 1 is better.", 1),
    ("unifiedreward-pair", "**In conclusion**, Image 2 is better.", -1),
    (
        "unifiedreward-pair",
        "Image 1 is better than Image 2 because it has the cat, and the hat.",
        1,
    ),
    ("unifiedreward-pair", "- Image 1 is better", 1),
    ("unifiedreward2-pair", SHARES.replace("\n Image", "\n- Image"), (0.5 - 0.2 - 0.009) / 3),
    ("unifiedreward2-pair", SHARES, (0.5 - 0.2 - 0.009) / 3),
    (
        "unifiedreward-think",
        "<think>Image 2 is better</think>\n<answer>Image 1 is better</answer>",
        1,
    ),
    ("unifiedreward-think-qwen3vl-8b", "<answer>\nImage 2 is better.\n</answer>", -1),
]


@pytest.mark.parametrize(("name", "reply", "wanted"), READ)
def test_what_a_reply_states_is_read(name: str, reply: str, wanted: float) -> None:
    score, problem = read(name, reply)
    assert not problem and score == pytest.approx(wanted, abs=1e-12)


def test_every_row_is_read_of_some_reply() -> None:
    asked = {name for name, _, _ in READ}
    alike = {name for name in (*RATINGS, *COMPARISONS) if "qwen3vl" in name or "v1.5" in name}
    assert set(RATINGS) | set(COMPARISONS) <= asked | alike


UNREAD: dict[str, list[str]] = {
    "unifiedreward": [
        "", " \n", "I cannot judge this.", "3", "The score is 4.", "Final Score: good",
        "Final Score: 0.5", "Final Score: 6", "Final Score: -1", "Final Score: 80%",
        "Final Score: 8/10", "Final Score: 4/10", "Final Score: 3-4", "Final Score: 3 to 4",
        "Final Score: 3 or 4", "Final Score: 4,5", "Final Score: 4.5.1", "Final Score: 4e0",
        "Final Score: **4**/10", "Final Score: **4** out of 10", "Final Score: 4 (out of 10)",
        "Final Score: 4 of 10", "Final Score: 4 points out of 10", "Final Score: 4 out of ten",
        "Final Score (0-10): 4", "Final Score (out of ten): 4", "Final Score: 3 and 4", "Final Score: 3 ~ 4",
        "Final Score: 3 … 4", "Final Score: 2 1/2", "Final Score: 2 ½", "Final Score: 3 : 4", "Final Score: 3. No, 4",
        "Final Score: 3, or rather (1-5): 4", "Final Score: 3, Or (4-5): 4", "Final Score: 3 Style (1-5): 4",
        "Semifinal Score: 3", "Semi-final Score: 3",
        "Final Score: ٣", "Final Score: 3٫5", "Final Score: ４", "Final Score: NaN", "Final Score: inf",
        "Final Score: 3\nFinal Score: 4", "Final Score 4", "<think>Final Score: 4",
        "</think><think>Final Score: 4", "Final Score: " + "9" * HUGE, "Final Score:" * (HUGE // 12),
        "x" * HUGE, "Final Score: " + "(" * HUGE, "<think>" * (HUGE // 7),
    ],
    "unifiedreward2": [
        "Alignment Score (1-5): 3\nCoherence Score (1-5): 3", AXES.replace("2.3", "0.3"),
        "Alignment Score (1-5): X\nCoherence Score (1-5): Y\nStyle Score (1-5): Z",
        f"{AXES}\n{AXES.replace('2.3', '2.4')}", f"Mis{AXES}",
    ],
    "visualquality-r1": [
        "3.75", "<answer>3.75", "3.75</answer>", "<answer></answer>", "<answer>good</answer>",
        "<answer>3 and then 4</answer>", "<answer>3</answer><answer>4</answer>",
        "<answer>A3</answer>", "<think><answer>3</answer>", "<answer>75 out of 100</answer>", "<answer>五</answer>",
        "<answer>4 out of ten</answer>", "<answer>**4**/10</answer>", "<answer>4 (out of 10)</answer>",
        "<answer>" * (HUGE // 8), "<answer>" * (HUGE // 16) + "</answer>" * (HUGE // 16),
    ],
    "imagedoctor": [
        DOCTOR, f"<answer>{DOCTOR.replace('0.5', '1.5')}</answer>",
        f"<answer>{DOCTOR.replace('Aesthetic score: 0.75', '')}</answer>",
    ],
    "unifiedreward-pair": [
        "", "Image 3 is better.", "A", "Image 1 is better. No, Image 2 is better.",
        "Both images are equally good, but Image 1 is better.", "Image 1", "图像一更好",
        "I would not say image 2 is better; image 1 is.", "It cannot be said that Image 1 is better.",
        "Image 1 is better aligned; overall choose Image 2", "Image 1 is better-looking.", "Image 1 is better?",
        "Image 1 is better because of its style, but choose the other.", "Image 1 is better, if one ignores the cat.",
        "Image 1 is better than Image 2; choose Image 2.", "Therefore Image 1 is better",
        ":Image 1 is better because " * (HUGE // 27) + ";",
        "Neither Image 1 is better nor the other.", "\n" * HUGE + "So Image 1 is better",
        "<think>Image 1 is better.", "Image " * (HUGE // 6),
    ],
    "unifiedreward-think": [
        "Image 1 is better", "<answer>Image 1 is better", "<answer>Both images are equally good</answer>",
        "<answer>Image 1 is better, I think</answer>", "<answer>1</answer>",
        "<answer>Image 1 is better</answer><answer>Image 2 is better</answer>",
        "<think><answer>Image 1 is better</answer>",
    ],
    "unifiedreward2-pair": [
        "", f"Mis{SHARES}", SHARES.replace("0.75", "0.85"), SHARES.replace("0.25", "-0.25"), SHARES[:60],
        SHARES.replace("Style", "Taste"), SHARES.replace("0.4\n", "X\n"), SHARES.replace("0.25", "0,25"),
        SHARES.replace("0.75", "75%"), SHARES + "\n" + SHARES.replace("0.75", "0.74"),
        "Alignment Score:\n Image 1: " + "9" * HUGE,
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reply"), [(name, reply) for name, its in UNREAD.items() for reply in its],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_what_cannot_be_read_has_a_reason_and_no_number(name: str, reply: str) -> None:
    score, problem = read(name, reply)
    assert math.isnan(score) and problem


@pytest.mark.parametrize(("name", "reply", "wanted"), READ[::6])
def test_a_reply_that_was_cut_is_not_read(name: str, reply: str, wanted: float) -> None:
    score, problem = read(name, reply, cut=True)
    assert math.isnan(score) and "cut" in problem


@pytest.mark.parametrize(
    ("text", "count", "wanted"),
    [
        ("[1, 0,1]", 3, (1.0, 0.0, 1.0)), (" [0]\n", 1, (0.0,)), ("[1,\n 1]", 2, (1.0, 1.0)),
        ("[1, 0]", 3, ()), ("[]", 0, ()), ("[1 0]", 2, ()), ("[1, 2]", 2, ()), ("1, 0", 2, ()),
        ("[1, 0", 2, ()), ("[True, 1]", 2, ()), ("[" + " " * HUGE, 1, ()), ("[0.5]", 1, ()),
        ("[1, ]", 2, ()), ("[１]", 1, ()),
    ],
)  # fmt: skip
def test_flags_are_zeros_and_ones_as_many_as_asked_for(
    text: str, count: int, wanted: tuple[float, ...]
) -> None:
    found = read_flags(text, count)
    assert found.numbers == wanted and bool(found.problem) == (not wanted)


# Against the authors' ways to read, on replies that are as they should be


def of_imagedoctor(reply: str) -> float:
    """The number after a label, clamped; a missing one counts 0."""
    block = re.findall(r"<answer>(.*?)</answer>", reply, re.DOTALL)[0]
    values = []
    for label in ("semantic alignment", "aesthetic", "plausibility"):
        said = re.search(rf"{label} score\s*:\s*([0-9.]+)", block, re.IGNORECASE)
        values.append(min(1.0, max(0.0, float(said[1]))) if said else 0.0)
    return sum(weight * value for weight, value in zip((0.8, 0.1, 0.1), values, strict=True))


@pytest.mark.parametrize("numbers", [(0, 0, 0), (1, 1, 1), (0.123, 0.9, 0.55), (0.7, 0, 1)])
def test_a_clean_reply_is_read_as_the_authors_do(numbers: tuple[float, ...]) -> None:
    a, b, c = numbers
    reply = (
        f"<think>...</think><answer>Semantic Alignment score: {a}\nMisalignment Locations: none\n"
        f"Aesthetic score: {b}\nPlausibility score: {c}\nOverall Impression score: 0.5</answer>"
    )
    assert read("imagedoctor", reply)[0] == pytest.approx(of_imagedoctor(reply), abs=1e-12)


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


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("unifiedreward", {"weights": {}}),
        ("unifiedreward", {"weights": {"": 1.0, "Final Score": 1.0}}),
        ("unifiedreward", {"low": 5.0}),
        ("unifiedreward", {"max_new_tokens": 10**6}),
        ("unifiedreward-pair", {"instruction": "Which?"}),
        ("unifiedreward-pair", {"choices": {}}),
        ("unifiedreward-pair", {"axes": ["Style"]}),
        ("unifiedreward-pair", {"form": "shares"}),
        ("unifiedreward-think", {"tag": ""}),
        ("unifiedreward2-pair", {"axes": []}),
        ("unifiedreward-pair", {"method": "score"}),
    ],
)
def test_rows_that_cannot_be_asked_are_refused(name: str, wrong: dict[str, Any]) -> None:
    family = rating if ROWS[name].family == "written_rating" else comparison
    with pytest.raises(ValidationError):
        family.Options.model_validate(ROWS[name].options | wrong)


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


IMAGES = [picture(1, 90, 60), picture(2, 56, 112)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("unifiedreward", qwen2_5_vl),
        ("unifiedreward2-qwen3vl-8b", qwen3_vl),
        ("unifiedreward-v1.5", llava_onevision),
    ],
)
def test_a_model_is_asked_by_its_template_and_writes_greedily(
    tmp_path: Path, name: str, kind: Any
) -> None:
    tiny = kind()
    row = small(name)
    written_by = row.options.get("reading", {}).get("text_format", "")
    loaded = load_scorer(row, here(saved(tmp_path, *tiny)))
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
        qwen2_5_vl,
        qwen3_vl,
        llava_onevision,
    ],
)
def test_two_images_are_read_together_and_their_order_counts(tmp_path: Path, kind: Any) -> None:
    tiny = kind()
    row = small("unifiedreward-pair", 12)
    scorer: Any = load_scorer(row, here(saved(tmp_path, *tiny))).scorer
    a, b = IMAGES
    found = scorer.compare(["a cat", "a cat", "a dog"], [a, b, a], [b, a, b])
    asked = [("a cat", IMAGES), ("a cat", IMAGES[::-1]), ("a dog", IMAGES)]
    for verdict, (prompt, images) in zip(found, asked, strict=True):
        assert verdict.answers[0].raw == written(tiny, images, f"Rate {prompt}.", 12)
    assert found[0].answers[0].raw != found[1].answers[0].raw


def test_images_are_resized_and_templates_told_what_a_row_says(tmp_path: Path) -> None:
    reading = Reading(**ROWS["imagedoctor"].options["reading"])
    assert [reading.resized(picture(0, *size)).size for size in ((768, 512), (100, 100))] == [
        (627, 418), (512, 512),
    ]  # fmt: skip
    model, processor = qwen2_5_vl()
    template = "{% if add_vision_id %}Picture 1: {% endif %}"
    processor.chat_template = template + processor.chat_template
    saved(tmp_path, model, processor)
    row = small("visualquality-r1")
    scorer: Any = load_scorer(row, here(tmp_path)).scorer
    (found,) = scorer.score_texts([scorer.prepare(IMAGES[0])], [["a cat"]])[0]
    tiny = (model, processor)
    with_id = written(tiny, IMAGES[:1], "Rate a cat.", 6, add_vision_id=True)
    assert found.answers[0].raw == with_id != written(tiny, IMAGES[:1], "Rate a cat.", 6)


def test_a_checkpoint_that_is_no_decoder_and_a_row_at_odds_with_itself_are_refused(
    tmp_path: Path,
) -> None:
    with refusal("checkpoint_wrong_class"):
        load_scorer(small("unifiedreward"), here(saved(tmp_path, *blip_vqa())))
    odd = ROWS["unifiedreward"].model_copy(update={"reads_prompt": False})
    with refusal("bad_scorer_row", kind=PlatformError):
        load_scorer(odd, Runtime())


def test_two_images_need_two_places(tmp_path: Path) -> None:
    row = small("unifiedreward-pair")
    row.options["reading"] = {"text_format": "{image} {prompt}"}
    scorer: Any = load_scorer(row, here(saved(tmp_path, *qwen2_5_vl()))).scorer
    with refusal("checkpoint_wrong_class", "1", "2"):
        scorer.compare(["a cat"], IMAGES[:1], IMAGES[1:])
