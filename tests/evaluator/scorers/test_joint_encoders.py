"""Joint encoders: BLIP-2's matcher and contrast, FGA-BLIP2, ImageReward and CycleReward, as their authors compute."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluator.scorers.questions.files import write_records
from evaluator.scorers.registry import Runtime, ScorerRow, find_row, load_rows, load_scorer
from tests.evaluator.scorers import tiny_models
from tests.evaluator.scorers.common import hf, later, refusal, safetensors, torch
from tests.evaluator.scorers.questions.fakes import yes_no

itc = later("evaluator.scorers.families.blip2_itc")
finding = later("evaluator.scorers.models.element_spans")
lavis = later("evaluator.scorers.models.blip")
converting = later("evaluator.scorers.models.convert")
transforms = later("torchvision.transforms")

TEXTS = ["a red cat on the mat", "two dogs", "a woman in a big blue hat and a man", ""]
IMAGES = tiny_models.wide_pictures(4)
FIRST, SECOND = IMAGES[:2]
SIDE = 48  # Of FGA-BLIP2's images
HEADS = {
    "fga_blip2": {"vision_heads": 4, "qformer_heads": 4},
    "image_reward": {"vision_heads": 4, "text_heads": 4},
}
Folders = dict[str, dict[str, Path]]
Scorers = dict[str, Any]


@pytest.fixture(scope="module")
def model(folders: Folders) -> Any:
    return hf.Blip2ForImageTextRetrieval.from_pretrained(folders["blip2-itm"]["model"]).eval()


@pytest.fixture(scope="module")
def fga_model() -> Any:
    made = tiny_models.without_key_biases(
        tiny_models.blip2_matching(tiny_models.word_tokenizer(), SIDE)
    )
    made.vision_model.post_layernorm.eps = lavis.LAVIS_NORM_EPSILON
    return made


@pytest.fixture(scope="module")
def reward_net() -> Any:
    return tiny_models.reward_model(len(tiny_models.word_tokenizer()) + 2)


@pytest.fixture(scope="module")
def folders(fga_model: Any, reward_net: Any, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """The checkpoints of each metric, laid out as their authors'."""
    place, tokenizer = tmp_path_factory.mktemp("joint"), tiny_models.word_tokenizer()
    tiny_models.saved(
        place / "blip2", tiny_models.blip2_matching(tokenizer), tokenizer, tiny_models.square()
    )
    torch.save({"model": tiny_models.to_lavis(fga_model), "epoch": 3}, place / "fga_blip2.pth")
    torch.save(tiny_models.reward_state(reward_net), place / "ImageReward.pt")
    words = tiny_models.saved(place / "words", tokenizer)
    return {
        "blip2-itm": {"model": place / "blip2"},
        "fga-blip2": {"model": place / "fga_blip2.pth", "tokenizer": words},
        "imagereward": {"model": place / "ImageReward.pt", "tokenizer": words},
        "cyclereward-combo": {"model": place / "ImageReward.pt", "tokenizer": words},
    }


def row_of(name: str) -> ScorerRow:
    found = find_row(name, load_rows())
    options = {**found.options, **HEADS.get(found.family, {})}
    return found.model_copy(update={"options": options})


def load(folders: Folders, name: str, model: Path | None = None, **more: Any) -> Any:
    """A metric; its checkpoint from another place, if one is given."""
    which = folders["fga-blip2" if name.startswith("fga") else name]
    runtime = Runtime(
        folders={**which, "model": model or which["model"]}, **{"allow_pickle": True, **more}
    )
    return load_scorer(row_of(name), runtime).scorer


@pytest.fixture(scope="module")
def scorers(folders: Folders) -> Scorers:
    return {name: load(folders, name) for name in folders}


@pytest.fixture(scope="module")
def itm(scorers: Scorers) -> Any:
    return scorers["blip2-itm"]


@pytest.fixture(scope="module")
def fga(scorers: Scorers) -> Any:
    return scorers["fga-blip2"]


@pytest.fixture(scope="module")
def reward(scorers: Scorers) -> Any:
    return scorers["imagereward"]


# All of them


