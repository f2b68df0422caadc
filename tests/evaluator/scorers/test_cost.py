"""What a metric costs: work from counts, rates from data sheets or measured, every end explained."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.cost import (
    PEAK_SHARE,
    Basis,
    Machine,
    MeasuredRate,
    MeasuredRates,
    estimates,
    find_gpu,
    gpus,
    published,
    read_rates,
    towers,
    work_of,
    write_rates,
)
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
    return work_of(ROWS[name], SIZE, ROWS)


def figures(name: str, gpu: str = "a100", rates: MeasuredRates | None = None) -> Any:
    machine = Machine(find_gpu(gpu)) if rates is None else Machine(find_gpu(gpu), measured=rates)
    return estimates(ROWS[name], SIZE, machine, ROWS)


def rate(at: datetime = NOW, device: str = "cuda (a GPU)") -> MeasuredRate:
    return MeasuredRate(
        row="pickscore", device=device, dtype="float32", image_s=(0.5, 1.0), text_s=(0.1, 0.2),
        images=16, sides=(512, 1024), measured_at=at,
    )  # fmt: skip


def test_a_dual_encoder_sees_each_image_and_each_text_once() -> None:
    known, found = towers()["openai/clip-vit-large-patch14"], work("clipscore-tm")
    wanted = 100 * known.image + 20 * known.text
    assert (found.flops, found.tokens) == ((wanted, wanted), (0.0, 0.0))


def test_figures_are_of_rows_that_there_are_and_towers_add_up_to_what_a_pair_costs() -> None:
    assert set(published()) <= set(ROWS)
    used = {r.checkpoints["model"].id: r for r in ROWS.values() if r.family == "dual_encoder"}
    assert set(towers()) <= set(used)
    for name, known in towers().items():
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
    known = towers()["openai/clip-vit-base-patch32"]
    assert found == [known.image, known.text]


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
        for gpu in gpus():
            for one in figures(name, gpu):
                assert 0 < one.hours[0] < one.hours[1], (name, gpu, one)
                assert len(one.why) > 40


def test_an_estimate_lies_between_the_shares_of_the_peak_if_the_weights_fit() -> None:
    (found, _), flops = figures("vqascore-t5"), ROWS["vqascore-t5"].flops_per_pair or 0
    assert found.basis is Basis.ESTIMATED
    assert found.hours[0] * 3600 == pytest.approx(100 * flops / (312e12 * PEAK_SHARE[1]))
    slowest = 200 * flops / (312e12 * PEAK_SHARE[0])
    assert slowest < found.hours[1] * 3600 < slowest + 1.0  # with the images read in between
    assert Basis.ESTIMATED not in {one.basis for one in figures("vqascore-t5", "t4")}
    with refusal("unknown_gpu", "a100"):
        find_gpu("abacus")


def test_what_was_measured_goes_before_all_else_and_the_latest_counts(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "rates.json"
    known = read_rates(path).with_(rate(device="cpu (old)")).with_(rate(NOW.replace(year=2027)))
    write_rates(path, known)
    assert read_rates(path) == known
    assert len(known.with_(rate(device="cpu (old)")).rates) == 2  # the same device once
    found = figures("pickscore", rates=known)
    assert [one.basis for one in found] == [Basis.MEASURED, Basis.ESTIMATED, Basis.PUBLISHED]
    # 100 images with a text each, and 20 texts once.
    assert list(found[0].hours) == pytest.approx([52 / 3600, 104 / 3600])
    assert "a GPU" in found[0].why
    path.write_text("[1]")
    with refusal("bad_rates", "rates.json"):
        read_rates(path)


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
    assert MeasuredRates().with_(found).of("clipscore-hessel") == found
    with refusal("not_measurable", "questions"):
        measured(ROWS["tifa-blip"], Runtime(), NOW)
