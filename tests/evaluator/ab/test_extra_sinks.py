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

SEND_AND_READ = '''
import json
import struct
import sys
from datetime import UTC, datetime
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
from wandb.proto.wandb_internal_pb2 import Record

from evaluator.ab.sinks import Deliveries, TensorBoard, WeightsAndBiases
from evaluator.ab.watching import Curves

out, tensorboard, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
curves = Curves(out)
for n in range(len(curves.done), count):
    at = datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC)
    row = {"checkpoint": f"é {n}", "step": 1000 * n, "at": at, "images": "x", "metric": "m", "n": 9,
           "mean": n / 8, "ci_low": float("nan"), "ci_high": n / 4, "n_missing": 0}
    curves.add([row | {"skill": skill} for skill in ("", "color")], 9)
deliveries, missed = Deliveries(out), []
for sink in (TensorBoard(tensorboard), WeightsAndBiases("project", "run", "title", out)):
    missed.append(deliveries.send(sink, curves.checkpoints))
    sink.close()


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
print(json.dumps({"missed": missed, "points": points, "runs": sorted(runs), "history": history}))
'''
"""Sends so many checkpoints to both sinks, and prints what each lacks and what it holds."""
Run = Callable[[int], dict[str, Any]]


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
    """A watch of so many checkpoints, in a process that has these libraries beside its own."""
    paths = os.pathsep.join(map(str, (REPOSITORY, libraries)))
    more = {"PYTHONPATH": paths, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}

    def watched(count: int) -> dict[str, Any]:
        places = (tmp_path / "out", tmp_path / "tb", count)
        command = [sys.executable, "-c", SEND_AND_READ, *places]
        done = finished(command, cwd=tmp_path, env=kept | more | {"HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return printed

    return watched


def test_points_are_written_once_and_a_restart_goes_on(run: Run, tmp_path: Path) -> None:
    first, again, third = (run(count) for count in (2, 2, 3))
    assert first["missed"] == again["missed"] == third["missed"] == ["", ""]
    assert set(third["points"]) == {
        f"m/{skill}/{name}"
        for skill in ("all prompts", "color")
        for name in ("mean", "ci_high", "n_missing")
    }
    assert third["points"]["m/color/mean"] == [[0, 0.0], [1000, 0.125], [2000, 0.25]]
    assert third["history"] == [[0, 0, 0.0], [1, 1000, 0.125], [2, 2000, 0.25]]
    assert third["runs"] == [["project", "run"]]
    (tmp_path / "out" / RECORD).unlink()  # as if it was killed before it was written
    assert run(3)["points"] == third["points"]


def test_a_folder_that_takes_nothing_is_told_and_the_other_sink_goes_on(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "tb").write_text("a file")
    halved = run(2)
    tensorboard, wandb = halved["missed"]
    assert "é 0" in tensorboard and wandb == ""
    assert len(halved["history"]) == 2
    (tmp_path / "tb").unlink()
    whole = run(2)
    assert whole["missed"] == ["", ""] and len(whole["points"]["m/color/mean"]) == 2
