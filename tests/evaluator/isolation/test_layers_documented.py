"""The page about isolation names every layer, with the words that are shown elsewhere."""

from __future__ import annotations

from pathlib import Path

import evaluator.isolation
from evaluator.isolation.layers import LEGEND, Layer


def test_every_layer_is_documented_in_its_own_words() -> None:
    assert evaluator.isolation.__file__ is not None
    page = Path(evaluator.isolation.__file__).with_name("README.md").read_text(encoding="utf-8")
    for layer in Layer:
        assert f"| `{layer}` | {LEGEND[layer]} |" in page
