"""One contract for every family: a row over small random weights scores, or says why it does not.

That a score is the right one is tested beside each family, against the library's own model or the
written formula. Judges behind an API are held to the same in `test_endpoint_judge.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.answering import pixel_hash
from evaluator.scorers.questions.files import write_records
from evaluator.scorers.registry import (
    Checkpoint,
    Loaded,
    Runtime,
    ScorerRow,
    load_rows,
    load_scorer,
)
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers import tiny_models as tiny
from tests.evaluator.scorers.common import hf, refusal, torch
from tests.evaluator.scorers.questions.fakes import yes_no
from tests.evaluator.scorers.tiny_rewards import (
    hpsv3_folders,
    hpsv3_model,
    mps_folders,
    mps_state,
)

IMAGES = tiny.wide_pictures(2)
PROMPTS = ("a red cat on the mat", "two dogs")
ASKED = [PROMPTS, PROMPTS[:1]]
"""Prompts of each image."""
QUESTIONS = [
    yes_no(prompt, str(n), f"{what}?", *parents, element=what, type="Style", entailment=0.9)
    for prompt in PROMPTS
    for n, (what, parents) in enumerate({"a cat": (), "two dogs": ("0",)}.items())
]


@dataclass(frozen=True)
class Small:
    """A row of the table, and the small weights that stand for its own."""

    name: str
    folders: Callable[[Path], dict[str, Path]]
    options: dict[str, Any] = field(default_factory=dict)  # beside those of the row
    made_up: bool = False  # whether its checkpoints are others than the row's
    cut: bool = False  # whether its instruction alone is longer than the small model reads

    def row(self) -> ScorerRow:
        """The row with weights of a folder, in float32."""
        row = load_rows()[self.name]
        changes = {"options": row.options | self.options, "dtype": "float32"}
        if self.made_up:
            changes["checkpoints"] = {"model": Checkpoint(id="nobody/tiny")}
        return row.model_copy(update=changes)

    def runtime(self, folder: Path, **more: Any) -> Runtime:
        """Its folders, and questions about every prompt."""
        questions = folder / "questions.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        write_records(questions, QUESTIONS)
        return Runtime(
            folders=self.folders(folder),
            questions=questions,
            allow_pickle=True,
            offline=True,
            **more,
        )


def of_model(maker: Callable[[], tiny.Tiny]) -> Callable[[Path], dict[str, Path]]:
    """The folder of a model with its processor."""
    return lambda folder: {"model": tiny.saved(folder / "model", *maker())}


def of_clip(folder: Path) -> dict[str, Path]:
    return {"model": tiny.save_clip(folder / "clip")}


def of_blip2(folder: Path) -> dict[str, Path]:
    words = tiny.word_tokenizer()
    return {"model": tiny.saved(folder, tiny.blip2_matching(words), words, tiny.square())}


def of_fga(folder: Path) -> dict[str, Path]:
    words = tiny.word_tokenizer()
    model = tiny.without_key_biases(tiny.blip2_matching(words, 48))
    torch.save({"model": tiny.to_lavis(model)}, folder / "model.pth")
    return {"model": folder / "model.pth", "tokenizer": tiny.saved(folder / "words", words)}


def of_image_reward(folder: Path) -> dict[str, Path]:
    words = tiny.word_tokenizer()
    state = tiny.reward_state(tiny.reward_model(len(words) + 2))
    torch.save(state, folder / "model.pt")
    return {"model": folder / "model.pt", "tokenizer": tiny.saved(folder / "words", words)}


def of_mps(folder: Path) -> dict[str, Path]:
    base = tiny.save_clip(folder / "base")
    return mps_folders(folder, base, mps_state(base))


def of_hpsv3(folder: Path) -> dict[str, Path]:
    return hpsv3_folders(folder, hpsv3_model())


def of_captions(folder: Path) -> dict[str, Path]:
    lines = [{"image": pixel_hash(image), "caption": "A cat."} for image in IMAGES]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return {
        "captions": folder / "captions.jsonl",
        "judge": tiny.save_language_model(folder / "llm"),
    }


def of_table(folder: Path) -> dict[str, Path]:
    rows = [f"{pixel_hash(image)},{prompt},0.5" for image in IMAGES for prompt in PROMPTS]
    (folder / "scores.csv").write_text("\n".join(["image,prompt,score", *rows]))
    return {"table": folder / "scores.csv"}


SHORT, ALLOWED = {"max_new_tokens": 4}, {"max_new_tokens": 16}
RATE = {"instruction": "Rate {prompt}."}
OF_BASE = {"vision_heads": 4}
SMALL = (
    Small("clipscore-hessel", of_clip),
    Small("blip2-itm", of_blip2),
    Small("blip2-itc", of_blip2),
    Small("fga-blip2", of_fga, OF_BASE | {"qformer_heads": 4}),
    Small("imagereward", of_image_reward, OF_BASE | {"text_heads": 4}),
    Small("cyclereward-combo", of_image_reward, OF_BASE | {"text_heads": 4}),
    Small("mps", of_mps),
    Small("hpsv3", of_hpsv3, {"pixels": 4 * 28**2}),
    Small("vqascore-any", of_model(tiny.qwen2_vl)),
    Small("vqascore-t5", tiny.clip_flant5_folders),
    Small("deqa-score", of_model(tiny.qwen2_vl), made_up=True),
    Small("dsg-blip", of_model(tiny.blip_vqa)),
    Small("bvqa", of_model(tiny.blip_vqa), {"reading": {}}),
    Small("pn-vqa-qwen2vl", of_model(tiny.qwen2_vl)),
    Small("gecko-qwen25vl", of_model(tiny.qwen2_vl)),
    Small("vq2-blip2", of_model(tiny.blip2_t5), {"reading": {}}),
    Small("softtifa-am", of_model(tiny.qwen3_vl)),
    Small("evalalign-alignment", of_model(tiny.llava), SHORT, made_up=True),
    Small("unigenbench-qwen-72b", of_model(tiny.qwen2_5_vl), SHORT, made_up=True, cut=True),
    Small("evalalign-faithfulness", of_model(tiny.llava), SHORT, made_up=True),
    Small("viescore-o", of_model(tiny.qwen2_vl), ALLOWED),
    Small("unifiedreward", of_model(tiny.qwen2_5_vl), SHORT | RATE, made_up=True),
    Small("llmscore-over", of_captions, ALLOWED),
    Small("score-table", of_table),
)
RECORDED = {
    "vqascore-t5": {"question": "Does this"},
    "dsg-blip": {"questions": "questions.jsonl sha256:", "checkpoint": ""},
    "viescore-o": {"wording": ""},
    "unifiedreward": {"wording": ""},
    "evalalign-faithfulness": {"wording": ""},
    "llmscore-over": {"captions": "captions.jsonl sha256:"},
}
"""What the record of a run says of a row, beside what is said of every model."""
ELSEWHERE = {"endpoint_judge", "endpoint_comparison", "written_comparison"}
"""Families that need a server, and one that scores no pair."""
BY_NAME = {small.name: small for small in SMALL}


def test_every_family_is_held_to_the_contract() -> None:
    rows = load_rows()
    assert {rows[name].family for name in BY_NAME} | ELSEWHERE == {r.family for r in rows.values()}


@dataclass(frozen=True)
class Scored:
    """A small row that was loaded, and what it said of every image with its prompts."""

    row: ScorerRow
    loaded: Loaded
    images: list[Any]  # prepared
    verdicts: list[list[Verdict]]

    @property
    def scorer(self) -> Any:
        return self.loaded.scorer


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scored]:
    """Load a small row by its name, and have it score, once."""

    @cache
    def of_name(name: str) -> Scored:
        row = BY_NAME[name].row()
        loaded = load_scorer(row, BY_NAME[name].runtime(tmp_path_factory.mktemp(name)))
        scorer: Any = loaded.scorer
        images = [scorer.prepare(image) for image in IMAGES]
        return Scored(row, loaded, images, verdicts(scorer, images, ASKED))

    return of_name


def verdicts(scorer: Any, images: list[Any], asked: Sequence[Sequence[str]]) -> list[list[Verdict]]:
    """Of each image with each of its prompts, by whatever the scorer can be asked."""
    if hasattr(scorer, "score_texts"):
        return [[Verdict.of(one) for one in its] for its in scorer.score_texts(images, asked)]
    pairs = [(image, text) for image, texts in zip(images, asked, strict=True) for text in texts]
    scores = iter(scorer.score([image for image, _ in pairs], [text for _, text in pairs]))
    return [[Verdict.of(next(scores)) for _ in texts] for texts in asked]


def assert_alike(found: list[Verdict], expected: list[Verdict]) -> None:
    """The same replies, and scores that differ by rounding at most."""
    scores = [verdict.score for verdict in expected]
    assert [verdict.score for verdict in found] == pytest.approx(
        scores, rel=1e-4, abs=1e-5, nan_ok=True
    )
    raw = [[answer.raw for answer in verdict.answers] for verdict in found]
    assert raw == [[answer.raw for answer in verdict.answers] for verdict in expected]


QUICK = {
    "clipscore-hessel", "blip2-itm", "imagereward", "vqascore-any", "bvqa", "softtifa-am",
    "viescore-o", "score-table",
}  # fmt: skip
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in BY_NAME]


@pytest.mark.first_quick
@pytest.mark.parametrize("name", NAMES)
def test_a_pair_has_the_same_score_alone_again_and_with_others(
    scored: Callable[[str], Scored], name: str
) -> None:
    known = scored(name)
    scorer, images = known.scorer, known.images
    turned = verdicts(scorer, images[::-1], ASKED[::-1])[::-1]
    for image, prompts, its, others in zip(images, ASKED, known.verdicts, turned, strict=True):
        alone = [verdicts(scorer, [image], [[prompt]])[0][0] for prompt in prompts]
        assert_alike(alone, its)
        assert_alike(others, its)
    again = verdicts(scorer, images[:1], [PROMPTS[:1]])
    assert repr(again) == repr(verdicts(scorer, images[:1], [PROMPTS[:1]])), "nothing is drawn"
    assert verdicts(scorer, [], []) == []
    assert verdicts(scorer, images, [[], []]) == [[], []]
    assert scorer.score([], []) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_score_lies_in_the_range_of_its_row_or_its_absence_has_a_reason(
    scored: Callable[[str], Scored], name: str
) -> None:
    known = scored(name)
    for verdict in (verdict for its in known.verdicts for verdict in its):
        if math.isnan(verdict.score):
            assert verdict.problem
            assert verdict.answers and all(answer.raw for answer in verdict.answers)
            continue
        assert not verdict.problem
        low, high = known.row.low, known.row.high
        assert low is None or low - 1e-6 <= verdict.score
        assert high is None or verdict.score <= high + 1e-6
    if hasattr(known.scorer, "truncated"):
        assert known.scorer.truncated(PROMPTS) == [BY_NAME[name].cut] * 2
    environment = known.loaded.environment
    assert all(isinstance(value, str) for value in environment.values())
    for key, begins in RECORDED.get(name, {}).items():
        assert environment[key].startswith(begins)


OF_ANOTHER_KIND = (
    "clipscore-hessel", "blip2-itm", "blip2-itc", "vqascore-any", "deqa-score", "dsg-blip", "bvqa",
    "softtifa-am", "unigenbench-qwen-72b", "evalalign-faithfulness", "viescore-o", "unifiedreward",
)  # fmt: skip


@pytest.mark.first_quick
@pytest.mark.parametrize("name", OF_ANOTHER_KIND)
def test_weights_of_another_kind_of_model_are_refused(tmp_path: Path, name: str) -> None:
    small = Small(
        name,
        lambda folder: {"model": tiny.saved(folder, hf.CLIPTextConfig())},
        made_up=BY_NAME[name].made_up,
    )
    with refusal("checkpoint_wrong_class"):
        load_scorer(small.row(), small.runtime(tmp_path))
