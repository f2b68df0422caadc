"""Dual encoders of `transformers`: every formula against the library's own model."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.family import Loaded
from evaluator.scorers.registry import load_rows
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_dual import (
    LONG,
    LONG_FROM_THE_START,
    PROMPTS,
    here,
    pictures,
    row,
    save_align,
    save_clip,
    save_siglip,
)

if TYPE_CHECKING:
    import torch

IMAGES = pictures(3)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def negative_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("negative"), negative=True)


@pytest.fixture(scope="module")
def align(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_align(tmp_path_factory.mktemp("align"))


@pytest.fixture(scope="module")
def siglip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_siglip(tmp_path_factory.mktemp("siglip"))


def load(folder: Path, **options: Any) -> Loaded:
    from evaluator.scorers.families.dual_encoder import FAMILY

    tiny = row(**options)
    return FAMILY.load(tiny, FAMILY.check(tiny), here(folder))


def scores(loaded: Loaded, images: Sequence[Image.Image], prompts: Sequence[str]) -> NDArray[Any]:
    prepared = [loaded.scorer.prepare(image) for image in images]  # type: ignore[attr-defined]
    return np.array(loaded.scorer.score(prepared, prompts))


def by_hand(kind: Any, folder: Path, prompts: Sequence[str], **text: Any) -> Any:
    """The library's own forward pass over IMAGES and prompts."""
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, SiglipModel

    model = kind.from_pretrained(folder).eval()
    pixels = AutoImageProcessor.from_pretrained(folder, backend="pil")(IMAGES, return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folder)(list(prompts), return_tensors="pt", **text)
    if kind is SiglipModel:
        tokens.pop("attention_mask", None)
    with torch.no_grad():
        return model, model(**tokens, pixel_values=pixels["pixel_values"])


def cosines(image_embeds: torch.Tensor, text_embeds: torch.Tensor) -> NDArray[Any]:
    """Of rows with each other: vectors divided by their lengths in float64."""
    first, second = image_embeds.double(), text_embeds.double()
    first, second = first / first.norm(dim=1)[:, None], second / second.norm(dim=1)[:, None]
    found: NDArray[Any] = (first * second).sum(1).numpy()
    return found


FULL = {"padding": "max_length", "truncation": True, "max_length": 77}


def test_clip_formulas_equal_the_librarys_own_pass(clip: Path) -> None:
    from transformers import CLIPModel

    model, out = by_hand(CLIPModel, clip, PROMPTS, **FULL)
    cos = cosines(out.image_embeds, out.text_embeds)
    assert np.ptp(cos) > 0.05
    found = {
        name: scores(load(clip, formula=name), IMAGES, PROMPTS)
        for name in ("cos", "cos_times_100", "cos_clamped", "hessel", "scaled")
    }
    np.testing.assert_allclose(found["cos"], cos, atol=1e-6)
    np.testing.assert_allclose(found["cos_times_100"], 100 * cos, atol=1e-4)
    np.testing.assert_allclose(found["cos_clamped"], np.maximum(cos, 0), atol=1e-6)
    np.testing.assert_allclose(found["hessel"], 2.5 * np.maximum(cos, 0), atol=2.5e-6)
    np.testing.assert_allclose(found["scaled"], out.logits_per_image.diagonal(), atol=1e-5)
    np.testing.assert_allclose(
        found["scaled"], float(model.logit_scale.detach().exp()) * cos, atol=1e-5
    )


def test_the_prefix_is_read_before_every_prompt(clip: Path) -> None:
    from transformers import CLIPModel

    _, out = by_hand(CLIPModel, clip, ["A photo depicts " + each for each in PROMPTS], **FULL)
    found = scores(load(clip, formula="hessel", prefix="A photo depicts "), IMAGES, PROMPTS)
    expected = 2.5 * np.maximum(cosines(out.image_embeds, out.text_embeds), 0)
    np.testing.assert_allclose(found, expected, atol=2.5e-6)
    assert not np.allclose(found, scores(load(clip, formula="hessel"), IMAGES, PROMPTS), atol=1e-3)


