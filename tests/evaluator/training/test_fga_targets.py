"""Targets of FGA-BLIP2: which tokens an element marks, with what label, and how prompts are weighted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluator.scorers.models.element_spans import ElementFinder
from evaluator.training.fga.targets import prompt_weights, token_targets

FINDER = ElementFinder(lambda text: [hash(word) for word in text.split()], 0)
"""Words as tokens."""
CLS = 0.5  # a rating of 3
Labels = dict[str, float]


@pytest.mark.parametrize(
    ("prompt", "labels", "mask", "scores"),
    [
        pytest.param(
            "a red dog", {"red (color)": 0.25, "dog": 1.0}, [1, 0, 1, 1, 0], [CLS, 0, 0.25, 1, 0],
            id="[CLS] has the rating, tokens have their labels, [SEP] nothing",
        ),
        pytest.param(
            "red dog red", {"red (color)": 1.0}, [1, 1, 0, 0, 0], [CLS, 1, 0, 0, 0],
            id="an element that stands twice marks its first place",
        ),
        pytest.param(
            "a red dog", {"red dog (object)": 1.0, "red (color)": 0.0},
            [1, 0, 1, 1, 0], [CLS, 0, 0.5, 1, 0], id="overlaps are averaged",
        ),
        pytest.param(
            "a red dog", {"red (color)": 1.0, "red (attribute)": 0.5, "red (material)": 0.0},
            [1, 0, 1, 0, 0], [CLS, 0, 0.5, 0, 0], id="one text under several kinds is averaged",
        ),
        pytest.param(
            'A "RED" dog.', {"red (color)": 1.0}, [1, 0, 1, 0, 0], [CLS, 0, 1, 0, 0],
            id="the prompt is the cleaned one",
        ),
        pytest.param("a dog", {}, [1, 0, 0, 0, 0], [CLS, 0, 0, 0, 0], id="no elements"),
        pytest.param(
            "a b c d e", {"c d (x)": 1.0}, [1, 0, 0, 1, 0], [CLS, 0, 0, 1, 0],
            id="an element is cut at the limit, where [SEP] stands",
        ),
        pytest.param(
            "a b c d e", {"d (x)": 1.0}, [1, 0, 0, 0, 0], [CLS, 0, 0, 0, 0],
            id="an element beyond the limit has no target",
        ),
    ],
)  # fmt: skip
def test_targets_of_tokens(
    prompt: str, labels: Labels, mask: list[float], scores: list[float]
) -> None:
    found = token_targets(FINDER, prompt, 3.0, labels, 5)
    assert (found.mask.tolist(), found.scores.tolist()) == (mask, scores)
    assert found.unfound == ()


def test_what_is_not_found_and_what_is_beyond_the_limit_are_told_apart() -> None:
    labels = {"b": 1.0, "e (x)": 1.0, "z (x)": 1.0, "a, (x)": 0.0}
    found = token_targets(FINDER, "a b c d e", 1.0, labels, 5)
    assert (found.unfound, found.beyond) == (("z (x)", "a, (x)"), ("e (x)",))
    assert found.scores.tolist() == [0, 0, 1, 0, 0]


def test_an_element_past_the_last_word_that_is_read_has_no_target() -> None:
    found = token_targets(replace(FINDER, max_words=3), "a b c d", 3.0, {"c": 1.0, "d": 1.0}, 9)
    assert (found.unfound, found.beyond) == ((), ("d",))
    assert found.mask.tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 0]


PROMPTS = ["one", "two", "two", "same", "same", "far", "far"]
RATINGS = [4.0, 3.0, 4.0, 2.0, 2.0, 1.0, 5.0]


def test_weights_are_exp_of_the_sample_variance_of_a_prompts_images() -> None:
    found = prompt_weights(PROMPTS, RATINGS, "variance")
    assert found.alone == 1
    assert found.weights == {
        "one": 1.0,
        "two": pytest.approx(np.exp(np.var([3, 4], ddof=1))),
        "same": 1.0,
        "far": pytest.approx(np.exp(8)),
    }


def test_weights_may_be_normalised_and_clipped_or_left_out() -> None:
    plain = prompt_weights(PROMPTS * 9 + ["two"], RATINGS * 9 + [3.5], "variance").weights
    clipped = prompt_weights(["a"] * 99 + ["far"] * 2, [3.0] * 99 + [1.0, 5.0], "clipped")
    mean = (99 + 2 * np.exp(8)) / 101
    assert clipped.weights == {"a": pytest.approx(1 / mean), "far": 5.0}
    assert prompt_weights(PROMPTS, RATINGS, "clipped").weights["one"] < 1 < plain["two"]
    assert set(prompt_weights(PROMPTS, RATINGS, "none").weights.values()) == {1.0}
