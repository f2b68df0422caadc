"""FGA-BLIP2: mean of softmaxes, element spans, LAVIS' weights, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.schema import Element
from evaluator.scorers.models.blip2_elements import ElementFinder, clean_caption
from evaluator.scorers.questions.lines import write_records
from evaluator.scorers.registry import find_row, load_rows, load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.asking import Asked, Item
from evaluator.scoring.images.canonical import as_png
from evaluator.scoring.in_process.asker import ModelSource
from tests.evaluator.scorers.common import later, refusal, safetensors, torch
from tests.evaluator.scorers.questions.fakes import yes_no
from tests.evaluator.scorers.tiny_blip import (
    blip2_matching,
    square,
    to_lavis,
    wide_pictures,
    without_key_biases,
    word_tokenizer,
)
from tests.evaluator.scorers.tiny_dual import saved

lavis = later("evaluator.scorers.models.blip2_lavis")
converting = later("evaluator.scorers.models.convert")

SIDE = 48
PROMPT = "A red cat, two dogs and a man in a RED hat."
FIRST, SECOND = wide_pictures(2)
Folders = dict[str, Path]


@pytest.fixture(scope="module")
def model() -> Any:
    made = without_key_biases(blip2_matching(word_tokenizer(), SIDE))
    made.vision_model.post_layernorm.eps = lavis.LAVIS_NORM_EPSILON
    return made


@pytest.fixture(scope="module")
def folders(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    place = tmp_path_factory.mktemp("fga")
    torch.save({"model": to_lavis(model), "epoch": 3}, place / "fga_blip2.pth")
    return {"model": place / "fga_blip2.pth", "tokenizer": saved(place / "w", word_tokenizer())}


def row_of(name: str) -> ScorerRow:
    row = find_row(name, load_rows())
    options = {**row.options, "vision_heads": 4, "qformer_heads": 4}
    return row.model_copy(update={"options": options})


def load(folders: Folders, name: str = "fga-blip2", **more: Any) -> Any:
    given = {"allow_pickle": True, **more}
    return load_scorer(row_of(name), Runtime(folders=folders, **given)).scorer


@pytest.fixture(scope="module")
def scorer(folders: Folders) -> Any:
    return load(folders)


@pytest.fixture(scope="module")
def probabilities(model: Any) -> tuple[list[float], list[float]]:
    """p(match) at the query tokens and at [CLS] a red cat , two ..., by the library's model."""
    text = word_tokenizer()(["a red cat, two dogs and a man in a red hat"], return_tensors="pt")
    text.pop("token_type_ids", None)
    pixels = square(SIDE)(images=FIRST, return_tensors="pt")
    with torch.no_grad():
        out = model(**pixels, **text, use_image_text_matching_head=True)
        hidden = out.text_model_output.last_hidden_state
        matched = model.itm_head(hidden).softmax(dim=2)[0, :, 1].tolist()
    return matched[:4], matched[4:]


def test_overall_is_the_mean_of_softmaxes_from_1_to_5_and_elements_that_over_their_tokens(
    scorer: Any, probabilities: tuple[list[float], list[float]]
) -> None:
    queries, tokens = probabilities  # [CLS] a red cat , two dog ##s and a man in a red hat [SEP]
    image = [scorer.prepare(FIRST)]
    assert scorer.score(image, [PROMPT]) == [pytest.approx(1 + sum(queries), abs=1e-6)]
    elements = ["red cat (attribute)", "dogs (object)", "man (human)", "red (color)", "hat"]
    spans = [(2, 4), (6, 8), (10, 11), (2, 3), (14, 15)]
    wanted = [sum(tokens[a:b]) / (b - a) for a, b in spans]
    (found,) = scorer.score_elements(image, [PROMPT], [elements])
    assert found == pytest.approx(wanted, abs=1e-6)
    assert scorer.element_problems([PROMPT], [elements]) == [[""] * 5]


def test_overall_and_element_scores_of_an_image_run_the_vision_tower_once(
    folders: Folders, scorer: Any
) -> None:
    counted = load(folders)
    encoded: list[int] = []
    counted._matcher._model.vision_model.register_forward_hook(
        lambda _, __, out: encoded.append(len(out.last_hidden_state))
    )
    first, second = counted.prepare(FIRST), counted.prepare(SECOND)
    counted.score_texts([first, second], [[PROMPT, "a dog"], [PROMPT]])
    pairs = [(first, PROMPT, ["hat"]), (first, "a dog", ["dog"]), (second, PROMPT, ["cat"])]
    found = counted.score_elements(*zip(*pairs, strict=True))
    assert encoded == [2]
    apart = [scorer.score_elements([image], [text], [names])[0] for image, text, names in pairs]
    assert [one for (one,) in found] == pytest.approx([one for (one,) in apart], abs=1e-6)


def test_the_engine_gets_overall_and_element_scores(folders: Folders, scorer: Any) -> None:
    source = ModelSource(row_of("fga-blip2"), Runtime(folders=folders, allow_pickle=True))
    elements = (Element("1", "red cat (attribute)"), Element("2", "house (object)"))
    with source.open() as asker:
        ready = asker.ready(as_png(FIRST))
        reply = asker.ask([Item("image", ready, (Asked("pair", "text", PROMPT, elements),))])
    prepared = [scorer.prepare(FIRST)]
    assert reply.verdicts[0][0].score == pytest.approx(scorer.score(prepared, [PROMPT])[0])
    assert reply.elements is not None
    found, missing = reply.elements[0][0]
    assert [found] == pytest.approx(scorer.score_elements(prepared, [PROMPT], [["red cat"]])[0])
    assert math.isnan(missing)


