"""Cosines of mean-pooled states equal those of the library's model called by hand."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_vlm import row_of

if TYPE_CHECKING:
    import torch

    from evaluator.scorers.models.sentence_similarity import SentenceSimilarity

CHOICES = ["a pine tree", "oak", "palm"]
Made: TypeAlias = "tuple[Any, Any, SentenceSimilarity]"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    import torch
    from transformers import BertTokenizer, MPNetConfig, MPNetModel

    from evaluator.scorers.models.sentence_similarity import load_similarity

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]
    words += [f"##{letter}" for letter in string.ascii_lowercase]
    tokenizer = BertTokenizer(vocab={word: i for i, word in enumerate(words)})
    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_attention_heads=4,
        num_hidden_layers=2,
        intermediate_size=37,
        initializer_range=0.5,
        pad_token_id=0,
    )
    model = MPNetModel(config).eval()
    folder = tmp_path_factory.mktemp("sbert")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    loaded = load_similarity(Source(folder, "tiny", ""), row_of(), Runtime(dtype="bfloat16"))
    return model, tokenizer, loaded


def pooled(model: Any, tokenizer: Any, text: str) -> torch.Tensor:
    import torch

    with torch.no_grad():
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state
    mean: torch.Tensor = states.mean(dim=1)
    return mean


def test_cosines_are_those_of_mean_pooled_states(made: Made) -> None:
    import torch

    model, tokenizer, similarity = made
    found = similarity.cosines("tree", CHOICES)
    own = pooled(model, tokenizer, "tree")
    expected = [
        float(torch.cosine_similarity(own, pooled(model, tokenizer, choice))) for choice in CHOICES
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)
    assert similarity.cosines("oak", CHOICES)[1] == pytest.approx(1)


def test_a_cosine_does_not_depend_on_the_other_texts(made: Made) -> None:
    together = made[2].cosines("tree", CHOICES).tolist()
    assert together == [float(made[2].cosines("tree", [choice])[0]) for choice in CHOICES]


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    from transformers import CLIPTextConfig, CLIPTextModel

    from evaluator.scorers.models.sentence_similarity import load_similarity

    config = CLIPTextConfig(
        vocab_size=10,
        hidden_size=8,
        intermediate_size=8,
        num_attention_heads=2,
        num_hidden_layers=1,
    )
    CLIPTextModel(config).save_pretrained(tmp_path)
    with pytest.raises(SubmitterError, match="mpnet") as caught:
        load_similarity(Source(tmp_path, "tiny", ""), row_of(), Runtime())
    assert caught.value.code == "checkpoint_wrong_class"
