"""Question metrics over real models: their rows, loaded, give the written formula by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.checkpoints import Source
from evaluator.scorers.questions.lines import write_records
from evaluator.scorers.questions.question import Record
from evaluator.scorers.registry import load_rows, load_scorer
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.questions.fakes import yes_no
from tests.evaluator.scorers.tiny_blip import blip_vqa, t5_config, t5_tokenizer
from tests.evaluator.scorers.tiny_dual import SMALL, bert_tokenizer, picture, row, saved
from tests.evaluator.scorers.tiny_qwen import qwen2_vl

entailing = later("evaluator.scorers.models.entailment")
similar = later("evaluator.scorers.models.sentence_similarity")

P, OTHER = "a red car", "two dogs and a cat near the water"
QUESTIONS: list[Record] = [
    yes_no(P, "1", "a car?", element="a car", entailment=0.9),
    yes_no(P, "2", "red?", "1", element="red", entailment=0.9),
    yes_no(OTHER, "1", "two dogs?", element="two dogs", entailment=0.9),
    yes_no(OTHER, "2", "a cat?", expected="no", element="a cat", entailment=0.9),
    yes_no(OTHER, "3", "the water?", "1", element="the water", entailment=0.9),
]
ROWS = load_rows()


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("qwen"), *qwen2_vl())


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("blip"), *blip_vqa())


@pytest.mark.parametrize("name", ["pn-vqa-qwen2vl", "gecko-qwen25vl", "bvqa", "dsg-blip"])
def test_a_row_over_a_model_scores_the_same_alone_and_together(
    qwen: Path, blip: Path, tmp_path: Path, name: str
) -> None:
    path, place = tmp_path / "q.jsonl", qwen if "qwen" in name else blip
    write_records(path, QUESTIONS)
    runtime = Runtime(dtype="float32", folders={"model": place}, questions=path, offline=True)
    row = ROWS[name]
    if name == "bvqa":
        row = row.model_copy(update={"options": {}})  # at the tiny model's own size
    loaded = load_scorer(row, runtime)
    scorer: Any = loaded.scorer
    first, second = (scorer.prepare(picture(seed)) for seed in (6, 7))
    pairs = [(first, P), (first, OTHER), (second, OTHER)]
    (a, b), (c,) = scorer.score_texts([first, second], [[P, OTHER], [OTHER]])
    alone = [scorer.score_texts([image], [[prompt]])[0][0] for image, prompt in pairs]
    assert [one.score for one in (a, b, c)] == pytest.approx([one.score for one in alone], abs=2e-6)
    assert [len(one.answers) for one in (a, b, c)] == [2, 3, 3]
    assert loaded.environment["questions"].startswith("q.jsonl sha256:")
    assert loaded.environment["checkpoint"] == str(place)
    assert json.dumps(loaded.environment)


# Entailment: T5's first step, at the token of `1`

PREMISES = ["a red car", "a dog sleeps on a very old sofa"]
HYPOTHESES = ["what color? red", "who? a cat"]


def test_entailment_is_the_first_step_of_the_librarys_model(tmp_path: Path) -> None:
    tokenizer = t5_tokenizer("▁1", "▁0")
    torch.manual_seed(0)
    model = hf.T5ForConditionalGeneration(t5_config(tokenizer)).eval()
    place = Source(saved(tmp_path, model, tokenizer), "tiny", "")
    entailment = entailing.load_entailment(place, row(), Runtime())
    found = entailment.probabilities(PREMISES, HYPOTHESES)
    for value, premise, hypothesis in zip(found, PREMISES, HYPOTHESES, strict=True):
        text = f"premise: {premise} hypothesis: {hypothesis}"
        labels = torch.tensor([tokenizer.convert_tokens_to_ids(["▁1"])])
        with torch.no_grad():
            loss = model(**tokenizer(text, return_tensors="pt"), labels=labels).loss
        assert value == pytest.approx(float(torch.exp(-loss)), abs=1e-6)
        (alone,) = entailment.probabilities([premise], [hypothesis])
        assert value == pytest.approx(alone, abs=1e-6)
    with refusal("checkpoint_wrong_class", "2 tokens"):
        entailing.T5Entailment(model, t5_tokenizer())


# Similarity: cosines of mean-pooled states


def test_cosines_are_those_of_mean_pooled_states(tmp_path: Path) -> None:
    choices = ["a pine tree", "oak", "palm"]
    tokenizer = bert_tokenizer()
    torch.manual_seed(0)
    config = hf.MPNetConfig(
        **SMALL, vocab_size=len(tokenizer), initializer_range=0.5, pad_token_id=0
    )
    model = hf.MPNetModel(config).eval()
    place = Source(saved(tmp_path, model, tokenizer), "tiny", "")
    similarity = similar.load_similarity(place, row(), Runtime(dtype="bfloat16"))

    def pooled(text: str) -> Any:
        with torch.no_grad():
            return model(**tokenizer(text, return_tensors="pt")).last_hidden_state.mean(dim=1)

    found = similarity.cosines("tree", choices).tolist()
    own = pooled("tree")
    expected = [float(torch.cosine_similarity(own, pooled(choice))) for choice in choices]
    assert found == pytest.approx(expected, abs=1e-5)
    assert found == [float(similarity.cosines("tree", [choice])[0]) for choice in choices]
    assert similarity.cosines("oak", choices)[1] == pytest.approx(1)


def test_a_sentence_encoder_of_another_kind_is_refused(tmp_path: Path) -> None:
    place = Source(saved(tmp_path, hf.CLIPTextConfig()), "tiny", "")
    with refusal("checkpoint_wrong_class", "mpnet"):
        similar.load_similarity(place, row(), Runtime())