def test_a_negative_cosine_is_kept_or_clamped_as_the_formula_says(
    clip: Path, negative_clip: Path
) -> None:
    there = scores(load(clip, formula="cos"), IMAGES, PROMPTS)
    turned = scores(load(negative_clip, formula="cos"), IMAGES, PROMPTS)
    np.testing.assert_allclose(turned, -there, atol=1e-6)
    for name in ("hessel", "cos_clamped", "cos_times_100_clamped"):
        both = [
            scores(load(folder, formula=name), IMAGES, PROMPTS) for folder in (clip, negative_clip)
        ]
        assert all(min(pair) == 0 < max(pair) for pair in zip(*both, strict=True))


def test_clamping_each_pair_is_not_clamping_the_mean(clip: Path, negative_clip: Path) -> None:
    every = [(folder, name) for folder in (clip, negative_clip) for name in ("raw", "clamped")]
    formulas = {"raw": "cos_times_100", "clamped": "cos_times_100_clamped"}
    found = {
        (folder, name): scores(load(folder, formula=formulas[name]), IMAGES, PROMPTS)
        for folder, name in every
    }
    raw = np.concatenate([found[clip, "raw"], found[negative_clip, "raw"]])
    clamped = np.concatenate([found[clip, "clamped"], found[negative_clip, "clamped"]])
    assert raw.min() < 0 < raw.max()
    np.testing.assert_array_equal(clamped, np.maximum(raw, 0))
    assert clamped.mean() > max(raw.mean(), 0) + 0.1


@pytest.mark.parametrize("end", ["named", "highest_number"])
def test_cutting_padding_after_the_end_of_a_text_changes_nothing(
    clip: Path, tmp_path: Path, end: str
) -> None:
    from transformers import CLIPModel

    from evaluator.scorers.models.dual_formulas import unit_vectors

    if end == "highest_number":  # the configurations of OpenAI's checkpoints name a wrong end
        clip = save_clip(tmp_path, end=2)
    _, out = by_hand(CLIPModel, clip, PROMPTS, **FULL)
    vectors = load(clip, formula="cos").scorer.encode_texts(PROMPTS)  # type: ignore[attr-defined]
    np.testing.assert_allclose(vectors, unit_vectors(out.text_embeds), atol=1e-6)
    full = load(clip, formula="cos", padding="max_length").scorer
    np.testing.assert_allclose(vectors, full.encode_texts(PROMPTS), atol=1e-6)  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", ["clip", "align", "siglip"])
def test_a_score_does_not_depend_on_what_it_is_asked_with(
    model: str, request: pytest.FixtureRequest
) -> None:
    for padding in ("longest", "none"):
        loaded = load(request.getfixturevalue(model), formula="cos", padding=padding)
        together = scores(loaded, IMAGES, PROMPTS)
        alone = [
            float(scores(loaded, [image], [text])[0])
            for image, text in zip(IMAGES, PROMPTS, strict=True)
        ]
        backwards = scores(loaded, IMAGES[::-1], PROMPTS[::-1])[::-1]
        np.testing.assert_allclose(together, alone, atol=1e-6)
        np.testing.assert_allclose(together, backwards, atol=1e-6)
        np.testing.assert_array_equal(together, scores(loaded, IMAGES, PROMPTS))


def test_encoding_apart_gives_the_scores_of_pairs(clip: Path) -> None:
    loaded = load(clip, formula="hessel")
    scorer: Any = loaded.scorer
    prepared = [scorer.prepare(image) for image in IMAGES]
    seen, said = scorer.encode_images(prepared), scorer.encode_texts(PROMPTS)
    grid = [(i, j) for i in range(3) for j in range(3)]
    apart = scorer.similarity(seen[[i for i, _ in grid]], said[[j for _, j in grid]])
    pairs = scorer.score([prepared[i] for i, _ in grid], [PROMPTS[j] for _, j in grid])
    assert seen.dtype == said.dtype == np.float32
    np.testing.assert_allclose(apart, pairs, atol=1e-6)


