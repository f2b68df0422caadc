"""FGA-BLIP2: mean of softmaxes, element spans, LAVIS' weights, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.schema import Element
from evaluator.scorers.models.blip2_elements import ElementFinder, clean_caption
from evaluator.scorers.registry import find_row, load_rows, load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.asking import Asked, Item
from evaluator.scoring.images.canonical import as_png
from evaluator.scoring.in_process.asker import ModelSource
from tests.evaluator.scorers.tiny_blip2 import (
    bert_tokenizer,
    made_up_images,
    square_processor,
    tiny_blip2,
    to_lavis,
    without_key_biases,
)

if TYPE_CHECKING:
    from transformers import BertTokenizer

SIDE = 48
PROMPT = "A red cat, two dogs and a man in a RED hat."


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizer:
    return bert_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer: BertTokenizer) -> Any:
    from evaluator.scorers.models.blip2_lavis import LAVIS_NORM_EPSILON

    made = without_key_biases(tiny_blip2(tokenizer, SIDE))
    made.vision_model.post_layernorm.eps = LAVIS_NORM_EPSILON
    return made


@pytest.fixture(scope="module")
def folders(
    model: Any, tokenizer: BertTokenizer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    import torch

    place = tmp_path_factory.mktemp("fga")
    torch.save({"model": to_lavis(model), "epoch": 3}, place / "fga_blip2.pth")
    tokenizer.save_pretrained(place / "words")
    return {"model": place / "fga_blip2.pth", "tokenizer": place / "words"}


def row_of(name: str) -> ScorerRow:
    row = find_row(name, load_rows())
    return row.model_copy(
        update={"options": {**row.options, "vision_heads": 4, "qformer_heads": 4}}
    )


def load(name: str, folders: dict[str, Path], **more: Any) -> Any:
    return load_scorer(row_of(name), Runtime(folders=folders, allow_pickle=True, **more)).scorer


@pytest.fixture(scope="module")
def scorer(folders: dict[str, Path]) -> Any:
    return load("fga-blip2", folders)


@pytest.fixture(scope="module")
def probabilities(model: Any, tokenizer: BertTokenizer) -> tuple[list[float], list[float]]:
    """p(match) at the query tokens and at [CLS] a red cat , two ..., by the library's model."""
    import torch

    text = tokenizer(["a red cat, two dogs and a man in a red hat"], return_tensors="pt")
    text.pop("token_type_ids", None)
    pixels = square_processor(SIDE)(images=made_up_images(1)[0], return_tensors="pt")
    with torch.no_grad():
        out = model(**pixels, **text, use_image_text_matching_head=True)
        hidden = out.text_model_output.last_hidden_state
        matched = model.itm_head(hidden).softmax(dim=2)[0, :, 1].tolist()
    return matched[:4], matched[4:]


def test_overall_is_the_mean_of_softmaxes_from_1_to_5(
    scorer: Any, probabilities: tuple[list[float], list[float]]
) -> None:
    image = scorer.prepare(made_up_images(1)[0])
    (found,) = scorer.score([image], [PROMPT])
    assert found == pytest.approx(1 + 4 * sum(probabilities[0]) / 4, abs=1e-6)


def test_an_element_is_the_mean_over_its_own_tokens(
    scorer: Any, probabilities: tuple[list[float], list[float]]
) -> None:
    tokens = probabilities[1]  # [CLS] a red cat , two dog ##s and a man in a red hat [SEP]
    image = scorer.prepare(made_up_images(1)[0])
    elements = ["red cat (attribute)", "dogs (object)", "man (human)", "red (color)", "hat"]
    (found,) = scorer.score_elements([image], [PROMPT], [elements])
    spans = [(2, 4), (6, 8), (10, 11), (2, 3), (14, 15)]
    wanted = [sum(tokens[a:b]) / (b - a) for a, b in spans]
    assert found == pytest.approx(wanted, abs=1e-6)
    assert scorer.element_problems([PROMPT], [elements]) == [[""] * 5]


def test_overall_and_element_scores_of_an_image_run_the_vision_tower_once(
    folders: dict[str, Path],
) -> None:
    scorer = load("fga-blip2", folders)
    encoded: list[int] = []
    scorer._matcher._model.vision_model.register_forward_hook(
        lambda _, __, out: encoded.append(len(out.last_hidden_state))
    )
    first, second = (scorer.prepare(image) for image in made_up_images(2))
    scorer.score_texts([first, second], [[PROMPT, "a dog"], [PROMPT]])
    pairs = [(first, PROMPT, ["hat"]), (first, "a dog", ["dog"]), (second, PROMPT, ["cat"])]
    found = scorer.score_elements(*zip(*pairs, strict=True))
    assert encoded == [2]
    alone = load("fga-blip2", folders)
    apart = [alone.score_elements([image], [text], [names])[0] for image, text, names in pairs]
    assert [one for (one,) in found] == pytest.approx([one for (one,) in apart], abs=1e-6)


