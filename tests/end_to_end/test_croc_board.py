"""Prompt pairs that were just written, with images, are a board on which a worker runs code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app import source_of
from benchmarks.croc_syn.load import whole_pairs
from benchmarks.croc_syn.protocol import CrocSyn
from benchmarks.registry import load_registry
from leaderboard.api.routes import routes
from leaderboard.store.folder import folder_store
from tests.end_to_end.commands import evaluator
from tests.evaluator.croc.written import written


@pytest.mark.slow
def test_what_croc_writes_is_a_board_on_which_code_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "boards" / "my_croc")
    monkeypatch.setenv("ASSAY_BENCHMARKS", str(tmp_path / "boards"))
    benchmark = load_registry()["my_croc"]
    assert isinstance(benchmark, CrocSyn)
    layout = benchmark.answers(None).layout
    for pair in whole_pairs(benchmark.folder(None), layout):
        for side, text in enumerate((pair.prompt, pair.contrast)):
            for number, image in enumerate(pair.image_ids(side, 5)):
                file = folder.path / "images" / f"{image}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                colour = (255 * ("is Red" in text), 40 * number, 200)
                Image.new("RGB", (64, 64), colour).save(file)

    metric = tmp_path / "metric"
    store = {"ASSAY_STORE": tmp_path / "store", "ASSAY_BENCHMARKS": tmp_path / "boards"}
    assert evaluator("init", "plain", metric).returncode == 0
    manifest = metric / "assay.toml"
    told = re.sub("^benchmarks.*$", 'benchmarks = ["my_croc"]', manifest.read_text(), flags=re.M)
    manifest.write_text(told)
    sent = evaluator("submit", metric, "--no-wait", ASSAY_USER="ada", **store)
    assert sent.returncode == 0, sent.stderr
    working = evaluator("worker", "--once", **store)
    assert working.returncode == 0, working.stderr
    client = TestClient(Starlette(routes=routes(source_of(folder_store(tmp_path / "store")))))
    board = client.get("/v1/boards/my_croc").json()
    assert [row["metric"] for row in board["rows"]] == ["metric"]
    assert board["rows"][0]["value"] is not None
