"""Dual encoders of `transformers` and open_clip: every formula against the library's own model."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scorers.registry import Runtime, load_rows, load_scorer
from tests.evaluator.scorers import tiny_models
from tests.evaluator.scorers.common import hf, later, refusal, safetensors, torch
from tests.evaluator.scorers.tiny_models import row

dual = later("evaluator.scorers.families.dual_encoder")
formulas = later("evaluator.scorers.models.dual_towers")
transforms = later("torchvision.transforms")
dual_towers = later("evaluator.scorers.models.dual_towers")
open_clip = later("open_clip")

IMAGES = tiny_models.pictures(3)
FULL: dict[str, Any] = {"padding": "max_length", "truncation": True, "max_length": 77}
HALF = {**FULL, "max_length": 64}
close = np.testing.assert_allclose
same = np.testing.assert_array_equal


@pytest.fixture(scope="module")
def align(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_align(tmp_path_factory.mktemp("align"))


@pytest.fixture(scope="module")
def siglip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_siglip(tmp_path_factory.mktemp("siglip"))


def load(folder: Path, formula: str = "cos", **options: Any) -> Any:
    tiny = row(formula=formula, **options)
    return dual.FAMILY.load(tiny, dual.FAMILY.check(tiny), tiny_models.here(folder))


def scores(
    loaded: Any, images: Sequence[Image.Image] = IMAGES, prompts: Any = tiny_models.PROMPTS
) -> Any:
    prepared = [loaded.scorer.prepare(image) for image in images]
    return np.array(loaded.scorer.score(prepared, prompts))


def inputs(folder: Path, prompts: Sequence[str], **text: Any) -> tuple[Any, Any]:
    """IMAGES and prompts as the library itself reads them."""
    read = hf.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokens = hf.AutoTokenizer.from_pretrained(folder)(list(prompts), return_tensors="pt", **text)
    return read(IMAGES, return_tensors="pt"), tokens


def by_hand(
    kind: str, folder: Path, prompts: Sequence[str] = tiny_models.PROMPTS, **text: Any
) -> Any:
    """The library's own model and its forward pass over IMAGES and prompts."""
    model = getattr(hf, kind).from_pretrained(folder).eval()
    pixels, tokens = inputs(folder, prompts, **text)
    if kind == "SiglipModel":
        tokens.pop("attention_mask", None)
    with torch.no_grad():
        return model, model(**tokens, pixel_values=pixels["pixel_values"])


def cosines(image_embeds: Any, text_embeds: Any) -> Any:
    """Of rows with each other: vectors divided by their lengths in float64."""
    first, second = image_embeds.double(), text_embeds.double()
    first, second = first / first.norm(dim=1)[:, None], second / second.norm(dim=1)[:, None]
    return (first * second).sum(1).numpy()


def test_clip_formulas_equal_the_librarys_own_pass(clip: Path) -> None:
    model, out = by_hand("CLIPModel", clip, **FULL)
    cos = cosines(out.image_embeds, out.text_embeds)
    assert np.ptp(cos) > 0.05
    scale = float(model.logit_scale.detach().exp())
    close(out.logits_per_image.diagonal(), scale * cos, atol=1e-5)
    for name, wanted in (
        ("cos", cos),
        ("cos_times_100", 100 * cos),
        ("cos_clamped", np.maximum(cos, 0)),
        ("hessel", 2.5 * np.maximum(cos, 0)),
        ("scaled", scale * cos),
    ):
        close(scores(load(clip, name)), wanted, atol=1e-4 if "100" in name else 1e-5)


def test_the_prefix_is_read_before_every_prompt(clip: Path) -> None:
    prefix = "A photo depicts "
    _, out = by_hand("CLIPModel", clip, [prefix + each for each in tiny_models.PROMPTS], **FULL)
    found = scores(load(clip, "hessel", prefix=prefix))
    close(found, 2.5 * np.maximum(cosines(out.image_embeds, out.text_embeds), 0), atol=2.5e-6)
    assert not np.allclose(found, scores(load(clip, "hessel")), atol=1e-3)


def test_a_negative_cosine_is_kept_or_each_pair_clamped_as_the_formula_says(
    clip: Path, tmp_path: Path
) -> None:
    both = (clip, tiny_models.save_clip(tmp_path, negative=True))

    def found(formula: str) -> Any:
        return np.concatenate([scores(load(folder, formula)) for folder in both])

    raw = found("cos")
    close(raw[3:], -raw[:3], atol=1e-6)
    assert raw.min() < 0 < raw.max()
    for name, times in (("hessel", 2.5), ("cos_clamped", 1), ("cos_times_100_clamped", 100)):
        close(found(name), times * np.maximum(raw, 0), rtol=1e-6)