def test_over_long_prompts_stay_apart_and_are_said_to_be_cut(clip: Path) -> None:
    from transformers import CLIPModel

    loaded = load(clip, formula="cos")
    scorer: Any = loaded.scorer
    assert scorer.truncated([*LONG_FROM_THE_START, PROMPTS[1]]) == [True, True, False]
    first, second = scores(loaded, [IMAGES[0]] * 2, LONG_FROM_THE_START)
    assert abs(first - second) > 1e-3
    _, out = by_hand(CLIPModel, clip, [*LONG_FROM_THE_START, PROMPTS[0]], **FULL)
    image = out.image_embeds[:1].expand(2, -1)
    np.testing.assert_allclose([first, second], cosines(image, out.text_embeds[:2]), atol=1e-6)


def test_what_lies_behind_the_cut_does_not_count(clip: Path) -> None:
    same = scores(load(clip, formula="cos"), [IMAGES[0]] * 2, LONG)
    assert same[0] == pytest.approx(same[1], abs=1e-6)


def test_slicing_off_the_end_makes_all_over_long_prompts_one(clip: Path) -> None:
    sliced = load(clip, formula="cos", truncation="sliced")
    first, second = scores(sliced, [IMAGES[0]] * 2, LONG_FROM_THE_START)
    assert first == pytest.approx(second, abs=1e-6)
    kept = scores(load(clip, formula="cos"), IMAGES, PROMPTS)
    np.testing.assert_array_equal(kept, scores(sliced, IMAGES, PROMPTS))


def test_vectors_of_tiny_length_keep_their_direction() -> None:
    import torch

    from evaluator.scorers.models.dual_formulas import unit_vectors

    small = torch.tensor([[3e-12, 4e-12], [-3e-30, 4e-30]])
    np.testing.assert_allclose(unit_vectors(small), [[0.6, 0.8], [-0.6, 0.8]], rtol=1e-6)
    assert np.isnan(unit_vectors(torch.zeros(1, 2))).all()


def test_align_is_cosine_over_temperature(align: Path) -> None:
    import torch
    from transformers import AlignModel, AutoImageProcessor, AutoTokenizer

    options = {"padding": "max_length", "truncation": True, "max_length": 64}
    model, _ = by_hand(AlignModel, align, PROMPTS, **options)
    with torch.no_grad():
        pixels = AutoImageProcessor.from_pretrained(align, backend="pil")(
            IMAGES, return_tensors="pt"
        )
        tokens = AutoTokenizer.from_pretrained(align)(list(PROMPTS), return_tensors="pt", **options)
        cos = cosines(
            model.get_image_features(**pixels).pooler_output,
            model.get_text_features(**tokens).pooler_output,
        )
    found = scores(load(align, formula="scaled", max_length=64), IMAGES, PROMPTS)
    np.testing.assert_allclose(found, cos / float(model.temperature.detach()), atol=1e-5)
    np.testing.assert_allclose(
        scores(load(align, formula="cos_clamped", max_length=64), IMAGES, PROMPTS),
        np.maximum(cos, 0),
        atol=1e-6,
    )
    assert np.ptp(cos) > 1e-3


@pytest.mark.parametrize("name", ["sigmoid", "logit", "cos"])
def test_siglip_reads_its_padding_to_64_places(siglip: Path, name: str) -> None:
    from transformers import SiglipModel

    model, out = by_hand(
        SiglipModel, siglip, PROMPTS, padding="max_length", truncation=True, max_length=64
    )
    logits = out.logits_per_image.diagonal().numpy()
    cos = cosines(out.image_embeds, out.text_embeds)
    expected = {"sigmoid": 1 / (1 + np.exp(-logits)), "logit": logits, "cos": cos}[name]
    loaded = load(siglip, formula=name, padding="max_length", max_length=64)
    np.testing.assert_allclose(scores(loaded, IMAGES, PROMPTS), expected, atol=1e-5)
    bias = float(model.logit_bias.detach())
    np.testing.assert_allclose(
        logits, float(model.logit_scale.detach().exp()) * cos + bias, atol=1e-5
    )


