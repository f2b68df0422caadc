"""Question metrics over real models: their rows, loaded, give the written formula by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.checkpoints import Source
from evaluator.scorers.questions.lines import write_records
from evaluator.scorers.questions.question import Record
from evaluator.scorers.registry import load_rows, load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.questions.fakes import yes_no
from tests.evaluator.scorers.tiny_blip import blip_vqa, t5_config, t5_tokenizer
from tests.evaluator.scorers.tiny_dual import SMALL, bert_tokenizer, picture, row, saved
from tests.evaluator.scorers.tiny_qwen import Tiny, qwen2_vl
from tests.evaluator.scorers.tiny_vlm import independent_logprobs

entailing = later("evaluator.scorers.models.entailment")
similar = later("evaluator.scorers.models.sentence_similarity")

P, OTHER = "a red car", "two dogs and a cat near the water"
QUESTIONS: list[Record] = [
    yes_no(P, "1", "a car?", element="a car"),
    yes_no(P, "2", "red?", "1", element="red"),
    yes_no(OTHER, "1", "two dogs?", element="two dogs"),
    yes_no(OTHER, "2", "a cat?", expected="no", element="a cat"),
    yes_no(OTHER, "3", "the water?", "1", element="the water"),
]
ROWS = load_rows()
Kept = tuple[Tiny, Path]


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    tiny = qwen2_vl()
    return tiny, saved(tmp_path_factory.mktemp("qwen"), *tiny)


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    tiny = blip_vqa()
    return tiny, saved(tmp_path_factory.mktemp("blip"), *tiny)


def load(row: ScorerRow, model: Path, folder: Path, questions: Sequence[Record] = QUESTIONS) -> Any:
    path = folder / "q.jsonl"
    write_records(path, questions)
    runtime = Runtime(dtype="float32", folders={"model": model}, questions=path, offline=True)
    return load_scorer(row, runtime)


def test_pn_vqa_with_a_chat_model(qwen: Kept, tmp_path: Path) -> None:
    tiny, place = qwen
    scorer = load(ROWS["pn-vqa-qwen2vl"], place, tmp_path).scorer
    image = picture(3)

    def share(question: str, answer: str) -> float:
        put = f"This image is generated from {OTHER}. Is the answer to {question} in this image"
        ids = [tiny[1].tokenizer.encode(word) for word in ("Yes", "No")]
        yes, no = (float(independent_logprobs(tiny, image, f"{put} {answer}?", i)[0]) for i in ids)
        return 1 / (1 + math.exp(no - yes))

    wanted = [("two dogs?", "yes", "no"), ("a cat?", "no", "yes"), ("the water?", "yes", "no")]
    expected = [(share(question, a) + 1 - share(question, b)) / 2 for question, a, b in wanted]
    found = scorer.score_texts([scorer.prepare(image)], [[P, OTHER]])[0][1]
    assert [answer.value for answer in found.answers] == pytest.approx(expected, abs=2e-6)
    assert found.score == pytest.approx(sum(expected) / 3, abs=2e-6)


def test_gecko_with_a_chat_model(qwen: Kept, tmp_path: Path) -> None:
    tiny, place = qwen
    choices = ("red", "dark blue", "green")
    about: Any = {"choices": choices, "expected": choices[1], "entailment": 0.9}
    loaded = load(ROWS["gecko-qwen25vl"], place, tmp_path, [yes_no(P, "1", "Color?", **about)])
    image = picture(4)
    ask = ROWS["gecko-qwen25vl"].options["template"].replace("{question}", "Color?")
    encode = tiny[1].tokenizer.encode
    totals = [float(independent_logprobs(tiny, image, ask, encode(c)).sum()) for c in choices]
    found = loaded.scorer.score([loaded.scorer.prepare(image)], [P])
    assert found[0] == pytest.approx(float(torch.tensor(totals).softmax(0)[1]), abs=2e-6)
    assert loaded.environment["hypothesis"] == "{question} {answer}"


def test_bvqa_with_blip(blip: Kept, tmp_path: Path) -> None:
    row = ROWS["bvqa"].model_copy(update={"options": {}})  # at the tiny model's own size
    scorer = load(row, blip[1], tmp_path).scorer
    model, processor = blip[0]
    vocab = processor.tokenizer.get_vocab()
    pixels = scorer.prepare(picture(5))
    values = []
    for question in ("two dogs?", "a cat?", "the water?"):
        ids = processor.tokenizer(question, return_tensors="pt").input_ids
        ids[0, 0] = vocab["[ENC]"]
        with torch.no_grad():
            seen = model.vision_model(pixels).last_hidden_state
            read = model.text_encoder(ids, encoder_hidden_states=seen).last_hidden_state
            start = torch.tensor([[vocab["[DEC]"]]])
            logits = model.text_decoder(start, encoder_hidden_states=read).logits[0, 0]
        values.append(round(float(torch.sigmoid(logits[vocab["yes"]] - logits[vocab["no"]])), 4))
    found = scorer.score_texts([pixels], [[OTHER]])[0][0]
    assert [answer.value for answer in found.answers] == pytest.approx(values, abs=1.01e-4)
    assert found.score == pytest.approx(math.prod(values), abs=3e-4)


def test_dsg_with_blip_gives_the_same_alone_and_together(blip: Kept, tmp_path: Path) -> None:
    loaded = load(ROWS["dsg-blip"], blip[1], tmp_path)
    first, second = (loaded.scorer.prepare(picture(seed)) for seed in (6, 7))
    together = loaded.scorer.score_texts([first, second], [[P, OTHER], [OTHER]])
    alone = [
        loaded.scorer.score_texts([image], [[prompt]])[0][0]
        for image, prompt in ((first, P), (first, OTHER), (second, OTHER))
    ]
    assert [*together[0], *together[1]] == alone
    assert loaded.environment["questions"].startswith("q.jsonl sha256:")
    assert loaded.environment["checkpoint"] == str(blip[1])
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
