"""The command of docs/gpu-and-cluster.md for one GPU, on machines that have one and that have none."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from evaluator.__main__ import command_line
from tests.evaluator.scorers.tiny_dual import save_clip

COMMAND = (
    "python -m evaluator scorers run clipscore-hessel --benchmark demo_ts2 --device cuda "
    "--out scores.parquet"
)


def test_a_metric_runs_on_the_gpu_or_is_refused_where_there_is_none(tmp_path: Path) -> None:
    import torch

    words = COMMAND.replace("scores.parquet", str(tmp_path / "scores.parquet")).split()[3:]
    given = ["--checkpoint", f"model={save_clip(tmp_path / 'clip')}", "--offline"]
    found = CliRunner().invoke(command_line(), [*words, *given])
    if torch.cuda.is_available():
        assert found.exit_code == 0, found.output
        assert (tmp_path / "scores.parquet").is_file()
        return
    assert getattr(found.exception, "code", "") == "device_missing"