@pytest.mark.parametrize(
    ("name", "off"),
    [("blip2-itm", 0.03), ("fga-blip2", 0.1), ("imagereward", 0.05), ("cyclereward-combo", 0.05)],
)
def test_half_precision_stays_close(
    folders: Folders, scorers: Scorers, name: str, off: float
) -> None:
    exact, half = scorers[name], load(folders, name, dtype="bfloat16")
    images = [exact.prepare(image) for image in IMAGES[:3]]
    found = half.score(images, TEXTS[:3])
    assert found == pytest.approx(exact.score(images, TEXTS[:3]), abs=off)


@pytest.mark.parametrize(
    ("name", "longest"), [("blip2-itm", 35), ("imagereward", 35), ("cyclereward-combo", 128)]
)
def test_long_prompts_are_cut_and_said_to_be(scorers: Scorers, name: str, longest: int) -> None:
    scorer = scorers[name]
    image, whole = [scorer.prepare(FIRST)], " ".join(["cat"] * (longest - 2))
    assert scorer.truncated([whole, f"{whole} dog"]) == [False, True]
    cut = scorer.score(image, [f"{whole} dog"])
    assert cut == pytest.approx(scorer.score(image, [whole]), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "weight", "change"),
    [
        ("fga-blip2", "t5_proj.weight", (1, "checkpoint_wrong_class")),
        ("fga-blip2", "itm_head.bias", (None, "checkpoint_incomplete")),
        ("fga-blip2", "visual_encoder.blocks.1.attn.v_bias", (None, "checkpoint_incomplete")),
        ("fga-blip2", "query_tokens", (None, "checkpoint_incomplete")),
        ("fga-blip2", "ln_vision.bias", (3, "checkpoint_damaged")),
        ("imagereward", "blip.text_decoder.weight", (1, "checkpoint_wrong_class")),
        ("imagereward", "mlp.layers.6.bias", (None, "checkpoint_incomplete")),
    ],
)
def test_unknown_missing_and_misshapen_weights_are_refused_by_name(
    folders: Folders, tmp_path: Path, name: str, weight: str, change: tuple[int | None, str]
) -> None:
    length, code = change
    place = folders[name]["model"]
    state = torch.load(place)
    state = state.get("model", state)
    state.pop(weight, None)
    if length:
        state[weight] = torch.ones(length)
    torch.save(state, tmp_path / place.name)
    with refusal(code, "" if code == "checkpoint_damaged" else weight.rsplit(".", 1)[-1]):
        load(folders, name, tmp_path)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("fga-blip2", "Qformer.cls.predictions.decoder.weight"),
        ("imagereward", "blip.vision_proj.weight"),
    ],
)
def test_a_pickle_is_refused_and_a_converted_file_scores_the_same(
    folders: Folders, scorers: Scorers, tmp_path: Path, name: str, left_out: str
) -> None:
    with refusal("checkpoint_unsafe"):
        load(folders, name, allow_pickle=False)
    target = tmp_path / "converted.safetensors"
    assert left_out in converting.convert(name, folders[name]["model"], target)
    assert left_out not in safetensors.load_file(target)
    other = load(folders, name, target, allow_pickle=False)
    image = [other.prepare(FIRST)]
    score = scorers[name].score(image, TEXTS[:1])
    assert other.score(image, TEXTS[:1]) == pytest.approx(score, abs=1e-6)


# BLIP-2: the library's own numbers, each image once


@pytest.fixture(scope="module")
def contrast(folders: Folders) -> Any:
    tiny = tiny_models.row("blip2_itc")
    return itc.FAMILY.load(
        tiny, itc.FAMILY.check(tiny), tiny_models.here(folders["blip2-itm"]["model"])
    ).scorer


def by_library(model: Any, image: Any, prompt: str, length: int, head: bool) -> Any:
    """The library's own forward pass of one pair."""
    text = tiny_models.word_tokenizer()(
        [prompt], truncation=True, max_length=length, return_tensors="pt"
    )
    text.pop("token_type_ids", None)
    pixels = tiny_models.square()(images=image, return_tensors="pt")
    with torch.no_grad():
        return model(**pixels, **text, use_image_text_matching_head=head).logits_per_image


def test_matching_is_softmax_of_the_mean_of_logits(itm: Any, model: Any) -> None:
    found = itm.score([itm.prepare(image) for image in IMAGES], TEXTS)
    wanted = [
        float(by_library(model, image, prompt, 35, head=True).softmax(dim=1)[0, 1])
        for image, prompt in zip(IMAGES, TEXTS, strict=True)
    ]
    assert found == pytest.approx(wanted, abs=1e-6)
    assert max(wanted) - min(wanted) > 0.02


