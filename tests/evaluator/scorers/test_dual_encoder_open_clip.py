"""Dual encoders of open_clip, HPSv2 among them, against the library's own model."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scorers.family import Loaded
from tests.evaluator.scorers.tiny_dual import (
    LONG_FROM_THE_START,
    PROMPTS,
    bert_tokenizer,
    here,
    open_clip_configuration,
    pictures,
    row,
    save_open_clip,
)

if TYPE_CHECKING:
    import torch

IMAGES = pictures(3)
OTHER_TOWERS: dict[str, dict[str, Any]] = {
    "with_a_class_token": {"text": {"embed_cls": True}, "custom_text": True},
    "apart": {"custom_text": True},
    "with_a_tokenizer_in_the_folder": {
        "text": {"hf_tokenizer_name": "x/y", "no_causal_mask": True, "pool_type": "last"},
        "custom_text": True,
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_open_clip(tmp_path_factory.mktemp("open_clip"))


@pytest.fixture(scope="module")
def architecture(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A name under which open_clip knows the tiny configuration."""
    import open_clip  # type: ignore[import-untyped]

    place = tmp_path_factory.mktemp("configs") / "tiny-for-tests.json"
    place.write_text(json.dumps(open_clip_configuration()))
    open_clip.add_model_config(place)
    return place.stem


@pytest.fixture(scope="module")
def single_file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights as HPSv2 gives them away: a pickle with a table in a table."""
    import torch
    from safetensors.torch import load_file

    place = tmp_path_factory.mktemp("hps") / "tiny.pt"
    torch.save({"state_dict": load_file(folder / "open_clip_model.safetensors")}, place)
    return place


def load(place: Path, *, allow_pickle: bool = False, file: str = "", **options: Any) -> Loaded:
    from evaluator.scorers.families.dual_encoder import FAMILY

    tiny = row(checkpoint={"file": file}, backend="open_clip", **options)
    return FAMILY.load(tiny, FAMILY.check(tiny), here(place, allow_pickle=allow_pickle))


def load_hps(place: Path, architecture: str, *, allow_pickle: bool = True) -> Loaded:
    return load(
        place,
        file="tiny.pt",
        allow_pickle=allow_pickle,
        architecture=architecture,
        formula="cos",
        images="longest_padded",
    )


def scores(
    loaded: Loaded, prompts: Sequence[str], images: Sequence[Image.Image] = IMAGES
) -> NDArray[Any]:
    scorer: Any = loaded.scorer
    return np.array(scorer.score([scorer.prepare(each) for each in images], prompts))


def by_hand(
    folder: Path, prompts: Sequence[str], pixels: Sequence[torch.Tensor] = ()
) -> NDArray[Any]:
    """Cosines of IMAGES (or pixels) with prompts, row by row, with open_clip's own parts."""
    import open_clip
    import torch

    model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    stacked = torch.stack(list(pixels) or [preprocess(each) for each in IMAGES])
    with torch.no_grad():
        seen = model.eval().encode_image(stacked, normalize=True)
        said = model.encode_text(tokenizer(list(prompts)), normalize=True)
    found: NDArray[Any] = (seen * said).sum(1).numpy()
    return found


def refusal(code: str, named: str) -> Any:
    """A SubmitterError of a code whose text names something."""
    return pytest.raises(SubmitterError, match=named, check=lambda error: error.code == code)


def test_cosines_equal_open_clips_own(folder: Path) -> None:
    expected = by_hand(folder, PROMPTS)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(scores(load(folder, formula="cos"), PROMPTS), expected, atol=1e-6)


@pytest.mark.parametrize("kind", OTHER_TOWERS)
def test_texts_of_other_towers_equal_open_clips_own(tmp_path: Path, kind: str) -> None:
    save_open_clip(tmp_path, **copy.deepcopy(OTHER_TOWERS[kind]))
    bert_tokenizer().save_pretrained(tmp_path)
    loaded = load(tmp_path, formula="cos")
    together = scores(loaded, PROMPTS)
    np.testing.assert_allclose(together, by_hand(tmp_path, PROMPTS), atol=1e-6)
    pairs = zip(IMAGES, PROMPTS, strict=True)
    alone = [float(scores(loaded, [text], [image])[0]) for image, text in pairs]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_cutting_padding_after_the_end_changes_nothing(folder: Path) -> None:
    short, full = (load(folder, formula="cos", padding=how) for how in ("longest", "max_length"))
    assert short.scorer.reading.padding == "longest"  # type: ignore[attr-defined]
    vectors = [each.scorer.encode_texts(PROMPTS) for each in (short, full)]  # type: ignore[attr-defined]
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_over_long_prompts_keep_their_end(folder: Path) -> None:
    loaded = load(folder, formula="cos")
    prompts = (*LONG_FROM_THE_START, PROMPTS[0])
    np.testing.assert_allclose(scores(loaded, prompts), by_hand(folder, prompts), atol=1e-6)
    assert loaded.scorer.truncated(prompts) == [True, True, False]  # type: ignore[attr-defined]
    first, second = scores(loaded, LONG_FROM_THE_START, [IMAGES[0]] * 2)
    assert abs(first - second) > 1e-3