def test_half_precision_stays_close(folders: Folders, scorer: Any) -> None:
    half = load(folders, dtype="bfloat16")
    images = [scorer.prepare(FIRST), scorer.prepare(SECOND)]
    exact = scorer.score(images, [PROMPT, "two dogs"])
    assert half.score(images, [PROMPT, "two dogs"]) == pytest.approx(exact, abs=0.1)


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
    tokenizer = word_tokenizer()
    found = ElementFinder(lambda text: tokenizer(text)["input_ids"][1:-1], 50).find(prompt, element)
    if span is None:
        assert found.start == found.stop
        assert problem in found.problem
    else:
        assert (found.start, found.stop, found.problem) == (*span, "")


def test_captions_are_cleaned_as_by_lavis_and_cut_at_word_50(scorer: Any) -> None:
    cleaned = "a cat red runs\nfast 1"
    assert clean_caption('  A "Cat" (red):  runs\nfast; #1!\n', 50) == cleaned
    assert clean_caption("one two three", 2).split() == ["one", "two"]
    assert scorer.truncated([LONG, LONG.rsplit(" ", 1)[0], "a cat."]) == [True, False, False]
    image = [scorer.prepare(FIRST)]
    assert scorer.score(image, [LONG]) == scorer.score(image, [LONG.replace("dog", "cat")])


def test_an_element_that_is_not_found_has_no_score_but_0_by_the_reference(
    scorer: Any, folders: Folders
) -> None:
    reference = load(folders, "fga-blip2-reference")
    image = [scorer.prepare(FIRST)]
    wanted = [["house (object)", "cat", "cat (animal)"]]
    ours = scorer.score_elements(image, [PROMPT], wanted)[0]
    theirs = reference.score_elements(image, [PROMPT], wanted)[0]
    assert math.isnan(ours[0])
    assert scorer.element_problems([PROMPT], wanted)[0][0]
    # Their code cuts at the bracket that is not there, and finds nothing.
    assert theirs[:2] == [0.0, 0.0]
    assert theirs[2] == ours[1] == ours[2]


def test_the_mean_of_elements_reads_them_from_a_question_file(
    scorer: Any, folders: Folders, tmp_path: Path
) -> None:
    prompt, path = "a red cat", tmp_path / "elements.jsonl"
    elements = ["red (color)", "cat (animal)", "dog (animal)"]
    write_records(path, [yes_no(prompt, name, f"{name}?", element=name) for name in elements])
    mean = load(folders, "fga-blip2-es-avg", questions=path)
    image = scorer.prepare(FIRST)
    ((red, cat),) = scorer.score_elements([image], [prompt], [["red", "cat"]])
    found, unknown = mean.score_texts([image], [[prompt, "a dog"]])[0]
    assert found.score == pytest.approx((red + cat) / 2)
    assert [answer.valid for answer in found.answers] == [True, True, False]
    assert found.answers[2].raw
    assert math.isnan(unknown.score) and unknown.problem
    with refusal("questions_missing"):
        load(folders, "fga-blip2-es-avg")


def test_weights_survive_the_way_through_lavis_names(model: Any) -> None:
    back = lavis.from_lavis(to_lavis(model))
    state = model.state_dict()
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)
    config = lavis.blip2_config(back, lavis.Heads(4, 4))
    for part in ("vision_config", "qformer_config"):
        found, wanted = getattr(config, part).to_dict(), getattr(model.config, part).to_dict()
        assert {k: v for k, v in found.items() if v != wanted[k]} == {}


@pytest.mark.parametrize(
    ("name", "length", "code"),
    [
        ("t5_proj.weight", 1, "checkpoint_wrong_class"),
        ("itm_head.bias", None, "checkpoint_incomplete"),
        ("visual_encoder.blocks.1.attn.v_bias", None, "checkpoint_incomplete"),
        ("query_tokens", None, "checkpoint_incomplete"),
        ("ln_vision.bias", 3, "checkpoint_damaged"),
    ],
)
def test_unknown_missing_and_misshapen_weights_are_refused_by_name(
    folders: Folders, tmp_path: Path, name: str, length: int | None, code: str
) -> None:
    state = torch.load(folders["model"])["model"]
    state.pop(name, None)
    if length:
        state[name] = torch.ones(length)
    torch.save(state, tmp_path / "fga_blip2.pth")
    named = "" if code == "checkpoint_damaged" else name.rsplit(".", 1)[-1]
    with refusal(code, named):
        load({**folders, "model": tmp_path})


def test_a_pickle_is_refused_and_a_converted_file_scores_the_same(
    folders: Folders, scorer: Any, tmp_path: Path
) -> None:
    with refusal("checkpoint_unsafe"):
        load(folders, allow_pickle=False)
    target = tmp_path / "fga_blip2.safetensors"
    assert "temp" in converting.convert("fga-blip2", folders["model"], target)
    assert "Qformer.cls.predictions.decoder.weight" not in safetensors.load_file(target)
    other = load({**folders, "model": target}, allow_pickle=False)
    image = [scorer.prepare(FIRST)]
    assert other.score(image, [PROMPT]) == scorer.score(image, [PROMPT])


def test_converting_from_the_command_line_refuses_the_checkpoint_of_another_metric(
    folders: Folders,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "fga.safetensors"
    for metric, code in (("fga-blip2", 0), ("imagereward", 1)):
        monkeypatch.setattr("sys.argv", ["convert", metric, str(folders["model"]), str(target)])
        assert converting.main() == code
    said = capsys.readouterr()
    assert target.name in said.out and "4 weights" in said.out
    assert said.err
    with refusal("checkpoint_wrong_class"):
        converting.convert("imagereward", folders["model"], target)
