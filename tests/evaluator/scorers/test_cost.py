"""What a metric costs: work from counts, rates from data sheets or measured, every end explained."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers import cost
from evaluator.scorers.cost_measuring import measured
from evaluator.scorers.registry import Runtime, load_rows
from evaluator.scoring.asking import Size
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.scorers.tiny_models import here, save_clip

pytestmark = pytest.mark.slow

open_clip = later("open_clip")

ROWS = load_rows()
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SIZE = Size((100, 100), (20, 20), (200, 200), elements=False, small=False, from_card=True)


def work(name: str) -> Any:
    return cost.work_of(ROWS[name], SIZE, ROWS)


def figures(name: str, gpu: str = "a100", rates: cost.MeasuredRates | None = None) -> Any:
    machine = (
        cost.Machine(cost.find_gpu(gpu))
        if rates is None
        else cost.Machine(cost.find_gpu(gpu), measured=rates)
    )
    return cost.estimates(ROWS[name], SIZE, machine, ROWS)


def rate(at: datetime = NOW, device: str = "cuda (a GPU)") -> cost.MeasuredRate:
    return cost.MeasuredRate(
        row="pickscore", device=device, dtype="float32", image_s=(0.5, 1.0), text_s=(0.1, 0.2),
        images=16, sides=(512, 1024), measured_at=at,
    )  # fmt: skip


def test_a_dual_encoder_sees_each_image_and_each_text_once() -> None:
    known, found = cost.towers()["openai/clip-vit-large-patch14"], work("clipscore-tm")
    wanted = 100 * known.image + 20 * known.text
    assert (found.flops, found.tokens) == ((wanted, wanted), (0.0, 0.0))


def test_figures_are_of_rows_that_there_are_and_towers_add_up_to_what_a_pair_costs() -> None:
    assert set(cost.published()) <= set(ROWS)
    used = {r.checkpoints["model"].id: r for r in ROWS.values() if r.family == "dual_encoder"}
    assert set(cost.towers()) <= set(used)
    for name, known in cost.towers().items():
        if (declared := used[name].flops_per_pair) is not None:
            assert known.image + known.text == pytest.approx(declared, rel=0.01), name


def test_towers_are_what_open_clip_counts() -> None:
    counting = later("torch.utils.flop_counter").FlopCounterMode
    with torch.device("meta"), torch.no_grad():
        model = open_clip.CLIP(**open_clip.get_model_config("ViT-B-32")).eval()
        image, text = torch.empty(1, 3, 224, 224), torch.zeros(1, 77, dtype=torch.long)
        found = []
        for encode, given in ((model.encode_image, image), (model.encode_text, text)):
            with counting(display=False) as counter:
                encode(given)
            found.append(counter.get_total_flops())
    known = cost.towers()["openai/clip-vit-base-patch32"]
    assert found == [known.image, known.text]


@dataclass(frozen=True)
class Stack:
    """Layers of a transformer: width, layers, attention width, key width, MLP width, its matrices."""

    width: int
    layers: int
    attention: int
    keys: int
    mlp: int
    matrices: int = 3  # of a gated MLP; 2 of a plain one

    def flops(self, n: int) -> float:
        """Of n tokens."""
        linear = (
            2 * self.width * (self.attention + self.keys) + self.matrices * self.width * self.mlp
        )
        return self.layers * (2.0 * n * linear + 4.0 * n * n * self.attention)


SIGLIP = Stack(1152, 27, 1152, 1152, 4304, 2)
VIT_G = Stack(1408, 39, 1408, 1408, 6144, 2)
ASKED = 45
"""Tokens of a question with its prompt, about."""
# Vision of an image of 1,024 pixels, then language; tokens and size of the vocabulary.
JOINT = {
    "vqascore-qwen3-vl-8b": (
        [(SIGLIP, 4096, 1), (Stack(4096, 36, 4096, 1024, 12288), 1024 + ASKED, 1)], 151_936
    ),
    "vqascore-gemma-3-4b": (
        [(SIGLIP, 4096, 1), (Stack(2560, 34, 2048, 1024, 10240), 256 + ASKED, 1)], 262_208
    ),
    "vqascore-paligemma-3b": (
        [(SIGLIP, 1024, 1), (Stack(2048, 18, 2048, 256, 16384), 1024 + ASKED, 1)], 257_216
    ),
    "vqascore-internvl3-8b": (  # nine tiles and the whole image
        [(Stack(1024, 24, 1024, 1024, 4096, 2), 1025, 10),
         (Stack(3584, 28, 3584, 512, 18944), 2560 + ASKED, 1)], 151_674,
    ),
    "vqascore-instructblip": ([(VIT_G, 257, 1), (Stack(4096, 24, 4096, 4096, 10240), 77, 1)], 32_128),
    "vqascore-instructblip-xl": (
        [(VIT_G, 257, 1), (Stack(2048, 24, 2048, 2048, 5120), 77, 1)], 32_128
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(JOINT))
def test_what_a_pair_costs_is_what_the_layers_of_its_architecture_multiply(name: str) -> None:
    stacks, words = JOINT[name]
    layers = sum(times * stack.flops(n) for stack, n, times in stacks)
    head = 2.0 * words * stacks[-1][0].width
    # What is not in it: a Q-Former, and cross-attention of the two tokens of an answer.
    assert ROWS[name].flops_per_pair == pytest.approx(layers + head, rel=0.1)


def test_every_dual_encoder_and_every_question_about_the_whole_prompt_is_counted() -> None:
    whole = ("dual_encoder", "vlm_likelihood", "cross_encoder", "image_reward", "fga_blip2")
    lacking = {r.name for r in ROWS.values() if r.family in whole and r.flops_per_pair is None}
    assert lacking == {"vqascore-any"}  # it has no checkpoint of its own


@pytest.mark.parametrize("name", ["blip2-itm", "imagereward", "vqascore-t5", "crocscore"])
def test_a_joint_model_goes_over_each_image_at_least_and_each_pair_at_most(name: str) -> None:
    flops = ROWS[name].flops_per_pair or 0
    assert work(name).flops == (100 * flops, 200 * flops)


def test_what_asks_questions_is_costed_by_a_row_of_the_same_checkpoint() -> None:
    asked, alone = work("tifa-llava15"), ROWS["vqascore-llava15-7b"].flops_per_pair or 0
    assert list(asked.flops) == pytest.approx([100 * alone, 200 * 7.6 * alone])
    assert list(asked.tokens) == pytest.approx([200 * 7.6, 200 * 7.6 * 16])


@pytest.mark.parametrize("name", ["score-table", "tifa-table", "vqascore-any", "vq2-blip2"])
def test_what_nobody_counted_has_no_figure(name: str) -> None:
    assert (work(name), figures(name)) == (None, ())


def test_every_figure_is_a_range_and_says_where_it_comes_from() -> None:
    for name in ROWS:
        for gpu in cost.gpus():
            for one in figures(name, gpu):
                assert 0 < one.hours[0] < one.hours[1], (name, gpu, one)
                assert len(one.why) > 40


def test_an_estimate_lies_between_the_shares_of_the_peak_if_the_weights_fit() -> None:
    (found, _), flops = figures("vqascore-t5"), ROWS["vqascore-t5"].flops_per_pair or 0
    assert found.basis is cost.Basis.ESTIMATED
    assert found.hours[0] * 3600 == pytest.approx(100 * flops / (312e12 * cost.PEAK_SHARE[1]))
    slowest = 200 * flops / (312e12 * cost.PEAK_SHARE[0])
    assert slowest < found.hours[1] * 3600 < slowest + 1.0  # with the images read in between
    assert cost.Basis.ESTIMATED not in {one.basis for one in figures("vqascore-t5", "t4")}
    with refusal("unknown_gpu", "a100"):
        cost.find_gpu("abacus")


def test_what_was_measured_goes_before_all_else_and_the_latest_counts(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "rates.json"
    known = (
        cost.read_rates(path).with_(rate(device="cpu (old)")).with_(rate(NOW.replace(year=2027)))
    )
    cost.write_rates(path, known)
    assert cost.read_rates(path) == known
    assert len(known.with_(rate(device="cpu (old)")).rates) == 2  # the same device once
    found = figures("pickscore", rates=known)
    assert [one.basis for one in found] == [
        cost.Basis.MEASURED,
        cost.Basis.ESTIMATED,
        cost.Basis.PUBLISHED,
    ]
    # 100 images with a text each, and 20 texts once.
    assert list(found[0].hours) == pytest.approx([52 / 3600, 104 / 3600])
    assert "a GPU" in found[0].why
    path.write_text("[1]")
    with refusal("bad_rates", "rates.json"):
        cost.read_rates(path)


def test_a_row_is_measured_with_its_own_weights_and_not_without_its_questions(
    tmp_path: Path,
) -> None:
    found = measured(
        ROWS["clipscore-hessel"], here(save_clip(tmp_path), offline=True), NOW, images=4
    )
    for low, high in (found.image_s, found.text_s):
        assert 0 <= low <= high < 60
    assert found.image_s[0] > 0
    assert (found.device[:3], found.dtype) == ("cpu", "float32")
    assert cost.MeasuredRates().with_(found).of("clipscore-hessel") == found
    with refusal("not_measurable", "questions"):
        measured(ROWS["tifa-blip"], Runtime(), NOW)
