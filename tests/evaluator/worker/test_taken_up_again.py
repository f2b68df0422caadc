"""A run that is stopped or killed goes on from its shards, whoever goes on; it is heard live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluator.__main__ import command_line
from evaluator.commands.worker_loop import stop_on_signals
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.session import BoundedLog
from evaluator.worker.worker import LONGEST_LINE, LogTail
from leaderboard.governance.authentication import this_person
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import MemoryLive, new_lines
from tests.evaluator.revised import Revised
from tests.kit import toy
from tests.kit.processes import running
from tests.kit.worker import (
    FakeBackend,
    FakeSession,
    Killed,
    Rig,
    Secret,
    published_once,
    stock,
)

N = 200
BATCH = 64


@pytest.fixture(scope="module", autouse=True)
def _long() -> Iterator[None]:
    """A benchmark with more pairs than one batch takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy, "PAIRS", tuple(f"p{n:03d}" for n in range(N)))
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, _long: None) -> Rig:
    """A run that nothing disturbed."""
    rig = Rig(tmp_path_factory.mktemp("whole"))
    rig.stock(["hub:ada"])
    rig.worker().run_all()
    return rig


@pytest.mark.parametrize("changed", [False, True], ids=["same", "changed"])
def test_another_worker_on_the_same_disk_asks_only_what_is_missing(
    rig: Rig, whole: Rig, changed: bool
) -> None:
    """Scores of other data are never mixed in."""
    (name,) = rig.stock(["hub:ada"])
    in_all = len(whole.backend.asked)

    def in_the_third_batch() -> None:
        raise Killed

    rig.when_asked(in_all - N + 2 * BATCH + 6, in_the_third_batch)
    rig.dies(rig.worker("w1"))
    rig.backend = FakeBackend()
    if changed:
        rig.toy = Revised(1.0)
    assert rig.worker("w2").run_next()
    assert rig.published_once(name)
    assert len(rig.backend.asked) == in_all - (0 if changed else 2 * BATCH)
    if not changed:
        assert rig.results(name) == whole.results(name)


# What a scorer prints -------------------------------------------------------------------------

HELLO = FakeSession.log


@dataclass
class Talking(FakeSession):
    """Prints a line for each batch."""

    def score(self, images: Any, pairs: Any) -> Any:
        self.log += f"\nbatch of {len(pairs)}"
        return super().score(images, pairs)


class TalkingBackend(FakeBackend):
    def start(self, *_: Any, **__: Any) -> Any:
        return Talking(self, Capability.SCORE)


@pytest.mark.parametrize("benchmark", [toy.Toy(), Secret()], ids=["public", "private answers"])
def test_what_a_scorer_prints_is_told_while_it_runs_and_forgotten_at_the_end(
    rig: Rig, benchmark: toy.Toy
) -> None:
    """Where answers are private, nothing of it is told."""
    rig.toy, rig.backend = benchmark, TalkingBackend()
    (name,) = rig.stock(["hub:ada"])
    seen: list[str] = []
    lines: set[str] = set()

    def listen(_: object) -> None:
        seen.append(rig.store.live.log_end(name))
        worker.heart.beat()
        lines.update(pulse.last_line for pulse in rig.store.live.pulses())

    worker = rig.worker(listener=listen)
    worker.run_all()
    assert rig.published_once(name)
    assert rig.store.live.log_end(name) == ""
    if benchmark.card.answers_public:
        assert HELLO in seen[-1]
        assert f"batch of {BATCH}" in seen[-1]
        assert max(text.count(HELLO) for text in seen) <= 2, "each box says it once"
        assert f"batch of {BATCH}" in lines
    else:
        assert (set(seen), lines) == ({""}, {""})


def test_of_long_output_each_line_is_told_once_though_its_middle_is_left_out() -> None:
    log, before, told = BoundedLog(2000), "", ""
    lines = [f"line {n} of many\n" for n in range(250)]
    for line in lines:
        log.feed(line.encode())
        new, before = new_lines(before, log.text())
        told += new
    assert told == "".join(lines)