def test_vision_tower_and_cross_attention_keys_run_once_per_image(folders: Folders) -> None:
    itm = load(folders, "blip2-itm")
    parts = itm._model._model
    rows = {"vision": 0, "keys": 0}

    def count(name: str) -> Any:
        def hook(_: Any, __: Any, out: Any) -> None:
            rows[name] += len(getattr(out, "last_hidden_state", out))

        return hook

    parts.vision_model.register_forward_hook(count("vision"))
    cross = parts.qformer.encoder.layer[0].crossattention.attention
    cross.key.register_forward_hook(count("keys"))
    itm.score_texts([itm.prepare(image) for image in IMAGES[:2]], [TEXTS, TEXTS])
    assert rows == {"vision": 2, "keys": 2}


def test_words_are_kept_where_the_configuration_names_an_image_token(
    folders: Folders, itm: Any, tmp_path: Path
) -> None:
    """The library then takes the first tokens for places of the image and drops them."""
    tokenizer = tiny_models.word_tokenizer()
    named = tiny_models.saved(
        tmp_path,
        tiny_models.blip2_matching(tokenizer, image_token_index=5),
        tokenizer,
        tiny_models.square(),
    )
    image = [itm.prepare(IMAGES[0])]
    score = load(folders, "blip2-itm", named).score(image, TEXTS[:1])
    assert score == pytest.approx(itm.score(image, TEXTS[:1]), abs=1e-6)


def test_contrast_is_the_librarys_largest_query_cosine_in_any_batch(
    model: Any, contrast: Any
) -> None:
    grid = [(image, text) for image in IMAGES[:3] for text in TEXTS[:3]]
    wanted = [float(by_library(model, *pair, 32, head=False)[0, 0]) for pair in grid]
    prepared = [contrast.prepare(image) for image, _ in grid]
    texts = [text for _, text in grid]
    found = contrast.score(prepared, texts)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert np.ptp(wanted) > 0.01
    alone = [contrast.score([one], [text])[0] for one, text in zip(prepared, texts, strict=True)]
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_an_image_is_one_row_of_all_its_vectors(contrast: Any) -> None:
    seen = contrast.encode_images([contrast.prepare(image) for image in IMAGES])
    said = contrast.encode_texts(TEXTS)
    assert seen.shape == (4, 4 * 16)
    np.testing.assert_allclose(np.linalg.norm(seen.reshape(16, 16), axis=1), 1, atol=1e-6)
    every = np.einsum("nqd,nd->nq", seen.reshape(4, 4, 16), said)
    np.testing.assert_allclose(contrast.similarity(seen, said), every.max(axis=1), atol=1e-6)
    assert np.ptp(every, axis=1).min() > 0
    assert contrast.truncated(["cat " * 30, "cat " * 31]) == [False, True]


# FGA-BLIP2: mean of softmaxes, element spans, LAVIS' weights

PROMPT = "A red cat, two dogs and a man in a RED hat."


@pytest.fixture(scope="module")
def probabilities(fga_model: Any) -> tuple[list[float], list[float]]:
    """p(match) at the query tokens and at [CLS] a red cat , two ..., by the library's fga_model."""
    text = tiny_models.word_tokenizer()(
        ["a red cat, two dogs and a man in a red hat"], return_tensors="pt"
    )
    text.pop("token_type_ids", None)
    pixels = tiny_models.square(SIDE)(images=FIRST, return_tensors="pt")
    with torch.no_grad():
        out = fga_model(**pixels, **text, use_image_text_matching_head=True)
        hidden = out.text_model_output.last_hidden_state
        matched = fga_model.itm_head(hidden).softmax(dim=2)[0, :, 1].tolist()
    return matched[:4], matched[4:]


def test_overall_is_the_mean_of_softmaxes_from_1_to_5_and_elements_that_over_their_tokens(
    fga: Any, probabilities: tuple[list[float], list[float]]
) -> None:
    queries, tokens = probabilities  # [CLS] a red cat , two dog ##s and a man in a red hat [SEP]
    image = [fga.prepare(FIRST)]
    assert fga.score(image, [PROMPT]) == [pytest.approx(1 + sum(queries), abs=1e-6)]
    elements = ["red cat (attribute)", "dogs (object)", "man (human)", "red (color)", "hat"]
    spans = [(2, 4), (6, 8), (10, 11), (2, 3), (14, 15)]
    wanted = [sum(tokens[a:b]) / (b - a) for a, b in spans]
    (found,) = fga.score_elements(image, [PROMPT], [elements])
    assert found == pytest.approx(wanted, abs=1e-6)
    assert fga.element_problems([PROMPT], [elements]) == [[""] * 5]