@pytest.mark.parametrize("end", [None, 2], ids=["named", "highest_number"])
def test_cutting_padding_after_the_end_of_a_text_changes_nothing(
    tmp_path: Path, end: int | None
) -> None:
    """The configurations of OpenAI's checkpoints name a wrong end."""
    clip = tiny_models.save_clip(tmp_path, end=end)
    _, out = by_hand("CLIPModel", clip, **FULL)
    vectors = load(clip).scorer.encode_texts(tiny_models.PROMPTS)
    close(vectors, formulas.unit_vectors(out.text_embeds), atol=1e-6)
    close(
        vectors,
        load(clip, padding="max_length").scorer.encode_texts(tiny_models.PROMPTS),
        atol=1e-6,
    )


@pytest.mark.parametrize("model", ["clip", "align", "siglip"])
def test_a_score_does_not_depend_on_what_it_is_asked_with(
    model: str, request: pytest.FixtureRequest
) -> None:
    for padding in ("longest", "none"):
        loaded = load(request.getfixturevalue(model), padding=padding)
        together = scores(loaded)
        pairs = zip(IMAGES, tiny_models.PROMPTS, strict=True)
        close(together, [scores(loaded, [image], [text])[0] for image, text in pairs], atol=1e-6)
        close(together, scores(loaded, IMAGES[::-1], tiny_models.PROMPTS[::-1])[::-1], atol=1e-6)
        same(together, scores(loaded))


def test_encoding_apart_gives_the_scores_of_pairs(clip: Path) -> None:
    scorer = load(clip, "hessel").scorer
    prepared = [scorer.prepare(image) for image in IMAGES]
    seen, said = scorer.encode_images(prepared), scorer.encode_texts(tiny_models.PROMPTS)
    grid = [(i, j) for i in range(3) for j in range(3)]
    apart = scorer.similarity(seen[[i for i, _ in grid]], said[[j for _, j in grid]])
    pairs = scorer.score([prepared[i] for i, _ in grid], [tiny_models.PROMPTS[j] for _, j in grid])
    assert seen.dtype == said.dtype == np.float32
    close(apart, pairs, atol=1e-6)
    assert scorer.score([], []) == []


def test_over_long_prompts_stay_apart_and_are_said_to_be_cut(clip: Path) -> None:
    loaded, one = load(clip), [IMAGES[0]] * 2
    assert loaded.scorer.truncated([*tiny_models.LONG_FROM_THE_START, tiny_models.PROMPTS[1]]) == [
        True,
        True,
        False,
    ]
    found = scores(loaded, one, tiny_models.LONG_FROM_THE_START)
    assert np.ptp(found) > 1e-3
    _, out = by_hand(
        "CLIPModel", clip, [*tiny_models.LONG_FROM_THE_START, tiny_models.PROMPTS[0]], **FULL
    )
    image = out.image_embeds[:1].expand(2, -1)
    close(found, cosines(image, out.text_embeds[:2]), atol=1e-6)
    assert (
        np.ptp(scores(loaded, one, tiny_models.LONG)) < 1e-6
    )  # what lies behind the cut does not count


def test_slicing_off_the_end_makes_all_over_long_prompts_one(clip: Path) -> None:
    sliced = load(clip, truncation="sliced")
    assert np.ptp(scores(sliced, [IMAGES[0]] * 2, tiny_models.LONG_FROM_THE_START)) < 1e-6
    same(scores(load(clip)), scores(sliced))


def test_vectors_of_tiny_length_keep_their_direction() -> None:
    small = torch.tensor([[3e-12, 4e-12], [-3e-30, 4e-30]])
    close(formulas.unit_vectors(small), [[0.6, 0.8], [-0.6, 0.8]], rtol=1e-6)
    assert np.isnan(formulas.unit_vectors(torch.zeros(1, 2))).all()


