"""The skeleton that asks a vision-language model, with a tiny one from a folder like the Hub's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from evaluator.__main__ import command_line
from evaluator.isolation.inside.frames import Capability
from evaluator.isolation.job import Job, ModelFiles
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from tests.evaluator.isolation.boxes import png
from tests.evaluator.scorers.tiny_qwen import qwen2_vl

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LIMITS = Limits(start_s=120.0, batch_s=120.0, job_s=240.0)
PROMPTS = ["a cat", "two dogs under a red tree"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    folder = tmp_path_factory.mktemp("models") / "models--me--tiny"
    snapshot = folder / "snapshots" / COMMIT
    network, processor = qwen2_vl()
    network.save_pretrained(snapshot)
    processor.save_pretrained(snapshot)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    return ModelFiles("me/tiny", COMMIT, folder)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    words = ["init", "vlm", str(tmp_path / "m"), "--model", f"me/tiny@{COMMIT}"]
    assert CliRunner().invoke(command_line(), words).exit_code == 0
    return tmp_path / "m"


@pytest.mark.slow
def test_it_runs_with_the_model_it_is_given(module: Path, model: ModelFiles) -> None:
    images = [png("red", (32, 32)), png("blue", (32, 32))]
    pairs = [(0, PROMPTS[0]), (1, PROMPTS[0]), (0, PROMPTS[1])]
    with PlainProcess().start(Job(module, limits=LIMITS, models=(model,))) as box:
        assert Capability.SCORE_TEXTS in box.capabilities
        together = box.score(images, pairs)
        alone = [box.score([images[i]], [(0, text)])[0] for i, text in pairs]
    assert np.all((together > 0) & (together < 1))
    assert len(set(together)) == 3
    assert together == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("models", [None, {}])
def test_it_says_how_to_name_a_model_where_none_is_named(models: dict[str, str] | None) -> None:
    from evaluator.templates.vlm.scorer import Scorer

    with pytest.raises(ValueError, match=r'models = \["owner/name@commit"\] into assay.toml'):
        Scorer(models=models)


def test_a_score_is_the_share_of_yes_after_the_question(model: ModelFiles) -> None:
    import torch

    from evaluator.templates.vlm.scorer import QUESTION, Scorer

    scorer = Scorer(models={"me/tiny": str(model.folder / "snapshots" / COMMIT)})
    network, processor = qwen2_vl()
    image = Image.new("RGB", (32, 32), "red")
    content = [
        {"type": "image"},
        {"type": "text", "text": QUESTION.format(prompt=PROMPTS[1])},
    ]
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    inputs = processor(text=[text], images=[image], return_tensors="pt")
    with torch.inference_mode():
        found = torch.softmax(network(**inputs).logits[0, -1].float(), dim=-1)
    tokens = processor.tokenizer.get_vocab()
    yes, no = (
        [found[tokens[w]] for w in words if w in tokens] for words in (("Yes", "yes"), ("No", "no"))
    )
    assert yes
    assert no
    share = float(sum(yes) / (sum(yes) + sum(no)))
    assert scorer.score([image], [PROMPTS[1]]) == pytest.approx([share], abs=1e-5)