def test_overall_and_element_scores_of_an_image_run_the_vision_tower_once(
    folders: Folders, fga: Any
) -> None:
    counted = load(folders, "fga-blip2")
    encoded: list[int] = []
    counted._model._model.vision_model.register_forward_hook(
        lambda _, __, out: encoded.append(len(out.last_hidden_state))
    )
    first, second = counted.prepare(FIRST), counted.prepare(SECOND)
    counted.score_texts([first, second], [[PROMPT, "a dog"], [PROMPT]])
    pairs = [(first, PROMPT, ["hat"]), (first, "a dog", ["dog"]), (second, PROMPT, ["cat"])]
    found = counted.score_elements(*zip(*pairs, strict=True))
    assert encoded == [2]
    apart = [fga.score_elements([image], [text], [names])[0] for image, text, names in pairs]
    assert [one for (one,) in found] == pytest.approx([one for (one,) in apart], abs=1e-6)


LONG = " ".join(["mat"] * 49 + ["cat", "dog"])


@pytest.mark.parametrize(
    ("prompt", "element", "span", "problem"),
    [
        ("a red cat and a red hat", "red (color)", (1, 2), ""),
        ("a red cat", "red cat (object)", (1, 3), ""),
        ("a red cat", "red (cat) (color)", None, "word for"),  # cut at the last bracket
        ("a red cat", "cat", (2, 3), ""),
        ("A Red CAT", "Cat (animal)", (2, 3), ""),
        ("a red cat", "dog (animal)", None, "word for"),
        ("a red cat", "ca (animal)", None, "word for"),
        ("a cat: red", "cat: red (x)", None, "punctuation"),  # taken out of prompts
        ("a cat, red", "cat, red (x)", (1, 4), ""),  # stays
        (LONG, "cat (animal)", (49, 50), ""),
        (LONG, "dog (animal)", None, "word 50"),
        ("a red cat", "(color)", None, "nothing"),
        ("cat on the mat", "cat (animal)", (0, 1), ""),
    ],
)
def test_which_tokens_are_an_elements(
    prompt: str, element: str, span: tuple[int, int] | None, problem: str
) -> None:
    tokenizer = tiny_models.word_tokenizer()
    found = finding.ElementFinder(lambda text: tokenizer(text)["input_ids"][1:-1], 50).find(
        prompt, element
    )
    if span is None:
        assert found.start == found.stop
        assert problem in found.problem
    else:
        assert (found.start, found.stop, found.problem) == (*span, "")


def test_captions_are_cleaned_as_by_lavis_and_cut_at_word_50(fga: Any) -> None:
    caption, cleaned = '  A "Cat" (red):  runs\nfast; #1!\n', "a cat red runs\nfast 1"
    assert finding.clean_caption(caption, 50) == cleaned
    assert finding.clean_caption("one two more", 2).split() == ["one", "two"]
    assert fga.truncated([LONG, LONG.rsplit(" ", 1)[0], "a cat."]) == [True, False, False]
    image = [fga.prepare(FIRST)]
    assert fga.score(image, [LONG]) == fga.score(image, [LONG.replace("dog", "cat")])


def test_an_element_that_is_not_found_has_no_score_but_0_by_the_reference(
    fga: Any, folders: Folders
) -> None:
    reference = load(folders, "fga-blip2-reference")
    image = [fga.prepare(FIRST)]
    wanted = [["house (object)", "cat", "cat (animal)"]]
    ours = fga.score_elements(image, [PROMPT], wanted)[0]
    theirs = reference.score_elements(image, [PROMPT], wanted)[0]
    assert math.isnan(ours[0])
    assert fga.element_problems([PROMPT], wanted)[0][0]
    # Their code cuts at the bracket that is not there, and finds nothing.
    assert theirs[:2] == [0.0, 0.0]
    assert theirs[2] == ours[1] == ours[2]