def test_align_is_cosine_over_temperature(align: Path) -> None:
    model = hf.AlignModel.from_pretrained(align).eval()
    pixels, tokens = inputs(align, tiny_models.PROMPTS, **HALF)
    with torch.no_grad():
        seen, said = model.get_image_features(**pixels), model.get_text_features(**tokens)
    cos = cosines(seen.pooler_output, said.pooler_output)
    scaled = scores(load(align, "scaled", max_length=64))
    close(scaled, cos / float(model.temperature.detach()), atol=1e-5)
    close(scores(load(align, "cos_clamped", max_length=64)), np.maximum(cos, 0), atol=1e-6)
    assert np.ptp(cos) > 1e-3


@pytest.mark.parametrize("name", ["sigmoid", "logit", "cos"])
def test_siglip_reads_its_padding_to_64_places(siglip: Path, name: str) -> None:
    model, out = by_hand("SiglipModel", siglip, **HALF)
    logits = out.logits_per_image.diagonal().numpy()
    cos = cosines(out.image_embeds, out.text_embeds)
    expected = {"sigmoid": 1 / (1 + np.exp(-logits)), "logit": logits, "cos": cos}[name]
    close(scores(load(siglip, name, padding="max_length", max_length=64)), expected, atol=1e-5)
    scale, bias = float(model.logit_scale.detach().exp()), float(model.logit_bias.detach())
    close(logits, scale * cos + bias, atol=1e-5)


def test_siglip_without_padding_is_another_score(siglip: Path) -> None:
    found = scores(load(siglip, "logit", padding="none"))
    for place, text in enumerate(tiny_models.PROMPTS):
        _, out = by_hand("SiglipModel", siglip, [text])
        assert found[place] == pytest.approx(float(out.logits_per_image[place, 0]), abs=1e-5)
    padded = scores(load(siglip, "logit", padding="max_length"))
    assert np.abs(padded - found).max() > 1e-4


def test_siglip_keeps_the_end_of_over_long_prompts(siglip: Path) -> None:
    scorer = load(siglip, padding="max_length").scorer
    assert scorer.truncated([tiny_models.LONG[0], tiny_models.PROMPTS[1]]) == [True, False]
    numbers = scorer.reading.numbers([tiny_models.LONG[0]])[0]
    assert (len(numbers), numbers[-1]) == (64, scorer.reading.tokens.pad)  # one number for both


def test_a_processor_may_have_a_repository_of_its_own(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((clip / name).read_bytes())
    pick = load_rows()["pickscore"]
    loaded: Any = load_scorer(pick, Runtime(folders={"model": tmp_path, "processor": clip}))
    same(scores(loaded), scores(load(clip, "scaled")))
    assert loaded.environment["checkpoint_processor"] == str(clip)
    with pytest.raises(SubmitterError, match="laion/CLIP-ViT-H-14"):
        load_scorer(pick, tiny_models.here(tmp_path, offline=True))


def test_images_squashed_first_are_not_cropped(clip: Path) -> None:
    cropped, squashed = load(clip), load(clip, images="squashed_224")
    wide = Image.new("RGB", (400, 100), "white")
    wide.paste("black", (0, 0, 100, 100))
    pixels = squashed.scorer.prepare(wide)
    square = wide.resize((224, 224), Image.Resampling.BILINEAR)
    read = hf.AutoImageProcessor.from_pretrained(clip, backend="pil")
    assert torch.equal(pixels, read(square, return_tensors="pt")["pixel_values"][0])
    # The black quarter lies outside the middle.
    assert pixels.min() < 0 < cropped.scorer.prepare(wide).min()
    assert cropped.preprocessing != squashed.preprocessing
    assert cropped.environment["checkpoint_model"] == str(clip)
    assert "CLIPImageProcessorPil" in cropped.environment["image_processor"]


def test_images_are_prepared_by_several_threads_at_once(clip: Path) -> None:
    prepare = load(clip).scorer.prepare
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(prepare, IMAGES * 8))
    assert all(torch.equal(each, prepare(IMAGES[i % 3])) for i, each in enumerate(found))


# As OpenAI's own code reads

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
ODD_REST = (640, 427)


