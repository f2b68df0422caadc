"""`ab` on generated folders, judged by the metrics that qualified in a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.commands.ab import qualified
from evaluator.demo.simulated_models import PROMPT_SET, write_generations
from leaderboard.store.opening import StoreName
from tests.evaluator.commands.submitting import record


@pytest.mark.slow
def test_generated_folders_are_compared_by_what_qualified(demo: Path, tmp_path: Path) -> None:
    for model in ("demo-delta", "demo-alpha"):
        write_generations(model, tmp_path / model)
    found = qualified(PROMPT_SET, StoreName.parse(str(demo)), None)
    assert "two-tower" in found and "random-floor" not in found
    told = record(
        "ab", tmp_path / "demo-delta", tmp_path / "demo-alpha", "--prompts", PROMPT_SET,
        "--store", demo, "--cache", tmp_path / "cache",
    )  # fmt: skip
    assert {one["name"] for one in told["metrics"]} == set(found)
    assert next(one["outcome"] for one in told["skills"] if one["skill"] is None) == "better"
