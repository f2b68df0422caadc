"""TensorBoard and Weights & Biases for real, with the libraries of requirements-watch.txt, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.ab.sinks import RECORD
from tests.conftest import REPOSITORY
from tests.kit.processes import finished

pytestmark = pytest.mark.slow

SEND = """
import sys
from datetime import UTC, datetime
from pathlib import Path

from evaluator.ab.sinks import Deliveries, TensorBoard, WeightsAndBiases
from evaluator.ab.watching import Curves

out, tensorboard, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
curves = Curves(out)
for n in range(len(curves.done), count):
    at = datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC)
    row = {"checkpoint": f"é {n}", "step": 1000 * n, "at": at, "images": "x", "metric": "m", "n": 9,
           "mean": n / 8, "ci_low": float("nan"), "ci_high": n / 4, "n_missing": 0}
    curves.add([row | {"skill": skill} for skill in ("", "color")], 9)
deliveries = Deliveries(out)
for sink in (TensorBoard(tensorboard), WeightsAndBiases("project", "run", "title", out)):
    print(deliveries.send(sink, curves.checkpoints))
    sink.close()
"""
READ = '''
import json
import struct
import sys
from collections import defaultdict
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
from wandb.proto.wandb_internal_pb2 import Record

out, tensorboard = map(Path, sys.argv[1:])


def records(content):
    """Records of a log of W&B: LevelDB's form, in blocks of 32 KiB after seven bytes."""
    place, part = 7, b""
    while place + 7 <= len(content):
        if (rest := -place % 32768) < 7 and rest:
            place += rest
            continue
        _, size, kind = struct.unpack("<IHB", content[place : place + 7])
        part, place = part + content[place + 7 : place + 7 + size], place + 7 + size
        if kind in (1, 4):
            yield Record.FromString(part)
            part = b""


points, runs, history = {}, set(), []
if tensorboard.is_dir():
    events = EventAccumulator(str(tensorboard))
    events.Reload()
    points = {
        tag: [(one.step, float(make_ndarray(one.tensor_proto))) for one in events.Tensors(tag)]
        for tag in events.Tags()["tensors"]
    }
for file in sorted(out.glob("wandb/offline-run-*/*.wandb")):
    for record in records(file.read_bytes()):
        if record.HasField("run"):
            runs.add((record.run.project, record.run.run_id))
        if record.HasField("history"):
            items = {one.key or "/".join(one.nested_key): json.loads(one.value_json)
                     for one in record.history.item}
            history.append((items["_step"], items["checkpoint"], items["m/color/mean"]))
print(json.dumps({"points": points, "runs": sorted(runs), "history": history}))
'''
Run = Callable[..., list[str]]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Site packages with what requirements-watch.txt pins."""
    folder = tmp_path_factory.mktemp("watch") / "venv"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    words = ["--quiet", "--python", str(folder / "bin/python"), "--require-hashes", "--no-build"]
    lock = REPOSITORY / "requirements-watch.txt"
    subprocess.run([uv, "pip", "install", *words, "-r", lock], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    return site


@pytest.fixture
def run(libraries: Path, tmp_path: Path) -> Run:
    """Lines that code prints in a process that has these libraries beside its own."""
    paths = os.pathsep.join(map(str, (REPOSITORY, libraries)))
    more = {"PYTHONPATH": paths, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}

    def lines(code: str, *words: object) -> list[str]:
        command = [sys.executable, "-c", code, *words]
        done = finished(command, cwd=tmp_path, env=kept | more | {"HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return lines


def read(run: Run, tmp_path: Path) -> Any:
    return json.loads(run(READ, tmp_path / "out", tmp_path / "tb")[-1])


def test_points_are_written_once_and_a_restart_goes_on(run: Run, tmp_path: Path) -> None:
    for count in (2, 2, 3):
        assert run(SEND, tmp_path / "out", tmp_path / "tb", count) == ["", ""]
    found = read(run, tmp_path)
    assert set(found["points"]) == {
        f"m/{skill}/{name}"
        for skill in ("all prompts", "color")
        for name in ("mean", "ci_high", "n_missing")
    }
    assert found["points"]["m/color/mean"] == [[0, 0.0], [1000, 0.125], [2000, 0.25]]
    assert found["history"] == [[0, 0, 0.0], [1, 1000, 0.125], [2, 2000, 0.25]]
    assert found["runs"] == [["project", "run"]]
    (tmp_path / "out" / RECORD).unlink()  # as if it was killed before it was written
    run(SEND, tmp_path / "out", tmp_path / "tb", 3)
    assert read(run, tmp_path)["points"] == found["points"]


def test_a_folder_that_takes_nothing_is_told_and_the_other_sink_goes_on(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "tb").write_text("a file")
    tensorboard, wandb = run(SEND, tmp_path / "out", tmp_path / "tb", 2)
    assert "é 0" in tensorboard and wandb == ""
    assert len(read(run, tmp_path)["history"]) == 2
    (tmp_path / "tb").unlink()
    assert run(SEND, tmp_path / "out", tmp_path / "tb", 2) == ["", ""]
    assert len(read(run, tmp_path)["points"]["m/color/mean"]) == 2