def test_slicing_differs_from_keeping_the_end_for_over_long_prompts_only(folder: Path) -> None:
    sliced = load(folder, formula="cos", truncation="sliced")
    kept = load(folder, formula="cos")
    np.testing.assert_array_equal(scores(sliced, PROMPTS), scores(kept, PROMPTS))
    both = [scores(each, LONG_FROM_THE_START, [IMAGES[0]] * 2) for each in (sliced, kept)]
    assert np.isfinite(both).all()
    assert np.abs(both[0] - both[1]).min() > 1e-4


def test_a_single_file_of_weights_fills_a_named_architecture(
    folder: Path, single_file: Path, architecture: str
) -> None:
    loaded = load_hps(single_file.parent, architecture)
    pixels = [loaded.scorer.prepare(each) for each in IMAGES]  # type: ignore[attr-defined]
    expected = by_hand(folder, PROMPTS, pixels)
    np.testing.assert_allclose(scores(loaded, PROMPTS), expected, atol=1e-6)


def test_hps_pads_the_short_side_with_zeros(single_file: Path, architecture: str) -> None:
    import open_clip
    import torch
    from torchvision.transforms import InterpolationMode, functional

    prepare = load_hps(single_file, architecture).scorer.prepare  # type: ignore[attr-defined]
    mean, std = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
    black = functional.normalize(torch.zeros(3, 32, 32), mean, std)
    for size in ((64, 33), (32, 16), (20, 10)):
        image = IMAGES[0].resize(size)
        height = round(size[1] * 32 / size[0])
        small = functional.resize(
            functional.to_tensor(image), [height, 32], InterpolationMode.BICUBIC, antialias=True
        )
        top = (32 - height) // 2
        expected = black.clone()
        expected[:, top : top + height] = functional.normalize(small, mean, std)
        np.testing.assert_allclose(prepare(image), expected, atol=1e-6)


def test_pickles_are_refused_unless_allowed(single_file: Path, architecture: str) -> None:
    with refusal("checkpoint_unsafe", "--allow-pickle"):
        load_hps(single_file, architecture, allow_pickle=False)


def test_openais_weights_get_the_activation_they_were_trained_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag's entry in open_clip's table decides; the tiny configuration says plain GELU."""
    import open_clip
    import torch
    from safetensors.torch import load_file

    entry = open_clip.get_pretrained_cfg("ViT-B-32", "openai")
    assert entry["quick_gelu"] is True
    tiny = open_clip_configuration()
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-32", tiny)
    quick = load(folder, formula="cos", architecture="ViT-B-32", tag="openai")
    plain = load(folder, formula="cos", architecture="ViT-B-32")
    texts = [each.scorer.encode_texts(PROMPTS) for each in (quick, plain)]  # type: ignore[attr-defined]
    assert np.abs(texts[0] - texts[1]).max() > 1e-4
    with torch.no_grad():
        model = open_clip.create_model("ViT-B-32", force_quick_gelu=True, load_weights=False)
        model.load_state_dict(load_file(folder / "open_clip_model.safetensors"))
        tokens = open_clip.get_tokenizer("ViT-B-32")(list(PROMPTS))
        expected = model.eval().encode_text(tokens, normalize=True)
    np.testing.assert_allclose(texts[0], expected, atol=1e-6)
    with pytest.raises(PlatformError, match="no weights 'unheard'"):
        load(folder, formula="cos", architecture="ViT-B-32", tag="unheard")


def test_weights_that_are_missing_or_too_many_are_refused(folder: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "open_clip_model.safetensors")
    configuration = "open_clip_config.json"
    (tmp_path / configuration).write_bytes((folder / configuration).read_bytes())
    lacking = {name: value for name, value in state.items() if name != "text_projection"}
    cases = (
        (lacking, "checkpoint_incomplete", "text_projection"),
        ({**state, "stray": torch.zeros(2)}, "checkpoint_wrong_class", "stray"),
        ({**state, "text_projection": torch.zeros(3, 3)}, "checkpoint_damaged", "text_projection"),
    )
    for weights, code, named in cases:
        save_file(weights, tmp_path / "open_clip_model.safetensors")
        with refusal(code, named):
            load(tmp_path, formula="cos")


def test_a_folder_of_another_library_is_refused(folder: Path, tmp_path: Path) -> None:
    with refusal("checkpoint_damaged", "open_clip_config"):
        load(tmp_path, formula="cos")
    configuration = "open_clip_config.json"
    (tmp_path / configuration).write_bytes((folder / configuration).read_bytes())
    with refusal("checkpoint_wrong_class", r"open_clip_model\.safetensors"):
        load(tmp_path, formula="cos")
