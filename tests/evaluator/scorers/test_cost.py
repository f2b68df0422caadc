"""What a metric costs: work from counts, rates from data sheets or measured, every end explained."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.cost import Basis, Machine, estimates
from evaluator.scorers.cost_measuring import measured
from evaluator.scorers.cost_rates import (
    PEAK_SHARE,
    MeasuredRate,
    MeasuredRates,
    find_gpu,
    gpus,
    published,
    read_rates,
    write_rates,
)
from evaluator.scorers.cost_work import towers, work_of
from evaluator.scorers.registry import load_rows
from evaluator.scorers.runtime import Runtime
from evaluator.submission.checking.projection import Size
from tests.evaluator.scorers.tiny_dual import save_clip

pytestmark = pytest.mark.slow

ROWS = load_rows()
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SIZE = Size((100, 100), (20, 20), (200, 200), elements=False, small=False, from_card=True)
A100 = Machine(find_gpu("a100"))


def rate(row: str = "pickscore", at: datetime = NOW, device: str = "cuda (a GPU)") -> MeasuredRate:
    return MeasuredRate(
        row=row,
        device=device,
        dtype="float32",
        image_s=(0.5, 1.0),
        text_s=(0.1, 0.2),
        images=16,
        sides=(512, 1024),
        measured_at=at,
    )


def test_a_dual_encoder_sees_each_image_and_each_text_once() -> None:
    known = towers()["openai/clip-vit-large-patch14"]
    work = work_of(ROWS["clipscore-tm"], SIZE, ROWS)
    assert work is not None
    wanted = 100 * known.image + 20 * known.text
    assert work.flops == (wanted, wanted)
    assert work.tokens == (0.0, 0.0)


def test_towers_add_up_to_what_a_pair_costs_and_are_of_rows_that_there_are() -> None:
    used = {r.checkpoints["model"].id: r for r in ROWS.values() if r.family == "dual_encoder"}
    assert set(towers()) <= set(used)
    for name, known in towers().items():
        if (declared := used[name].flops_per_pair) is not None:
            assert known.image + known.text == pytest.approx(declared, rel=0.01), name


def test_towers_are_what_open_clip_counts() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    open_clip = import_module("open_clip")
    config = open_clip.get_model_config("ViT-B-32")
    with torch.device("meta"), torch.no_grad():
        model = open_clip.CLIP(**config).eval()
        image, text = torch.empty(1, 3, 224, 224), torch.zeros(1, 77, dtype=torch.long)
        found = []
        for encode, given in ((model.encode_image, image), (model.encode_text, text)):
            with FlopCounterMode(display=False) as counter:
                encode(given)
            found.append(counter.get_total_flops())
    known = towers()["openai/clip-vit-base-patch32"]
    assert found == [known.image, known.text]


@pytest.mark.parametrize("name", ["blip2-itm", "imagereward", "vqascore-t5", "crocscore"])
def test_a_joint_model_goes_over_each_image_at_least_and_each_pair_at_most(name: str) -> None:
    row = ROWS[name]
    work = work_of(row, SIZE, ROWS)
    assert work is not None
    assert row.flops_per_pair is not None
    assert work.flops == (100 * row.flops_per_pair, 200 * row.flops_per_pair)


def test_what_asks_questions_is_costed_by_a_row_of_the_same_checkpoint() -> None:
    asked = work_of(ROWS["tifa-llava15"], SIZE, ROWS)
    alone = ROWS["vqascore-llava15-7b"].flops_per_pair
    assert asked is not None
    assert alone is not None
    assert list(asked.flops) == pytest.approx([100 * alone, 200 * 7.6 * alone])
    assert list(asked.tokens) == pytest.approx([200 * 7.6, 200 * 7.6 * 16])


@pytest.mark.parametrize("name", ["score-table", "tifa-table", "vqascore-any", "vq2-blip2"])
def test_what_nobody_counted_has_no_figure(name: str) -> None:
    assert work_of(ROWS[name], SIZE, ROWS) is None
    assert estimates(ROWS[name], SIZE, A100, ROWS) == ()


def everything() -> Iterator[tuple[str, str]]:
    for name in ROWS:
        for gpu in gpus():
            yield name, gpu


def test_every_figure_is_a_range_and_says_where_it_comes_from() -> None:
    for name, gpu in everything():
        for one in estimates(ROWS[name], SIZE, Machine(find_gpu(gpu)), ROWS):
            assert 0 < one.hours[0] < one.hours[1], (name, gpu, one)
            assert len(one.why) > 40


def test_an_estimate_lies_between_the_shares_of_the_peak() -> None:
    row = ROWS["vqascore-t5"]
    (found, _) = estimates(row, SIZE, A100, ROWS)
    assert row.flops_per_pair is not None
    assert found.basis is Basis.ESTIMATED
    fastest = 100 * row.flops_per_pair / (312e12 * PEAK_SHARE[1])
    slowest = 200 * row.flops_per_pair / (312e12 * PEAK_SHARE[0])
    assert found.hours[0] * 3600 == pytest.approx(fastest)
    assert slowest < found.hours[1] * 3600 < slowest + 1.0, "with the images read in between"


def test_weights_that_do_not_fit_have_no_estimate() -> None:
    small = Machine(find_gpu("t4"))
    found = {one.basis for one in estimates(ROWS["vqascore-t5"], SIZE, small, ROWS)}
    assert Basis.ESTIMATED not in found


def test_what_was_measured_goes_before_all_else_and_the_latest_counts(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "rates.json"
    known = read_rates(path).with_(rate(device="cpu (old)")).with_(rate(at=NOW.replace(year=2027)))
    write_rates(path, known)
    again = read_rates(path)
    assert again == known
    assert len(known.with_(rate(device="cpu (old)")).rates) == 2, "the same device once"
    found = estimates(ROWS["pickscore"], SIZE, Machine(find_gpu("a100"), measured=again), ROWS)
    assert [one.basis for one in found] == [Basis.MEASURED, Basis.ESTIMATED, Basis.PUBLISHED]
    # 100 images with a text each, and 20 texts once.
    assert list(found[0].hours) == pytest.approx([52 / 3600, 104 / 3600])
    assert "a GPU" in found[0].why


def test_a_damaged_file_of_rates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text("[1]")
    with pytest.raises(SubmitterError, match="no file of measured rates"):
        read_rates(tmp_path / "rates.json")


def test_an_unknown_gpu_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(SubmitterError) as caught:
        find_gpu("abacus")
    assert "a100" in caught.value.hint


def test_published_figures_are_of_rows_that_there_are() -> None:
    assert set(published()) <= set(ROWS)


def test_a_row_is_measured_with_its_own_weights(tmp_path: Path) -> None:
    folder = save_clip(tmp_path / "clip")
    runtime = Runtime(folders={"model": folder}, offline=True)
    found = measured(ROWS["clipscore-hessel"], runtime, NOW, images=4)
    assert 0 < found.image_s[0] <= found.image_s[1] < 60
    assert 0 <= found.text_s[0] <= found.text_s[1] < 60
    assert found.device.startswith("cpu")
    assert found.dtype == "float32"
    assert MeasuredRates().with_(found).of("clipscore-hessel") == found


def test_a_metric_that_asks_questions_is_not_measured_without_them() -> None:
    with pytest.raises(SubmitterError, match="depends on its questions"):
        measured(ROWS["tifa-blip"], Runtime(), NOW)
