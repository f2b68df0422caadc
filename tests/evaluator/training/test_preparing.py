"""Data are cut by clusters, made into examples, and measured by the protocol of their benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.training.data import contrast_pairs
from evaluator.training.loop import RunOptions, run_record
from evaluator.training.preparing import folder_data, open_data, prepare
from evaluator.training.recipes.dual_encoder import DualEncoder
from tests.evaluator.training.demo_data import demo_croc, image_folder
from tests.kit.refusals import refused


@pytest.mark.parametrize("name", ["demo_croc", "demo_evalmuse"])
def test_both_parts_make_the_whole_and_share_no_cluster(name: str) -> None:
    whole = open_data(name, load_registry(), None)
    training, held_out = whole.split(0.2, seed=3)
    for side in ("clusters", "pair_ids"):
        one, other = (set(getattr(part.answers, side)) for part in (training, held_out))
        assert not one & other and one | other == set(getattr(whole.answers, side))
    assert len(held_out.answers.clusters) == round(0.2 * len(whole.answers.clusters))
    for part in (training, held_out):
        assert {pair.pair_id for pair in part.questions.pairs} == set(part.answers.pair_ids)
        assert {pair.image_id for pair in part.questions.pairs} == set(part.questions.images)
    assert whole.split(0.2, seed=3)[1].answers.clusters == held_out.answers.clusters
    assert whole.split(0.2, seed=4)[1].answers.clusters != held_out.answers.clusters
    fewer = whole.split(0.2, seed=3, most=2)[1].answers.clusters
    assert len(fewer) == 2 and set(fewer) < set(held_out.answers.clusters)


def test_what_is_held_out_is_measured_by_the_protocol_of_the_benchmark() -> None:
    registry = load_registry()
    part = open_data("demo_evalmuse", registry, None).split(0.1, seed=0)[1]
    brightness: list[float] = []

    def score(images: Sequence[Image.Image], prompts: Sequence[str]) -> list[float]:
        assert len(images) == len(prompts)
        found = [float(np.asarray(image).mean()) for image in images]
        brightness.extend(found)
        return found

    row = part.headline(part.evaluate(score))
    scores = dict(zip((p.pair_id for p in part.questions.pairs), brightness, strict=True))
    labels = dict(zip(part.answers.images["pair_id"], part.answers.images["label"], strict=True))  # type: ignore[attr-defined]
    assert row.n_items == len(labels)
    assert row.value == pytest.approx(
        _spearman([scores[one] for one in labels], list(labels.values()))
    )
    assert row.ci_low <= row.value <= row.ci_high


def _spearman(one: Sequence[float], other: Sequence[float]) -> float:
    def ranks(values: Sequence[float]) -> np.ndarray:
        found = np.asarray(values)
        return np.array([(found < v).sum() + ((found == v).sum() + 1) / 2 for v in found])

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def test_examples_of_the_training_part_are_guarded_and_counted() -> None:
    boards = ("demo_croc", "demo_gecko", "demo_ts2")
    registry = {name: board for name, board in load_registry().items() if name in boards}
    data = open_data("demo_croc", registry, None)
    found = prepare(DualEncoder(), data, registry, None, seed=0)
    compared = {one.name: one.dropped for one in found.comparisons}
    assert (
        compared["demo_croc (held out)"] == found.dropped["a prompt of demo_croc (held out)"] == 6
    )
    assert "demo_croc" not in compared and {"demo_ts2", "demo_gecko"} <= set(compared)
    assert found.trained_on == ("demo_croc",)
    del registry["demo_gecko"]
    wider = prepare(DualEncoder(), data, registry, None, seed=0, overlap=["demo_ts2"])
    assert "demo_ts2" not in {one.name for one in wider.comparisons}
    assert wider.trained_on == ("demo_croc", "demo_ts2")


@pytest.mark.slow
def test_what_a_board_leaves_is_trained_on_and_the_board_itself_is_held_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = load_registry()
    left = demo_croc(20)
    board = registry["demo_croc"]
    monkeypatch.setattr(board, "training", lambda _: (left.questions, left.answers), raising=False)
    assert open_data("demo_croc", registry, None).answers.clusters == left.answers.clusters
    with pytest.raises(SubmitterError) as error:  # here the board has all of it
        prepare(DualEncoder(), open_data("demo_croc", registry, None), registry, None, seed=0)
    assert error.value.code == "nothing_left" and "demo_croc (" in error.value.message


def test_a_folder_is_paired_by_chance_and_on_no_board(tmp_path: Path) -> None:
    prompts = [f"{n} red circles" for n in ("two", "three", "four", "five", "six")]
    data = folder_data(image_folder(tmp_path / "My Images", prompts))
    pairs = contrast_pairs(data)
    assert (data.name, data.origin) == ("my_images", "folder")
    assert len(pairs) == 2  # of five prompts, one is left over
    used = [text for pair in pairs for text in (pair.prompt, pair.contrast)]
    assert len(set(used)) == 4 and set(used) <= set(prompts)
    for pair in pairs:
        assert pair.original_images == (f"{prompts.index(pair.prompt)}.png",)
        assert pair.contrast_images == (f"{prompts.index(pair.contrast)}.png",)

    def knows(images: Sequence[Image.Image], texts: Sequence[str]) -> list[float]:
        said = {data.questions.images[f"{n}.png"](): p for n, p in enumerate(prompts)
                if f"{n}.png" in data.questions.images}  # fmt: skip
        own = {np.asarray(_opened(content)).tobytes(): p for content, p in said.items()}
        return [
            float(own[np.asarray(i).tobytes()] == t) for i, t in zip(images, texts, strict=True)
        ]

    assert data.headline(data.evaluate(knows)).value == 1.0


@pytest.mark.parametrize("held", [True, False], ids=["held out", "trained on"])
def test_a_replaced_image_makes_another_run(tmp_path: Path, held: bool) -> None:
    prompts = [f"{n} red circles" for n in ("two", "three", "four", "five", "six", "ten")]
    folder = image_folder(tmp_path / "images", prompts)
    recipe = DualEncoder(DualEncoder.settings_class())

    _, part = folder_data(folder).split(recipe.settings.held_out, seed=0)
    inside = {one.partition("@")[0] for one in part.questions.images}
    image = next(f"{n}.png" for n in range(6) if (f"{n}.png" in inside) is held)

    def record() -> dict[str, object]:
        made = prepare(recipe, folder_data(folder), {}, None, seed=0).prepared
        return run_record(recipe, made, RunOptions())

    before = record()
    Image.new("RGB", (8, 8), "pink").save(folder / image)
    after = record()
    assert {key for key, value in before.items() if after[key] != value} == {
        "held_out_images" if held else "data"
    }


def _opened(content: bytes) -> Image.Image:
    import io

    return Image.open(io.BytesIO(content)).convert("RGB")


@pytest.mark.parametrize(
    ("prompts", "code"), [(["one"], "too_little_data"), (["one", "two"], "too_little_data")]
)
def test_too_little_data_are_refused(prompts: list[str], code: str, tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "few", prompts)
    registry = load_registry()
    with refused(code):
        prepare(DualEncoder(), folder_data(folder), registry, None, seed=0)


@pytest.mark.parametrize(
    ("on", "code"), [("nowhere", "unknown_benchmark"), ("demo_gecko", "unfit_data")]
)
def test_data_that_are_not_there_or_do_not_fit_are_refused(on: str, code: str) -> None:
    registry = load_registry()
    with refused(code):
        prepare(DualEncoder(), open_data(on, registry, None), registry, None, seed=0)


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    with refused("no_prompts"):
        open_data(str(tmp_path), {}, None)


def test_a_missing_score_is_undefined_and_never_left_out() -> None:
    data = demo_croc()
    rows = data.evaluate(lambda images, prompts: [math.nan] * len(images))
    assert data.headline(rows).n_missing == len(data.questions.pairs)
