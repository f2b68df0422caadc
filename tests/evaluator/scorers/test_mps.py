"""MPS: cross-attention masked by a condition, in plain steps; both thresholds, one text at a time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaluator.scorers.registry import Runtime, find_row, load_rows, load_scorer
from tests.evaluator.scorers import tiny_rewards as rewards
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.tiny_models import LONG, wide_pictures

family = later("evaluator.scorers.families.mps")

TEXTS = ["a red ball", "two dogs", "light and color", ""]
IMAGES = wide_pictures(4)


@pytest.fixture(scope="module")
def base(clip: Path) -> Path:
    return clip


@pytest.fixture(scope="module")
def state(base: Path) -> dict[str, Any]:
    return rewards.mps_state(base)


def load(folder: Path, base: Path, state: dict[str, Any], name: str = "mps") -> Any:
    row = find_row(name, load_rows()).model_copy(update={"dtype": "float32"})
    return load_scorer(row, Runtime(folders=rewards.mps_folders(folder, base, state))).scorer


@pytest.fixture(scope="module")
def scorers(
    base: Path, state: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("scorers")
    return {name: load(place, base, state, name) for name in ("mps", "mps-forward")}


class Steps:
    """The written formula, one pair and one head at a time."""

    def __init__(self, base: Path, state: dict[str, Any]) -> None:
        self.clip = hf.CLIPModel.from_pretrained(base).eval()
        self.tokenizer = hf.AutoTokenizer.from_pretrained(base)
        self.images = hf.CLIPImageProcessorPil.from_pretrained(base)
        self.state = state

    def text(self, text: str) -> tuple[Any, int]:
        """States of the 77 places, and where the text ends."""
        ids = self.tokenizer(
            text, padding="max_length", truncation=True, max_length=77, return_tensors="pt"
        )["input_ids"]
        hidden = self.clip.text_model(input_ids=ids).last_hidden_state
        end = ids[0].tolist().index(self.tokenizer.eos_token_id)
        return self.clip.text_projection(hidden)[0], end

    def attended(self, text: Any, threshold: float) -> Any:
        condition, _ = self.text(find_row("mps", load_rows()).options["condition"])
        largest = torch.stack([(condition @ token).max() for token in text])
        return largest / largest.max() > threshold

    def attention(self, queries: Any, keys: Any, values: Any, attended: Any = None) -> Any:
        heads = []
        for query in queries.split(rewards.MPS_HEAD, dim=-1):
            weights = query @ keys.T / rewards.MPS_HEAD**0.5
            if attended is not None:
                weights = weights.masked_fill(~attended, -math.inf)
            heads.append(weights.softmax(dim=-1) @ values)
        return torch.cat(heads, dim=-1)

    def turned(self, values: Any, n: int) -> Any:
        """Each pair of numbers as a complex one, turned by its place times its frequency."""
        frequency = self.state[f"cross_model.layers.{n}.1.fn.rotary_emb.inv_freq"]
        angles = torch.arange(len(values))[:, None] * frequency
        real, imaginary = values[:, : rewards.MPS_HEAD // 2], values[:, rewards.MPS_HEAD // 2 :]
        found = torch.complex(real, imaginary) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([found.real, found.imag], dim=-1)

    def swiglu(self, values: Any) -> Any:
        return (
            torch.nn.functional.silu(values[:, rewards.MPS_INNER :])
            * values[:, : rewards.MPS_INNER]
        )

    def normed(self, values: Any, block: str) -> Any:
        return torch.nn.functional.layer_norm(
            values, (rewards.MPS_WIDTH,), self.state[f"{block}norm.weight"]
        )

    def score(self, image: Image.Image, prompt: str, threshold: float) -> float:
        with torch.no_grad():
            pixels = self.images(images=image, return_tensors="pt")["pixel_values"]
            hidden = self.clip.vision_model(pixel_values=pixels).last_hidden_state
            states = self.clip.visual_projection(hidden)[0]
            text, end = self.text(prompt)
            attended = self.attended(text, threshold)
            for n in range(rewards.MPS_BLOCKS):
                states = states + self.cross(
                    states, text, attended, f"cross_model.layers.{n}.0.fn."
                )
                states = states + self.own(states, n)
            cosine = torch.dot(text[end], states[0]) / (text[end].norm() * states[0].norm())
            return float(self.clip.logit_scale.exp() * cosine)

    def cross(self, states: Any, text: Any, attended: Any, block: str) -> Any:
        normed = self.normed(states, block)
        keys, values = (text @ self.state[f"{block}to_kv.weight"].T).split(rewards.MPS_HEAD, dim=-1)
        queries = normed @ self.state[f"{block}to_q.weight"].T
        seen = self.attention(queries, keys, values, attended)
        beside = self.swiglu(normed @ self.state[f"{block}ff.0.weight"].T)
        return (
            seen @ self.state[f"{block}to_out.weight"].T
            + beside @ self.state[f"{block}ff.2.weight"].T
        )

    def own(self, states: Any, n: int) -> Any:
        block = f"cross_model.layers.{n}.1.fn."
        fused = self.normed(states, block) @ self.state[f"{block}fused_attn_ff_proj.weight"].T
        queries, keys, values, beside = fused.split(
            (
                rewards.MPS_HEADS * rewards.MPS_HEAD,
                rewards.MPS_HEAD,
                rewards.MPS_HEAD,
                2 * rewards.MPS_INNER,
            ),
            dim=-1,
        )
        turned = [self.turned(query, n) for query in queries.split(rewards.MPS_HEAD, dim=-1)]
        seen = self.attention(torch.cat(turned, dim=-1), self.turned(keys, n), values)
        return (
            seen @ self.state[f"{block}attn_out.weight"].T
            + self.swiglu(beside) @ self.state[f"{block}ff_out.1.weight"].T
        )


@pytest.mark.parametrize(("name", "threshold"), [("mps", 0.3), ("mps-forward", 0.01)])
def test_a_score_is_that_of_the_written_steps(
    scorers: dict[str, Any], base: Path, state: dict[str, Any], name: str, threshold: float
) -> None:
    scorer, steps = scorers[name], Steps(base, state)
    found = scorer.score([scorer.prepare(image) for image in IMAGES], TEXTS)
    wanted = [
        steps.score(image, text, threshold) for image, text in zip(IMAGES, TEXTS, strict=True)
    ]
    assert found == pytest.approx(wanted, abs=1e-5)
    assert max(wanted) - min(wanted) > 0.01


def test_prompts_beyond_the_context_are_said_to_be(scorers: dict[str, Any]) -> None:
    assert scorers["mps"].truncated([TEXTS[0], LONG[0]]) == [False, True]


def test_thresholds_differ_and_a_text_without_any_product_is_attended_to_nowhere() -> None:
    texts = torch.tensor([[[1.0, 0.0], [0.2, 0.0]], [[0.1, 0.0], [0.02, 0.0]], [[0.0, 1], [0, 2]]])
    condition = torch.tensor([[1.0, 0.0], [0.5, 0.0]])
    for threshold, wanted in ((0.3, [True, False]), (0.01, [True, True])):
        found = family.attended_tokens(texts, condition, threshold).tolist()
        assert found == [wanted, wanted, [False, False]]


def test_a_prompt_that_is_attended_to_nowhere_has_no_score_and_a_reason(
    scorers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = scorers["mps"]
    monkeypatch.setattr(scorer, "_condition", torch.zeros_like(scorer._condition))
    ((found,),) = scorer.score_texts([scorer.prepare(IMAGES[0])], [["a red ball"]])
    assert math.isnan(found.score) and found.problem


def test_names_of_the_conversion_score_the_same_and_what_does_not_fit_is_refused(
    scorers: dict[str, Any], base: Path, state: dict[str, Any], tmp_path: Path
) -> None:
    other = load(tmp_path, base, {f"mps.{name}": value for name, value in state.items()})
    image = [other.prepare(IMAGES[0])]
    score = scorers["mps"].score(image, TEXTS[:1])
    assert other.score(image, TEXTS[:1]) == pytest.approx(score, abs=1e-5)
    lacking = {name: v for name, v in state.items() if not name.endswith("1.1.fn.attn_out.weight")}
    with refusal("checkpoint_incomplete", "attn_out"):
        load(tmp_path, base, lacking)
    with refusal("checkpoint_wrong_class", "head.weight"):
        load(tmp_path, base, state | {"head.weight": torch.ones(2)})
