"""Built-in metrics run with the packages of an operator's environment, in a process of their own."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.environments.naming import operator_lock
from evaluator.metric import load_metric
from evaluator.scorers.apart import ApartClient, opened_apart
from evaluator.scorers.cost_measuring import measured
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import Runtime, ScorerRow
from evaluator.scoring.asking import Item, PairRequest, Ready, Reply, ScorerClient
from evaluator.scoring.contract import Verdict
from evaluator.submission.builtin import BuiltinManifest, facts_of
from tests.evaluator.environments.wheels import operator_environments
from tests.evaluator.isolation.boxes import png
from tests.evaluator.scorers.common import refusal

pytestmark = pytest.mark.slow

PROMPTS = ("a cup", "two cups")
COLOURS = ("red", "green", "blue")


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return operator_environments(tmp_path, monkeypatch)


def source(clip: Path, environment: str = "") -> ModelSource:
    """A small CLIP as a row that names an environment."""
    row = ScorerRow(
        name="tiny", family="dual_encoder", title="Tiny", summary="Tiny.", formula="f",
        source="tests", options={"formula": "cos"}, environment=environment,
        checkpoints={"model": {"id": "nobody/tiny"}},  # type: ignore[dict-item]
    )  # fmt: skip
    return ModelSource(row, Runtime(folders={"model": clip}))


def answered(client: ScorerClient) -> list[list[float]]:
    """Of each colour with each prompt; images are made ready by several threads."""
    with ThreadPoolExecutor(3) as pool:
        ready = list(pool.map(client.ready, map(png, COLOURS)))
    asked = tuple(PairRequest(f"p{n}", f"t{n}", prompt) for n, prompt in enumerate(PROMPTS))
    items = [Item(colour, one, asked) for colour, one in zip(COLOURS, ready, strict=True)]
    return [[one.score for one in of_image] for of_image in client.ask(items).verdicts]


def test_environments_that_conflict_run_side_by_side_and_are_recorded(
    locks: Path, clip: Path
) -> None:
    with source(clip).open() as client:
        ours, usual = answered(client), client.environment
    with source(clip, "old").open() as old, source(clip, "new").open() as new:
        for client in (old, new):
            np.testing.assert_allclose(answered(client), ours, atol=1e-6)
        found = [client.environment for client in (old, new)]
        assert min(old.peak_memory_bytes, new.peak_memory_bytes) > 1 << 20
    assert [one["open_clip_torch"] for one in found] == ["0.1", "0.2"]
    assert [one["environment"] for one in found] == [
        operator_lock(name).record for name in ("old", "new")
    ]
    assert "environment" not in usual
    assert {one["torch"] for one in found} == {usual["torch"]}


def test_an_environment_is_part_of_what_is_recorded_and_kept(locks: Path, clip: Path) -> None:
    sources = [source(clip, name) for name in ("", "old", "new")]
    before = [one.fingerprint for one in sources]
    (locks / "old.lock").write_text((locks / "new.lock").read_text())
    before.append(source(clip, "old").fingerprint)
    assert len(set(before)) == 4
    assert len({one.row.digest for one in sources}) == 3
    assert "environment" not in facts_of(sources[0].row)
    assert facts_of(sources[1].row)["environment"] == "old"
    records = ["", *(operator_lock(name).record for name in ("old", "new"))]
    kept = [BuiltinManifest.of(sources[1].row, {}, environment=one) for one in records]
    assert len({one.sha256 for one in kept}) == 3
    assert "environment" not in json.loads(kept[0].content)


def test_an_environment_that_is_not_there_is_named(locks: Path, clip: Path) -> None:
    with refusal("unknown_environment", "none-such", "old"), source(clip, "none-such").open():
        pass


def test_an_error_of_the_metric_comes_back_as_it_is(locks: Path, clip: Path) -> None:
    missing = source(clip / "none", "old")
    with refusal("checkpoint_missing"), missing.open():
        pass


class Counting:
    """A client that says how many images it holds, or does as it is told."""

    asks_elements, peak_memory_bytes, environment = False, 0, {"made": "here"}

    def ready(self, data: bytes) -> Ready:
        if data == b"broken":
            raise SubmitterError("image_broken", "It is no image.", "Send another.")
        if data == b"theirs":
            raise type("TheirError", (Exception,), {"__module__": "only.there"})("it cannot")
        if data == b"away":
            raise ConnectionResetError("the Hub is away")
        return Ready(data, len(data))

    def ask(self, items: list[Item]) -> Reply:
        if any(item.image.content == b"die" for item in items):
            os.write(2, b"the end of the model\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return Reply(tuple((Verdict(float(len(item.image.content))),) for item in items))


class CountingSource:
    """Opens one."""

    fingerprint = "counting"

    def __init__(self, closed: Path | None = None) -> None:
        self.closed = closed

    @contextmanager
    def open(self) -> Iterator[Any]:
        try:
            yield Counting()
        finally:
            if self.closed is not None:
                self.closed.touch()


@contextmanager
def counting(tmp_path: Path) -> Iterator[ApartClient]:
    with opened_apart(CountingSource(), tmp_path, "none") as client:
        yield client


def lengths(client: ApartClient, *contents: bytes) -> list[float]:
    asks = (PairRequest("p", "t", "text"),)
    reply = client.ask([Item("i", client.ready(content), asks) for content in contents])
    return [verdict.score for (verdict,) in reply.verdicts]


def test_images_are_forgotten_there_when_they_are_here(tmp_path: Path) -> None:
    with counting(tmp_path) as client:
        for n in range(1, 6):
            assert lengths(client, b"x" * n, b"y") == [n, 1]
        assert len(client._forgotten) == 2
        kept = [client.ready(b"kept") for _ in range(3)]
        del kept[0]
        assert len(client._forgotten) == 3
        client.ask([])
        assert client._forgotten == []


def test_what_is_raised_there_is_raised_here_and_the_process_goes_on(tmp_path: Path) -> None:
    with counting(tmp_path) as client:
        with refusal("image_broken", "Send another"):
            client.ready(b"broken")
        with refusal("scorer_failed", "TheirError", "it cannot", kind=PlatformError):
            client.ready(b"theirs")
        with pytest.raises(ConnectionResetError, match="the Hub is away"):
            client.ready(b"away")
        assert lengths(client, b"xyz") == [3]


def test_a_process_that_dies_is_our_fault_and_its_last_words_are_told(tmp_path: Path) -> None:
    with (
        refusal("scorer_process_ended", "-9", "the end of the model", kind=PlatformError),
        counting(tmp_path) as client,
    ):
        lengths(client, b"die")


def test_what_is_kept_there_is_kept_however_a_run_ends(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with (
        pytest.raises(KeyboardInterrupt),
        opened_apart(CountingSource(closed), tmp_path, "none") as client,
    ):
        lengths(client, b"x")
        raise KeyboardInterrupt
    assert closed.exists()


def test_a_process_that_is_slow_to_listen_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import socket, time\n"
        "listen = socket.socket.listen\n"
        "socket.socket.listen = lambda self, *n: (time.sleep(0.5), listen(self, *n))[1]\n"
    )
    with counting(tmp_path) as client:
        assert lengths(client, b"xy") == [2]


def test_packages_that_cannot_be_imported_end_it_at_once(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('broken numpy')")
    with (
        refusal("scorer_process_ended", "broken numpy", kind=PlatformError),
        counting(tmp_path),
    ):
        pass


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    with counting(tmp_path) as client:
        running = client._process.running
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(10) == 0


def test_a_source_in_an_environment_travels(locks: Path, clip: Path) -> None:
    mine = source(clip, "old")
    assert len(mine.fingerprint) == 64
    there: ModelSource = pickle.loads(pickle.dumps(mine))
    with there.open() as client:
        assert client.environment["open_clip_torch"] == "0.1"
    (locks / "old.lock").write_text((locks / "new.lock").read_text())
    for changed in (there, replace(there, environment=operator_lock("new").record[:-1] + "?")):
        with refusal("environment_changed", kind=PlatformError), changed.open():
            pass


def test_its_cost_is_that_of_a_run(locks: Path, clip: Path) -> None:
    mine = source(clip, "old")
    with refusal("not_measurable", "old"):
        measured(mine.row, mine.runtime, datetime.now(UTC))


def test_a_row_in_an_environment_can_be_loaded_for_scores_of_ones_own(
    locks: Path, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = [Image.new("RGB", (8, 8), colour) for colour in COLOURS[:2]]
    found = []
    for name in ("", "old"):
        row = source(clip, name).row
        monkeypatch.setattr("evaluator.metric.load_rows", lambda row=row: {row.name: row})
        with load_metric("tiny", checkpoints={"model": clip}) as metric:
            found.append(metric.score(images, list(PROMPTS)))
    assert list(found[0]) == pytest.approx(list(found[1]), abs=1e-6)