def test_a_last_line_is_cut_and_never_empty() -> None:
    said = LogTail(MemoryLive(), "m-12345678", may_tell=True)
    assert said.last == ""
    said.heard(lambda: "one\n" + "y" * 1000 + "\n\n  \n")
    assert said.last == "y" * LONGEST_LINE


# A worker process that is told to end ---------------------------------------------------------

SLOW = """
import time
from pathlib import Path
class Scorer:
    def score(self, images, prompts):
        if Path({slow!r}).exists():
            time.sleep(0.01 * len(images))
        return [float(len(p)) for p in prompts]
"""
"""Slow as long as there is a file."""
AT_MOST_S = 90.0


@contextmanager
def in_work(
    folder: Path, process_ends: Callable[[subprocess.Popen[bytes]], object]
) -> Iterator[tuple[Store, tuple[str, ...]]]:
    """Two submissions of which a process had begun the first, and ended; this one finishes them."""
    store, slow = folder_store(folder), folder.parent / "slow"
    slow.touch()
    scorer = SLOW.format(slow=str(slow)).encode()
    ids = stock(store, [this_person().key] * 2, benchmarks=("demo_ts2",), scorer=scorer)
    words = ["worker", "--store", str(folder), "--isolation", "none", "--claim", "3"]
    with (
        (folder.parent / "log").open("ab") as log,
        running([sys.executable, "-m", "evaluator", *words], stdout=log, stderr=log) as process,
    ):
        ends = time.monotonic() + AT_MOST_S
        while not any(pulse.done >= BATCH for pulse in store.live.pulses()):
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < ends
            time.sleep(0.1)
        process_ends(process)
    yield store, ids
    slow.unlink()
    again = CliRunner().invoke(command_line(), [*words, "--once"])
    assert again.exit_code == 0, again.output
    assert all(published_once(store, name) for name in ids)


@pytest.mark.slow
def test_a_terminated_worker_hands_everything_back_and_another_process_goes_on(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "store"
    public, heads = folder_store(folder).public, list[str]()

    def terminate(process: subprocess.Popen[bytes]) -> None:
        heads.append(public.head())
        process.send_signal(signal.SIGTERM)
        assert process.wait(AT_MOST_S) == 0, (tmp_path / "log").read_text()

    with in_work(folder, terminate) as (store, ids):
        assert int(public.head()) == int(heads[0]) + 1, "all of them in one commit"
        statuses = Ledger(store).statuses()
        assert {(s.state, s.attempts) for s in statuses} == {(State.QUEUED, 0)}
        assert "stopped" in statuses[0].reason
        kept = (folder / "scratch" / "shards" / ids[0]).rglob("*.parquet")
        assert list(kept), "what was finished is kept"
        assert list((folder / "scratch" / "unpacked").iterdir()) == []


@pytest.mark.slow
def test_a_killed_workers_claims_are_taken_up_at_once_on_the_same_machine(tmp_path: Path) -> None:
    """The kernel says that its process is gone; nobody waits for its silence or its lease."""
    with in_work(tmp_path / "store", subprocess.Popen.kill) as (store, ids):
        statuses = Ledger(store).statuses()
        assert {s.state for s in statuses} == {State.SCORING, State.CLAIMED}
    claims = [e for e in Ledger(store).events(ids[0]) if e.state is State.CLAIMED]
    assert ["ended" in claim.reason for claim in claims] == [False, True]


@pytest.mark.parametrize("side", ["public", "private"])
def test_a_worker_that_starts_drops_what_a_killed_one_staged_of_a_commit(
    tmp_path: Path, side: str
) -> None:
    rig = Rig(tmp_path, store=folder_store(tmp_path / "store"))
    staged = tmp_path / "store" / side / ".commits" / "staged-of-the-killed"
    staged.mkdir()
    rig.worker().run_all()
    assert not staged.exists()


def test_the_first_signal_asks_and_the_second_interrupts() -> None:
    stop, wake = threading.Event(), threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals(stop, wake):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(60)
        assert wake.wait(60)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
    assert signal.getsignal(signal.SIGTERM) == before