def test_the_engine_gets_overall_and_element_scores(folders: dict[str, Path], scorer: Any) -> None:
    source = ModelSource(row_of("fga-blip2"), Runtime(folders=folders, allow_pickle=True))
    image = made_up_images(1)[0]
    elements = (Element("1", "red cat (attribute)"), Element("2", "house (object)"))
    with source.open() as asker:
        ready = asker.ready(as_png(image))
        reply = asker.ask([Item("image", ready, (Asked("pair", "text", PROMPT, elements),))])
    prepared = [scorer.prepare(image)]
    assert reply.verdicts[0][0].score == pytest.approx(scorer.score(prepared, [PROMPT])[0])
    assert reply.elements is not None
    found, missing = reply.elements[0][0]
    (wanted,) = scorer.score_elements(prepared, [PROMPT], [["red cat"]])
    assert found == pytest.approx(wanted[0])
    assert math.isnan(missing)


def test_half_precision_stays_close(folders: dict[str, Path], scorer: Any) -> None:
    half = load("fga-blip2", folders, dtype="bfloat16")
    images = [scorer.prepare(image) for image in made_up_images(2)]
    exact = scorer.score(images, [PROMPT, "two dogs"])
    assert half.score(images, [PROMPT, "two dogs"]) == pytest.approx(exact, abs=0.1)


LONG = " ".join(["mat"] * 49 + ["cat", "dog"])
SPANS = {
    "first of two": ("a red cat and a red hat", "red (color)", (1, 2), ""),
    "several tokens": ("a red cat", "red cat (object)", (1, 3), ""),
    "cut at the last bracket": ("a red cat", "red (cat) (color)", None, "word for word"),
    "no bracket": ("a red cat", "cat", (2, 3), ""),
    "upper case": ("A Red CAT", "Cat (animal)", (2, 3), ""),
    "not in the prompt": ("a red cat", "dog (animal)", None, "word for word"),
    "half a word": ("a red cat", "ca (animal)", None, "word for word"),
    "punctuation taken out of prompts": ("a cat: red", "cat: red (x)", None, "punctuation"),
    "punctuation that stays": ("a cat, red", "cat, red (x)", (1, 4), ""),
    "word 50": (LONG, "cat (animal)", (49, 50), ""),
    "word 51": (LONG, "dog (animal)", None, "past word 50"),
    "nothing before the bracket": ("a red cat", "(color)", None, "nothing is left"),
    "first word": ("cat on the mat", "cat (animal)", (0, 1), ""),
}


@pytest.mark.parametrize("case", SPANS)
def test_span_table(case: str, tokenizer: BertTokenizer) -> None:
    finder = ElementFinder(lambda text: tokenizer(text)["input_ids"][1:-1], 50)
    prompt, element, span, problem = SPANS[case]
    found = finder.find(prompt, element)
    if span is None:
        assert found.start == found.stop
        assert problem in found.problem
    else:
        assert (found.start, found.stop, found.problem) == (*span, "")


def test_captions_are_cleaned_as_by_lavis() -> None:
    assert clean_caption('  A "Cat" (red):  runs\nfast; #1!\n', 50) == "a cat red runs\nfast 1"
    assert clean_caption("one two three", 2) == "one two"


def test_an_element_that_is_not_found_has_no_score_but_0_by_the_reference(
    scorer: Any, folders: dict[str, Path]
) -> None:
    reference = load("fga-blip2-reference", folders)
    image = [scorer.prepare(made_up_images(1)[0])]
    wanted = [["house (object)", "cat", "cat (animal)"]]
    ours = scorer.score_elements(image, [PROMPT], wanted)[0]
    theirs = reference.score_elements(image, [PROMPT], wanted)[0]
    assert math.isnan(ours[0])
    assert scorer.element_problems([PROMPT], wanted)[0][0]
    # Their code cuts at the bracket that is not there, and finds nothing.
    assert theirs[:2] == [0.0, 0.0]
    assert theirs[2] == ours[1] == ours[2]


def test_the_mean_of_elements_reads_them_from_a_question_file(
    scorer: Any, folders: dict[str, Path], tmp_path: Path
) -> None:
    lines = [
        '{"prompt": "a red cat", "question_id": "1", "question": "Is it red?", '
        '"expected": "yes", "element": "red (color)"}',
        '{"prompt": "a red cat", "question_id": "2", "question": "Is it a cat?", '
        '"expected": "yes", "element": "cat (animal)"}',
        '{"prompt": "a red cat", "question_id": "3", "question": "Is there a dog?", '
        '"expected": "no", "element": "dog (animal)"}',
    ]
    (tmp_path / "elements.jsonl").write_text("\n".join(lines))
    mean = load("fga-blip2-es-avg", folders, questions=tmp_path / "elements.jsonl")
    image = scorer.prepare(made_up_images(1)[0])
    (red, cat), _ = scorer.score_elements([image] * 2, ["a red cat"] * 2, [["red", "cat"], []])
    found, unknown = mean.score_texts([image], [["a red cat", "a dog"]])[0]
    assert found.score == pytest.approx((red + cat) / 2)
    assert [answer.valid for answer in found.answers] == [True, True, False]
    assert "word for word" in found.answers[2].raw
    assert math.isnan(unknown.score)
    assert unknown.problem