def test_siglip_without_padding_is_another_score_and_no_batch_changes_it(siglip: Path) -> None:
    from transformers import SiglipModel

    loaded = load(siglip, formula="logit", padding="none")
    for place, text in enumerate(PROMPTS):
        _, out = by_hand(SiglipModel, siglip, [text])
        found = scores(loaded, IMAGES, PROMPTS)[place]
        assert found == pytest.approx(float(out.logits_per_image[place, 0]), abs=1e-5)
    padded = scores(load(siglip, formula="logit", padding="max_length"), IMAGES, PROMPTS)
    assert np.abs(padded - scores(loaded, IMAGES, PROMPTS)).max() > 1e-4


def test_a_processor_may_have_a_repository_of_its_own(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluator.scorers.families.dual_encoder import FAMILY

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((clip / name).read_bytes())
    pick = load_rows()["pickscore"]
    runtime = Runtime(folders={"model": tmp_path, "processor": clip})
    loaded = FAMILY.load(pick, FAMILY.check(pick), runtime)
    expected = scores(load(clip, formula="scaled"), IMAGES, PROMPTS)
    np.testing.assert_array_equal(scores(loaded, IMAGES, PROMPTS), expected)
    assert loaded.environment["checkpoint_processor"] == str(clip)
    with pytest.raises(SubmitterError, match="laion/CLIP-ViT-H-14"):
        FAMILY.load(pick, FAMILY.check(pick), here(tmp_path, offline=True))


def test_siglip_keeps_the_end_of_over_long_prompts(siglip: Path) -> None:
    scorer: Any = load(siglip, formula="cos", padding="max_length").scorer
    assert scorer.truncated([LONG[0], PROMPTS[1]]) == [True, False]
    numbers = scorer.reading.numbers([LONG[0]])[0]
    assert len(numbers) == 64
    assert numbers[-1] == scorer.reading.tokens.pad  # one number ends and pads


def test_images_squashed_first_are_not_cropped(clip: Path) -> None:
    import torch
    from transformers import AutoImageProcessor

    loaded = load(clip, formula="cos", images="squashed_224")
    wide = Image.new("RGB", (400, 100), "white")
    wide.paste("black", (0, 0, 100, 100))
    pixels = loaded.scorer.prepare(wide)  # type: ignore[attr-defined]
    square = wide.resize((224, 224), Image.Resampling.BILINEAR)
    own = AutoImageProcessor.from_pretrained(clip, backend="pil")(square, return_tensors="pt")
    assert torch.equal(pixels, own["pixel_values"][0])
    cropped = load(clip, formula="cos").scorer.prepare(wide)  # type: ignore[attr-defined]
    assert pixels.min() < 0
    assert cropped.min() > 0  # the black quarter lies outside the middle


def test_images_are_prepared_by_several_threads_at_once(clip: Path) -> None:
    import torch

    prepare = load(clip, formula="cos").scorer.prepare  # type: ignore[attr-defined]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(prepare, IMAGES * 8))
    assert all(torch.equal(each, prepare(IMAGES[i % 3])) for i, each in enumerate(found))


def test_no_pairs_give_no_scores(clip: Path) -> None:
    assert load(clip, formula="cos").scorer.score([], []) == []


def test_what_was_used_is_told(clip: Path) -> None:
    loaded = load(clip, formula="cos")
    assert loaded.environment["dtype"] == "float32"
    assert loaded.environment["checkpoint_model"] == str(clip)
    assert "CLIPImageProcessorPil" in loaded.environment["image_processor"]
    squashed = load(clip, formula="cos", images="squashed_224")
    assert loaded.preprocessing != squashed.preprocessing
