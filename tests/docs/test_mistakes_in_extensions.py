"""What a reader of docs/extend.md is told of a mistake in a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from benchmarks.registry import BUILT_IN, load_registry
from benchmarks.schema import Card


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            'title = "',
            'titel = "',
            r"title: Field required; titel: Extra inputs are not permitted\.$",
        ),
        ("[headline]", "[headline", r"Expected .*\.$"),
        (
            'measure = "srcc"',
            'measure = "scrr"',
            r"headline\.measure: 'scrr' is none of its .*srcc",
        ),
    ],
)
def test_a_card_with_a_mistake_is_named_with_what_is_wrong(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    good = (BUILT_IN / "demo" / "card_gecko.toml").read_text(encoding="utf-8")
    assert before in good
    path = tmp_path / "card.toml"
    path.write_text(good.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(PlatformError, match=rf"card\.toml: {said}") as caught:
        Card.read(path, load_registry()["demo_gecko"].card.measures)
    assert caught.value.code == "invalid_benchmark"
