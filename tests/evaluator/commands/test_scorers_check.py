"""`scorers check`: what the trust checks say of a built-in metric."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from evaluator.commands.scorers_check import check
from leaderboard.trust import TrustReport
from tests.evaluator.scorers.tiny_dual import save_clip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


def said(*arguments: str) -> str:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(check)
    result = CliRunner().invoke(app, ["clipscore-ts2", "--benchmark", "demo_croc", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_metric_that_is_a_function_of_image_and_prompt_passes(checkpoint: Path) -> None:
    shown = said("--checkpoint", f"model={checkpoint}", "--images", "4")
    assert "Passed every check." in shown
    assert "each pair by itself" in shown
    assert "From float32 on the CPU" not in shown


def test_another_precision_has_a_band(checkpoint: Path) -> None:
    arguments = ["--checkpoint", f"model={checkpoint}", "--images", "4", "--json"]
    report = TrustReport.model_validate(json.loads(said(*arguments, "--dtype", "bfloat16")))
    assert report.precision is not None
    assert report.precision.largest is not None
    assert 0.0 < report.precision.largest < 0.5  # of cosines times about 100
    assert report.environment["dtype"] == "bfloat16"
    assert report.precision.reference["dtype"] == "float32"
    assert report.limit == 0.05
