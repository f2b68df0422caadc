"""Dual encoders of open_clip, HPSv2 among them, against the library's own model."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import PlatformError
from tests.evaluator.scorers.common import later, refusal, safetensors, torch
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

open_clip = later("open_clip")
dual = later("evaluator.scorers.families.dual_encoder")
transforms = later("torchvision.transforms")

IMAGES = pictures(3)
CONFIGURATION, WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"
close = np.testing.assert_allclose


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_open_clip(tmp_path_factory.mktemp("open_clip"))


@pytest.fixture(scope="module")
def hps(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A known architecture, and weights as HPSv2 gives them away: a pickle of a table in a table."""
    place = tmp_path_factory.mktemp("hps")
    (place / "tiny-for-tests.json").write_text(json.dumps(open_clip_configuration()))
    open_clip.add_model_config(place / "tiny-for-tests.json")
    torch.save({"state_dict": safetensors.load_file(folder / WEIGHTS)}, place / "tiny.pt")
    named = {"file": "tiny.pt", "architecture": "tiny-for-tests", "images": "longest_padded"}
    return {"place": place, "allow_pickle": True, **named}


def load(place: Path, *, allow_pickle: bool = False, file: str = "", **options: Any) -> Any:
    tiny = row(checkpoint={"file": file}, backend="open_clip", formula="cos", **options)
    runtime = here(place, allow_pickle=allow_pickle)
    return dual.FAMILY.load(tiny, dual.FAMILY.check(tiny), runtime).scorer


def scores(scorer: Any, prompts: Sequence[str] = PROMPTS, images: Any = IMAGES) -> Any:
    return np.array(scorer.score([scorer.prepare(each) for each in images], prompts))


def by_hand(folder: Path, prompts: Sequence[str] = PROMPTS, pixels: Sequence[Any] = ()) -> Any:
    """Cosines of IMAGES (or pixels) with prompts, row by row, with open_clip's own parts."""
    model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    stacked = torch.stack(list(pixels) or [preprocess(each) for each in IMAGES])
    with torch.no_grad():
        seen = model.eval().encode_image(stacked, normalize=True)
        said = model.encode_text(tokenizer(list(prompts)), normalize=True)
    return (seen * said).sum(1).numpy()


def test_cosines_equal_open_clips_own_and_padding_after_the_end_does_not_count(
    folder: Path,
) -> None:
    short, full = load(folder), load(folder, padding="max_length")
    expected = by_hand(folder)
    assert np.ptp(expected) > 0.01
    close(scores(short), expected, atol=1e-6)
    assert short.reading.padding == "longest"
    close(short.encode_texts(PROMPTS), full.encode_texts(PROMPTS), atol=1e-6)


@pytest.mark.parametrize(
    "tower",
    [
        {"text": {"embed_cls": True}, "custom_text": True},
        {"custom_text": True},
        {
            "text": {"hf_tokenizer_name": "x/y", "no_causal_mask": True, "pool_type": "last"},
            "custom_text": True,
        },
    ],
    ids=["with_a_class_token", "apart", "with_a_tokenizer_in_the_folder"],
)
def test_texts_of_other_towers_equal_open_clips_own(tmp_path: Path, tower: dict[str, Any]) -> None:
    save_open_clip(tmp_path, **copy.deepcopy(tower))
    bert_tokenizer().save_pretrained(tmp_path)
    scorer = load(tmp_path)
    together = scores(scorer)
    close(together, by_hand(tmp_path), atol=1e-6)
    pairs = zip(IMAGES, PROMPTS, strict=True)
    close(together, [scores(scorer, [text], [image])[0] for image, text in pairs], atol=1e-6)


def test_over_long_prompts_keep_their_end_unless_sliced(folder: Path) -> None:
    kept, sliced = load(folder), load(folder, truncation="sliced")
    prompts = (*LONG_FROM_THE_START, PROMPTS[0])
    close(scores(kept, prompts), by_hand(folder, prompts), atol=1e-6)
    assert kept.truncated(prompts) == [True, True, False]
    np.testing.assert_array_equal(scores(sliced), scores(kept))
    ends, cut = (scores(each, LONG_FROM_THE_START, [IMAGES[0]] * 2) for each in (kept, sliced))
    assert np.ptp(ends) > 1e-3
    assert np.isfinite(cut).all()
    assert np.abs(ends - cut).min() > 1e-4


def test_a_single_file_of_weights_fills_a_named_architecture(
    folder: Path, hps: dict[str, Any]
) -> None:
    scorer = load(**hps)
    pixels = [scorer.prepare(each) for each in IMAGES]
    close(scores(scorer), by_hand(folder, PROMPTS, pixels), atol=1e-6)
    with refusal("checkpoint_unsafe", "--allow-pickle"):
        load(**{**hps, "allow_pickle": False})


@pytest.mark.parametrize("size", [(64, 33), (32, 16), (20, 10)])
def test_hps_pads_the_short_side_with_zeros(hps: dict[str, Any], size: tuple[int, int]) -> None:
    functional, bicubic = transforms.functional, transforms.InterpolationMode.BICUBIC
    mean, std = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
    image, height = IMAGES[0].resize(size), round(size[1] * 32 / size[0])
    small = functional.resize(functional.to_tensor(image), [height, 32], bicubic, antialias=True)
    expected = functional.normalize(torch.zeros(3, 32, 32), mean, std)
    top = (32 - height) // 2
    expected[:, top : top + height] = functional.normalize(small, mean, std)
    close(load(**hps).prepare(image), expected, atol=1e-6)


def test_openais_weights_get_the_activation_they_were_trained_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag's entry in open_clip's table decides; the tiny configuration says plain GELU."""
    assert open_clip.get_pretrained_cfg("ViT-B-32", "openai")["quick_gelu"] is True
    tiny = open_clip_configuration()
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-32", tiny)
    quick = load(folder, architecture="ViT-B-32", tag="openai").encode_texts(PROMPTS)
    plain = load(folder, architecture="ViT-B-32").encode_texts(PROMPTS)
    assert np.abs(quick - plain).max() > 1e-4
    with torch.no_grad():
        model = open_clip.create_model("ViT-B-32", force_quick_gelu=True, load_weights=False)
        model.load_state_dict(safetensors.load_file(folder / WEIGHTS))
        tokens = open_clip.get_tokenizer("ViT-B-32")(list(PROMPTS))
        close(quick, model.eval().encode_text(tokens, normalize=True), atol=1e-6)
    with pytest.raises(PlatformError, match="'unheard'"):
        load(folder, architecture="ViT-B-32", tag="unheard")


def test_weights_that_are_missing_or_too_many_are_refused(folder: Path, tmp_path: Path) -> None:
    with refusal("checkpoint_damaged", "open_clip_config"):
        load(tmp_path)
    (tmp_path / CONFIGURATION).write_bytes((folder / CONFIGURATION).read_bytes())
    with refusal("checkpoint_wrong_class", WEIGHTS):
        load(tmp_path)
    state = safetensors.load_file(folder / WEIGHTS)
    lacking = {name: value for name, value in state.items() if name != "text_projection"}
    misshapen = {**state, "text_projection": torch.zeros(3, 3)}
    for weights, code, named in (
        (lacking, "checkpoint_incomplete", "text_projection"),
        ({**state, "stray": torch.zeros(2)}, "checkpoint_wrong_class", "stray"),
        (misshapen, "checkpoint_damaged", "text_projection"),
    ):
        safetensors.save_file(weights, tmp_path / WEIGHTS)
        with refusal(code, named):
            load(tmp_path)