@pytest.mark.parametrize(
    "size", [(640, 480), ODD_REST, (427, 640), (333, 1000), (224, 224), (17, 9)], ids=str
)
def test_pixels_are_those_of_the_authors_transform(size: tuple[int, int]) -> None:
    steps = [
        transforms.Resize(224, interpolation=transforms.InterpolationMode.BICUBIC),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    processor, image = hf.CLIPImageProcessorPil(), tiny_models.picture(3, *size)
    authors = transforms.Compose(steps)(image)
    assert torch.equal(dual_towers.authors_transform(processor)(image), authors)
    if size == ODD_REST:  # the processor of transformers cuts one pixel beside it
        theirs = processor(images=image, return_tensors="pt")["pixel_values"][0]
        assert not torch.allclose(theirs, authors, atol=0.1)
        assert torch.allclose(theirs[..., 1:], authors[..., :-1], atol=1e-6)


def test_curled_quotes_and_html_are_mended_before_a_text_is_read(tmp_path: Path) -> None:
    letters = SimpleNamespace(pad=0, whole=lambda texts: [[ord(c) for c in t] for t in texts])
    letters.cut = lambda texts, length: [ids[:length] for ids in letters.whole(texts)]
    reading = later("evaluator.scorers.models.inputs").TextReading(letters, 77, cleaned=True)
    (ids,) = reading.numbers([" a “red” dog &amp; a cat’s tail "])
    mended = 'a "red" dog & a cat\'s tail'
    assert "".join(map(chr, ids)) == mended
    row = load_rows()["clipscore-hessel"]
    scorer: Any = load_scorer(row, tiny_models.here(tiny_models.save_clip(tmp_path))).scorer
    image = scorer.prepare(tiny_models.picture(3, *ODD_REST))
    curled, straight = scorer.score([image] * 2, ["a “red” dog", 'a "red" dog'])
    assert curled == pytest.approx(straight, abs=1e-6)


# Of open_clip, HPSv2 among them

CONFIGURATION, WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"


@pytest.fixture(scope="module")
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_open_clip(tmp_path_factory.mktemp("open_clip"))


@pytest.fixture(scope="module")
def hps(open_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A known architecture, and weights as HPSv2 gives them away: a pickle of a table in a table."""
    place = tmp_path_factory.mktemp("hps")
    (place / "tiny-for-tests.json").write_text(json.dumps(tiny_models.open_clip_configuration()))
    open_clip.add_model_config(place / "tiny-for-tests.json")
    torch.save({"state_dict": safetensors.load_file(open_folder / WEIGHTS)}, place / "tiny.pt")
    named = {"file": "tiny.pt", "architecture": "tiny-for-tests", "images": "longest_padded"}
    return {"place": place, "allow_pickle": True, **named}


def open_load(place: Path, *, allow_pickle: bool = False, file: str = "", **options: Any) -> Any:
    tiny = row(checkpoint={"file": file}, backend="open_clip", formula="cos", **options)
    runtime = tiny_models.here(place, allow_pickle=allow_pickle)
    return dual.FAMILY.load(tiny, dual.FAMILY.check(tiny), runtime).scorer


def open_scores(
    scorer: Any, prompts: Sequence[str] = tiny_models.PROMPTS, images: Any = IMAGES
) -> Any:
    return np.array(scorer.score([scorer.prepare(each) for each in images], prompts))


def open_by_hand(
    open_folder: Path, prompts: Sequence[str] = tiny_models.PROMPTS, pixels: Sequence[Any] = ()
) -> Any:
    """Cosines of IMAGES (or pixels) with prompts, row by row, with open_clip's own parts."""
    model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{open_folder}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{open_folder}")
    stacked = torch.stack(list(pixels) or [preprocess(each) for each in IMAGES])
    with torch.no_grad():
        seen = model.eval().encode_image(stacked, normalize=True)
        said = model.encode_text(tokenizer(list(prompts)), normalize=True)
    return (seen * said).sum(1).numpy()


def test_cosines_equal_open_clips_own_and_padding_after_the_end_does_not_count(
    open_folder: Path,
) -> None:
    short, full = open_load(open_folder), open_load(open_folder, padding="max_length")
    expected = open_by_hand(open_folder)
    assert np.ptp(expected) > 0.01
    close(open_scores(short), expected, atol=1e-6)
    assert short.reading.padding == "longest"
    close(
        short.encode_texts(tiny_models.PROMPTS), full.encode_texts(tiny_models.PROMPTS), atol=1e-6
    )


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
    tiny_models.save_open_clip(tmp_path, **copy.deepcopy(tower))
    tiny_models.bert_tokenizer().save_pretrained(tmp_path)
    scorer = open_load(tmp_path)
    together = open_scores(scorer)
    close(together, open_by_hand(tmp_path), atol=1e-6)
    pairs = zip(IMAGES, tiny_models.PROMPTS, strict=True)
    close(together, [open_scores(scorer, [text], [image])[0] for image, text in pairs], atol=1e-6)


def test_over_long_prompts_keep_their_end_unless_sliced(open_folder: Path) -> None:
    kept, sliced = open_load(open_folder), open_load(open_folder, truncation="sliced")
    prompts = (*tiny_models.LONG_FROM_THE_START, tiny_models.PROMPTS[0])
    close(open_scores(kept, prompts), open_by_hand(open_folder, prompts), atol=1e-6)
    assert kept.truncated(prompts) == [True, True, False]
    np.testing.assert_array_equal(open_scores(sliced), open_scores(kept))
    ends, cut = (
        open_scores(each, tiny_models.LONG_FROM_THE_START, [IMAGES[0]] * 2)
        for each in (kept, sliced)
    )
    assert np.ptp(ends) > 1e-3
    assert np.isfinite(cut).all()
    assert np.abs(ends - cut).min() > 1e-4


def test_a_single_file_of_weights_fills_a_named_architecture(
    open_folder: Path, hps: dict[str, Any]
) -> None:
    scorer = open_load(**hps)
    pixels = [scorer.prepare(each) for each in IMAGES]
    close(open_scores(scorer), open_by_hand(open_folder, tiny_models.PROMPTS, pixels), atol=1e-6)
    with refusal("checkpoint_unsafe", "--allow-pickle"):
        open_load(**{**hps, "allow_pickle": False})


@pytest.mark.parametrize("size", [(64, 33), (32, 16), (20, 10)])
def test_hps_pads_the_short_side_with_zeros(hps: dict[str, Any], size: tuple[int, int]) -> None:
    functional, bicubic = transforms.functional, transforms.InterpolationMode.BICUBIC
    mean, std = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
    image, height = IMAGES[0].resize(size), round(size[1] * 32 / size[0])
    small = functional.resize(functional.to_tensor(image), [height, 32], bicubic, antialias=True)
    expected = functional.normalize(torch.zeros(3, 32, 32), mean, std)
    top = (32 - height) // 2
    expected[:, top : top + height] = functional.normalize(small, mean, std)
    close(open_load(**hps).prepare(image), expected, atol=1e-6)


def test_openais_weights_get_the_activation_they_were_trained_with(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag's entry in open_clip's table decides; the tiny configuration says plain GELU."""
    assert open_clip.get_pretrained_cfg("ViT-B-32", "openai")["quick_gelu"] is True
    tiny = tiny_models.open_clip_configuration()
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-32", tiny)
    quick = open_load(open_folder, architecture="ViT-B-32", tag="openai").encode_texts(
        tiny_models.PROMPTS
    )
    plain = open_load(open_folder, architecture="ViT-B-32").encode_texts(tiny_models.PROMPTS)
    assert np.abs(quick - plain).max() > 1e-4
    with torch.no_grad():
        model = open_clip.create_model("ViT-B-32", force_quick_gelu=True, load_weights=False)
        model.load_state_dict(safetensors.load_file(open_folder / WEIGHTS))
        tokens = open_clip.get_tokenizer("ViT-B-32")(list(tiny_models.PROMPTS))
        close(quick, model.eval().encode_text(tokens, normalize=True), atol=1e-6)
    with pytest.raises(PlatformError, match="'unheard'"):
        open_load(open_folder, architecture="ViT-B-32", tag="unheard")


def test_weights_that_are_missing_or_too_many_are_refused(
    open_folder: Path, tmp_path: Path
) -> None:
    with refusal("checkpoint_damaged", "open_clip_config"):
        open_load(tmp_path)
    (tmp_path / CONFIGURATION).write_bytes((open_folder / CONFIGURATION).read_bytes())
    with refusal("checkpoint_wrong_class", WEIGHTS):
        open_load(tmp_path)
    state = safetensors.load_file(open_folder / WEIGHTS)
    lacking = {name: value for name, value in state.items() if name != "text_projection"}
    misshapen = {**state, "text_projection": torch.zeros(3, 3)}
    for weights, code, named in (
        (lacking, "checkpoint_incomplete", "text_projection"),
        ({**state, "stray": torch.zeros(2)}, "checkpoint_wrong_class", "stray"),
        (misshapen, "checkpoint_damaged", "text_projection"),
    ):
        safetensors.save_file(weights, tmp_path / WEIGHTS)
        with refusal(code, named):
            open_load(tmp_path)