def test_the_mean_of_elements_reads_them_from_a_question_file(
    fga: Any, folders: Folders, tmp_path: Path
) -> None:
    prompt, path = "a red cat", tmp_path / "elements.jsonl"
    elements = ["red (color)", "cat (animal)", "dog (animal)"]
    write_records(path, [yes_no(prompt, name, f"{name}?", element=name) for name in elements])
    mean = load(folders, "fga-blip2-es-avg", questions=path)
    image = fga.prepare(FIRST)
    ((red, cat),) = fga.score_elements([image], [prompt], [["red", "cat"]])
    found, unknown = mean.score_texts([image], [[prompt, "a dog"]])[0]
    assert found.score == pytest.approx((red + cat) / 2)
    assert [answer.valid for answer in found.answers] == [True, True, False]
    assert found.answers[2].raw
    assert math.isnan(unknown.score) and unknown.problem
    with refusal("questions_missing"):
        load(folders, "fga-blip2-es-avg")


def test_converting_from_the_command_line_refuses_the_checkpoint_of_another_metric(
    folders: Folders,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "fga.safetensors"
    for metric, code in (("fga-blip2", 0), ("imagereward", 1)):
        monkeypatch.setattr(
            "sys.argv", ["convert", metric, str(folders["fga-blip2"]["model"]), str(target)]
        )
        assert converting.main() == code
    said = capsys.readouterr()
    assert target.name in said.out and "4 weights" in said.out
    assert said.err
    with refusal("checkpoint_wrong_class"):
        converting.convert("imagereward", folders["fga-blip2"]["model"], target)


# ImageReward and CycleReward: the written formulas, cut as the authors cut

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def look(image: Image.Image) -> Any:
    """The authors' transform."""
    steps = [
        transforms.Resize(32, interpolation=transforms.InterpolationMode.BICUBIC),
        transforms.CenterCrop(32),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    return transforms.Compose(steps)(image)


def formula(
    reward_net: Any, image: Image.Image, prompt: str, length: int = 35, head: Any = None
) -> float:
    """The authors' raw reward with the library's modules: padded texts, one pair at a time."""
    cut = {"padding": "max_length", "truncation": True, "max_length": length}
    text = tiny_models.word_tokenizer()(prompt, return_tensors="pt", **cut)
    with torch.no_grad():
        states = reward_net.vision(look(image)[None]).last_hidden_state
        hidden = reward_net.text(
            text["input_ids"],
            attention_mask=text["attention_mask"],
            encoder_hidden_states=states,
            encoder_attention_mask=torch.ones(states.shape[:2], dtype=torch.long),
        ).last_hidden_state
        return float((head or reward_net.layers)(hidden[:, 0]))


def test_score_is_the_standardised_reward_of_the_first_token(reward: Any, reward_net: Any) -> None:
    images = IMAGES
    prepared = [reward.prepare(image) for image in images]
    found = reward.score(prepared, TEXTS)
    raw = [formula(reward_net, *pair) for pair in zip(images, TEXTS, strict=True)]
    wanted = [(each - 0.16717362830052426) / 1.0333394966054072 for each in raw]
    assert found == pytest.approx(wanted, abs=2e-6)
    assert max(wanted) - min(wanted) > 0.02


def test_cyclereward_is_the_raw_reward_of_a_head_with_gelus(
    scorers: Scorers, reward_net: Any
) -> None:
    scorer, nn = scorers["cyclereward-combo"], torch.nn
    layers = [layer for layer in reward_net.layers if isinstance(layer, nn.Linear)]
    head = nn.Sequential(
        *(part for layer in layers[:-1] for part in (layer, nn.GELU())), layers[-1]
    )
    found = scorer.score([scorer.prepare(image) for image in IMAGES], TEXTS)
    pairs = list(zip(IMAGES, TEXTS, strict=True))
    wanted = [formula(reward_net, *pair, length=128, head=head) for pair in pairs]
    assert found == pytest.approx(wanted, abs=2e-6)
    linear = [formula(reward_net, *pair, length=128) for pair in pairs]
    assert min(abs(a - b) for a, b in zip(found, linear, strict=True)) > 0.01


def test_images_are_cut_as_the_authors_cut_them_where_an_odd_rest_is_left(reward: Any) -> None:
    image = tiny_models.picture(5, 64, 43)
    torch.testing.assert_close(reward.prepare(image), look(image), rtol=0, atol=1e-6)
    assert (transforms.Resize(32)(image).width - 32) % 2 == 1