def test_the_mean_of_elements_needs_a_question_file(folders: dict[str, Path]) -> None:
    with pytest.raises(SubmitterError) as refusal:
        load("fga-blip2-es-avg", folders)
    assert refusal.value.code == "questions_missing"


def test_words_past_the_fiftieth_are_said_not_to_be_read(scorer: Any) -> None:
    assert scorer.truncated([LONG, LONG.rsplit(" ", 1)[0], "a cat."]) == [True, False, False]
    image = [scorer.prepare(made_up_images(1)[0])]
    assert scorer.score(image, [LONG]) == scorer.score(image, [LONG.replace("dog", "cat")])


def test_weights_survive_the_way_through_lavis_names(model: Any) -> None:
    import torch

    from evaluator.scorers.models.blip2_lavis import Heads, blip2_config, from_lavis

    back = from_lavis(to_lavis(model))
    state = model.state_dict()
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)
    config = blip2_config(back, Heads(4, 4))
    for part in ("vision_config", "qformer_config"):
        found, wanted = getattr(config, part).to_dict(), getattr(model.config, part).to_dict()
        assert {k: v for k, v in found.items() if v != wanted[k]} == {}


SPOILT: dict[str, tuple[dict[str, int | None], str, str]] = {
    # A weight is so many ones, or missing.
    "unknown": (
        {"t5_proj.weight": 1},
        "checkpoint_wrong_class",
        "t5_proj.weight",
    ),
    "missing": ({"itm_head.bias": None}, "checkpoint_incomplete", "itm_head.bias"),
    "half of a bias": (
        {"visual_encoder.blocks.1.attn.v_bias": None},
        "checkpoint_incomplete",
        "v_bias",
    ),
    "no queries": ({"query_tokens": None}, "checkpoint_incomplete", "query_tokens"),
    "misshapen": ({"ln_vision.bias": 3}, "checkpoint_damaged", ""),
}


@pytest.mark.parametrize("case", SPOILT)
def test_unknown_missing_and_misshapen_weights_are_refused_by_name(
    case: str, model: Any, folders: dict[str, Path], tmp_path: Path
) -> None:
    import torch

    spoil, code, named = SPOILT[case]
    kept: dict[str, Any] = {k: v for k, v in to_lavis(model).items() if k not in spoil}
    kept |= {name: torch.ones(n) for name, n in spoil.items() if n is not None}
    torch.save(kept, tmp_path / "fga_blip2.pth")
    with pytest.raises(SubmitterError) as refusal:
        load("fga-blip2", {**folders, "model": tmp_path})
    assert refusal.value.code == code
    assert named in refusal.value.message


def test_a_pickle_is_refused_unless_allowed(folders: dict[str, Path]) -> None:
    with pytest.raises(SubmitterError) as refusal:
        load_scorer(row_of("fga-blip2"), Runtime(folders=folders))
    assert refusal.value.code == "checkpoint_unsafe"


@pytest.fixture
def converted(folders: dict[str, Path], tmp_path: Path) -> Path:
    from evaluator.scorers.models.convert import convert

    target = tmp_path / "fga_blip2.safetensors"
    left_out = convert("fga-blip2", folders["model"], target)
    assert "temp" in left_out
    return target


def test_a_converted_file_scores_the_same_without_pickles(
    converted: Path, folders: dict[str, Path], scorer: Any
) -> None:
    from safetensors.torch import load_file

    assert "Qformer.cls.predictions.decoder.weight" not in load_file(converted)
    runtime = Runtime(folders={**folders, "model": converted})
    other: Any = load_scorer(row_of("fga-blip2"), runtime).scorer
    image = [scorer.prepare(made_up_images(1)[0])]
    assert other.score(image, [PROMPT]) == scorer.score(image, [PROMPT])


def test_converting_from_the_command_line(
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from evaluator.scorers.models.convert import main

    target = tmp_path / "fga.safetensors"
    for metric, code in (("fga-blip2", 0), ("imagereward", 1)):
        monkeypatch.setattr("sys.argv", ["convert", metric, str(folders["model"]), str(target)])
        assert main() == code
    said = capsys.readouterr()
    assert "fga.safetensors written; 4 weights left out" in said.out
    assert "no place for" in said.err


def test_converting_refuses_the_checkpoint_of_another_metric(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    from evaluator.scorers.models.convert import convert

    with pytest.raises(SubmitterError) as refusal:
        convert("imagereward", folders["model"], tmp_path / "x.safetensors")
    assert refusal.value.code == "checkpoint_wrong_class"
