"""Each row's number equals its formula, computed in a few lines with the library's model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from PIL import Image

from evaluator.scorers import answering
from evaluator.scorers.registry import ROWS, load_rows, load_scorer
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers import tiny_models
from tests.evaluator.scorers.common import later, torch
from tests.evaluator.scorers.questions.fakes import FakeAnswers

likelihood = later("evaluator.scorers.families.vlm_likelihood")

PROMPTS = ["a red ball", 'two dogs "beside" a {tree}', "x"]
BY_NAME = {r.name: r for r in load_rows(ROWS).values() if r.family == "vlm_likelihood"}

# Numbers from log-probabilities, against their definitions

LOGITS = st.lists(st.floats(-30, 30), min_size=3, max_size=8)
LOGPROBS = st.lists(st.floats(-40, 0), min_size=1, max_size=5)


@given(LOGITS)
def test_of_yes_and_no_norm_is_a_sigmoid_and_diff_is_over_the_vocabulary(
    logits: list[float],
) -> None:
    values = torch.tensor(logits, dtype=torch.float64)
    yes, no = torch.log_softmax(values, dim=0)[:2].numpy()
    found = answering.p_yes_norm([yes], [no])
    assert_allclose(found, torch.sigmoid(values[0] - values[1]).item(), rtol=1e-9)
    assert_allclose(found + answering.p_yes_norm([no], [yes]), 1)
    shares = torch.softmax(values, dim=0)
    assert_allclose(answering.p_diff([yes], [no]), float(shares[0] - shares[1]), atol=1e-12)


@given(st.integers(1, 4), st.integers(0, 99))
def test_geo_mean_is_exp_of_the_negative_loss(n: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, 7, generator=generator, dtype=torch.float64)
    label = torch.randint(7, (n,), generator=generator)
    logprobs = torch.log_softmax(logits, dim=-1)[torch.arange(n), label]
    loss = torch.nn.functional.cross_entropy(logits, label)
    assert_allclose(answering.geo_mean_with_eos(logprobs), torch.exp(-loss).item())


@given(st.lists(LOGPROBS, min_size=1, max_size=5))
def test_shares_of_choices_sum_to_one(choices: list[list[float]]) -> None:
    shares = [answering.choice_norm(choices, k) for k in range(len(choices))]
    weights = np.exp([sum(one) - max(map(sum, choices)) for one in choices])
    assert_allclose(shares, weights / weights.sum())
    assert_allclose(sum(shares), 1)


def test_ranges_hold_where_an_answer_is_impossible_and_no_answer_is_refused() -> None:
    assert answering.p_first([-np.inf]) == 0
    assert answering.p_yes_norm([0.0], [-np.inf]) == 1
    assert answering.p_diff([-np.inf], [0.0]) == -1
    with pytest.raises(ValueError, match="one token"):
        answering.p_first([])


# Rows


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("rows")
    made = {
        "qwen2": tiny_models.qwen2_vl(),
        "qwen3": tiny_models.qwen3_vl(),
        "llava": tiny_models.llava(),
    }
    made |= {"blip2": tiny_models.blip2_t5(), "instructblip": tiny_models.blip2_t5(instruct=True)}
    return {name: tiny_models.saved(place / name, *one) for name, one in made.items()}


def loaded(name: str, folder: Path, **more: Any) -> Any:
    row = BY_NAME[name].model_copy(update={"dtype": "float32", **more})
    return load_scorer(row, tiny_models.here(folder)).scorer


def scores(scorer: Any, image: Image.Image) -> Any:
    return scorer.score_texts([scorer.prepare(image)], [PROMPTS])[0]


def test_every_row_names_a_question_that_its_family_takes() -> None:
    assert len(BY_NAME) >= 15
    for row in BY_NAME.values():
        options = likelihood.FAMILY.check(row)
        assert options.question_about("{}x") == options.question.replace("{}", "{}x")
        assert (row.low, row.high) == (-1.0 if options.reduce == "p_diff" else 0.0, 1.0)
    paper = likelihood.FAMILY.check(BY_NAME["crocscore-p-paper"])
    assert (paper.reading.square, paper.reading.side) == ("squash", 1024)


def by_decoder(scorer: Any, image: Image.Image, question: str) -> tuple[Any, list[int], int]:
    """Log p of all tokens where Yes and the end are to stand; these tokens, and that of No."""
    text, model = scorer._model._text, scorer._model._model
    one, tokenizer = text.inputs_of(text.prepare(image), question), text.tokenizer
    yes, no = (tokenizer.encode(word, add_special_tokens=False) for word in ("Yes", "No"))
    more = {
        name: torch.cat([v[0], v[0, -1:].expand(len(yes))])[None]
        for name, v in one.per_token.items()
    }
    if hasattr(model.model, "rope_deltas"):
        model.model.rope_deltas = None
    with torch.no_grad():
        ids = torch.cat([one.ids, torch.tensor(yes)])
        logits = model(input_ids=ids[None], **more, **one.pixels).logits[0, -len(yes) - 1 :]
    return torch.log_softmax(logits.double(), dim=-1), [*yes, tokenizer.eos_token_id], no[0]


def by_labels(tiny: Any, image: Image.Image, question: str) -> tuple[Any, list[int], int]:
    """The same of an encoder-decoder."""
    model, processor = tiny
    yes, no = (processor.tokenizer.encode(word)[0] for word in ("yes", "no"))
    inputs = processor(images=image, text=question, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs, labels=torch.tensor([[yes, 1]])).logits[0]
    return torch.log_softmax(logits.double(), dim=-1), [yes, 1], no


SHOW = 'Does this figure show "{}"? Please answer Yes or No.'
SHOW_LOW = SHOW.replace("Yes or No", "yes or no")
CROC = "Does this image show the following content:'{}'? Answer with Yes or No."


@pytest.mark.parametrize(
    ("name", "model", "question"),
    [
        ("vqascore-any", "qwen2", SHOW),
        ("vqascore-any", "qwen3", SHOW),
        ("vqascore-llava15", "llava", SHOW_LOW), ("crocscore", "qwen2", CROC),
        ("vqascore-instructblip", "instructblip", ""), ("vnli-zeroshot", "blip2", ""),
    ],
)  # fmt: skip
def test_a_row_equals_its_formula(
    folders: dict[str, Path], name: str, model: str, question: str
) -> None:
    options = BY_NAME[name].options
    squash = {"options": {**options, "reading": {"square": "squash", "side": 112}}}
    scorer = loaded(name, folders[model], **(squash if name == "crocscore" else {}))
    image = tiny_models.picture(1, 90, 60)
    seen = image.resize((112, 112), Image.Resampling.LANCZOS) if name == "crocscore" else image
    options = likelihood.FAMILY.check(BY_NAME[name])
    for prompt, score in zip(PROMPTS, scores(scorer, image), strict=True):
        if question:
            logp, label, no = by_decoder(scorer, seen, question.replace("{}", prompt))
        else:
            tiny = tiny_models.blip2_t5(instruct=model == "instructblip")
            logp, label, no = by_labels(tiny, image, options.question_about(prompt))
        p, yes = logp[0].exp(), label[0]
        wanted = {
            "p_first": p[yes],
            "p_diff": p[yes] - p[no],
            "p_yes_norm": p[yes] / (p[yes] + p[no]),
            "geo_mean_with_eos": logp[range(len(label)), label].mean().exp(),
        }[options.reduce]
        assert_allclose(score, wanted, atol=1e-6)


def test_nan_from_a_model_is_a_verdict_with_a_reason() -> None:
    model = FakeAnswers(logprobs={("x", "a?", "Yes"): [-1.0], ("x", "b?", "Yes"): [math.nan]})
    options = likelihood.Options(question="{}?", answer="Yes", reduce="p_first")
    first, second = likelihood.VLMLikelihood(model, options).score_texts(["x"], [["a", "b"]])[0]
    assert first == pytest.approx(math.exp(-1))
    assert isinstance(second, Verdict)
    assert "NaN" in second.problem
