"""A judge behind `transformers serve`, which reads images and ignores what it does not know."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.errors import PlatformError
from evaluator.scorers.registry import Runtime, ScorerRow, load_scorer
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers.chat_server import endpoints_file
from tests.evaluator.scorers.common import refusal
from tests.kit.processes import await_answer, free_port, running

pytestmark = pytest.mark.slow

QUESTION = "Does it show {prompt}? Yes or No."
PROMPTS = [*"abcdefgh"]


@dataclass(frozen=True)
class Served:
    """A model behind the server, and the answer that it is known to give."""

    name: str
    address: str
    answer: Callable[[Image.Image, str], str]


def pictures() -> list[Image.Image]:
    """One of each colour."""
    return [Image.new("RGB", (56, 56), (31 * k, 255 - 31 * k, 90)) for k in range(len(PROMPTS))]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A small random model that can say Yes or No alone, and then ends."""
    import torch

    from tests.evaluator.scorers.tiny_models import qwen2_vl

    model, processor = qwen2_vl()
    yes, no = (processor.tokenizer.convert_tokens_to_ids(word) for word in ("Yes", "No"))
    with torch.no_grad():
        kept = torch.randn(model.config.text_config.hidden_size)
        model.lm_head.weight.zero_()
        model.lm_head.weight[yes], model.lm_head.weight[no] = kept, -kept
    model.generation_config.eos_token_id = [yes, no]
    folder = tmp_path_factory.mktemp("served")
    model.save_pretrained(folder / "model")
    processor.save_pretrained(folder / "model")

    def answer(image: Image.Image, prompt: str) -> str:
        words = [{"type": "image"}, {"type": "text", "text": QUESTION.format(prompt=prompt)}]
        text = processor.apply_chat_template(
            [{"role": "user", "content": words}], add_generation_prompt=True
        )
        with torch.inference_mode():
            logits = model(**processor(images=[image], text=[text], return_tensors="pt")).logits
        return "Yes" if logits[0, -1, yes] > logits[0, -1, no] else "No"

    port, log = free_port(), folder / "log"
    command = [
        Path(sys.executable).parent / "transformers", "serve", folder / "model",
        "--host", "127.0.0.1", "--port", port, "--device", "cpu",
    ]  # fmt: skip
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    with log.open("wb") as out, running(command, stdout=out, stderr=out, env=offline) as process:
        await_answer(f"http://127.0.0.1:{port}/health", process, log)
        yield Served(str(folder / "model"), f"http://127.0.0.1:{port}/v1", answer)


@pytest.fixture
def scorer_of(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Loads a judge at the server; each test has replies of its own."""
    path = endpoints_file(tmp_path, served.address)
    same = f"answers_as = [{served.name + '@main'!r}]"
    free = f'\n[endpoint.models."{served.name}"]\ninput_usd = 0\noutput_usd = 0\n{same}\n'
    path.write_text(path.read_text() + free)
    monkeypatch.setenv("ASSAY_ENDPOINTS", str(path))

    def loaded(**options: Any) -> Any:
        own = {"endpoint": "here", "model": served.name, "question": QUESTION}
        row = ScorerRow(
            name="judge", family="endpoint_judge", title="Judge", summary="Asks.", formula="P(Yes)",
            source="this test", options=own | options,
        )  # fmt: skip
        return load_scorer(row, Runtime()).scorer

    return loaded


def test_words_are_read_from_a_model_that_sees_image_and_prompt(
    served: Served, scorer_of: Callable[..., Any]
) -> None:
    scorer = scorer_of(reading="choice", choices={"Yes": 1.0, "No": 0.0}, max_tokens=4)
    asked = [(image, prompt) for image in pictures() for prompt in PROMPTS]
    images = [scorer.prepare(image) for image, _ in asked]
    found: list[Verdict] = [
        one for (one,) in scorer.score_texts(images, [[prompt] for _, prompt in asked])
    ]
    said = [one.answers[0].raw for one in found]
    assert said == [served.answer(image, prompt) for image, prompt in asked]
    assert [one.score for one in found] == [float(word == "Yes") for word in said]
    assert set(said) == {"Yes", "No"}


def test_probabilities_that_it_ignores_in_silence_are_missed_at_once(
    scorer_of: Callable[..., Any],
) -> None:
    scorer = scorer_of(reading="probability")
    images = [scorer.prepare(pictures()[0])]
    with refusal("logprobs_ignored", kind=PlatformError):
        scorer.score_texts(images, [PROMPTS[:1]])
