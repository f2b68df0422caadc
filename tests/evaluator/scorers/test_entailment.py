"""p(entailed) equals the softmax of the library's T5 at the first step, at the token of `1`."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_seq2seq import t5_config
from tests.evaluator.scorers.tiny_vlm import row_of

if TYPE_CHECKING:
    from transformers import T5Tokenizer

    from evaluator.scorers.models.entailment import T5Entailment

PREMISES = ["a red car", "a dog sleeps on a very old sofa"]
HYPOTHESES = ["what color? red", "who? a cat"]
Made: TypeAlias = "tuple[Any, Any, T5Entailment]"


def tokenizer_of(*answers: str) -> T5Tokenizer:
    from transformers import T5Tokenizer

    pieces = ["<pad>", "</s>", "<unk>", "▁", *answers, *string.ascii_lowercase, ":", "?", "1", "0"]
    return T5Tokenizer(vocab=[(piece, -2.0) for piece in pieces], extra_ids=0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    import torch
    from transformers import T5ForConditionalGeneration

    from evaluator.scorers.models.entailment import load_entailment

    tokenizer = tokenizer_of("▁1", "▁0")
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(t5_config(tokenizer)).eval()
    folder = tmp_path_factory.mktemp("nli")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer, load_entailment(Source(folder, "tiny", ""), row_of(), Runtime())


def test_equals_the_first_step_of_the_librarys_model(made: Made) -> None:
    import torch

    model, tokenizer, entailment = made
    found = entailment.probabilities(PREMISES, HYPOTHESES)
    for value, premise, hypothesis in zip(found, PREMISES, HYPOTHESES, strict=True):
        text = f"premise: {premise} hypothesis: {hypothesis}"
        labels = torch.tensor([tokenizer.convert_tokens_to_ids(["▁1"])])
        with torch.no_grad():
            loss = model(**tokenizer(text, return_tensors="pt"), labels=labels).loss
        assert value == pytest.approx(float(torch.exp(-loss)), abs=1e-6)


def test_a_pair_does_not_depend_on_the_others(made: Made) -> None:
    together = made[2].probabilities(PREMISES, HYPOTHESES).tolist()
    alone = [
        float(made[2].probabilities([premise], [hypothesis])[0])
        for premise, hypothesis in zip(PREMISES, HYPOTHESES, strict=True)
    ]
    assert together == pytest.approx(alone, abs=1e-6)


def test_a_tokenizer_that_splits_1_is_refused(made: Made) -> None:
    from evaluator.scorers.models.entailment import T5Entailment

    with pytest.raises(SubmitterError, match="2 tokens") as caught:
        T5Entailment(made[0], tokenizer_of())
    assert caught.value.code == "checkpoint_wrong_class"
