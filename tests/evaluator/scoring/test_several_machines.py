"""A cluster of several machines: the commands of the document, and one machine lost on the way."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.registry import load_registry
from evaluator.scoring.engine import LocalEngine
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from tests.conftest import REPOSITORY
from tests.evaluator.scorers.tiny_models import save_clip
from tests.evaluator.scoring.ray_clients import AccidentSource, pids
from tests.kit.processes import finished, free_port, running
from tests.kit.worker import ADA, LENGTHS, desk_of, module_folder

_OWN_PORTS = ("dashboard-agent-grpc-port", "dashboard-agent-listen-port", "metrics-export-port")
_PATIENCE_S = 120.0
_TRIES = 8
_TOLD = re.compile(r"--address='?([\d.]+:\d+)")


@dataclass
class Machines:
    """What is running."""

    folder: Path  # for what Ray writes; short, since sockets lie below it
    first: str  # command that starts the first of them
    further: str  # command that starts each other
    address: str = ""  # of the cluster, once its first machine is there
    # one `ray start --block` each
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add(self) -> None:
        """One more machine with one core; waits until it is part of the cluster.

        Ray gives its parts a quarter of a minute to start, which on a busy machine is not enough.
        """
        for _ in range(_TRIES):
            log = self.folder / f"machine-{len(self.started)}.log"
            self.started.append(self._start(log))
            if self._there(self.started[-1], log):
                break
            _end(self.started.pop())
        else:
            raise AssertionError(log.read_text()[-4000:])
        if not self.address:
            found = _TOLD.search(log.read_text())
            assert found is not None, log.read_text()
            self.address = found[1]

    def lose(self, number: int) -> None:
        """A machine is gone from one moment to the next, with all that ran on it."""
        _end(self.started[number])

    def _start(self, log: Path) -> subprocess.Popen[bytes]:
        command = self.further.replace("HEAD:6379", self.address)
        if not self.address:
            command = self.first.replace("6379", str(free_port()))
        words = shlex.split(command)
        words[0] = str(Path(sys.executable).with_name("ray"))
        # Two on one machine: each needs ports of its own, and neither may take all of it.
        words += [f"--{name}={free_port()}" for name in _OWN_PORTS]
        words += ["--num-cpus=1", "--object-store-memory=100000000", "--block"]
        words += [] if self.address else [f"--temp-dir={self.folder / 'ray'}"]
        with log.open("wb") as output:
            return subprocess.Popen(
                words, env=_environment(), stdout=output, stderr=output, start_new_session=True
            )

    def _there(self, process: subprocess.Popen[bytes], log: Path) -> bool:
        until = time.monotonic() + _PATIENCE_S
        while "--block" not in log.read_text():
            if process.poll() is not None or time.monotonic() > until:
                return False
            time.sleep(0.2)
        return True


@contextmanager
def machines(number: int, first: str, further: str) -> Iterator[Machines]:
    """A cluster of so many; nothing of it is left afterwards."""
    found = Machines(Path(tempfile.mkdtemp(prefix="assay-ray-", dir="/tmp")), first, further)
    try:
        for _ in range(number):
            found.add()
        yield found
    finally:
        for place in range(len(found.started)):
            found.lose(place)
        shutil.rmtree(found.folder, ignore_errors=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it with all that belongs to its session, whether or not it lives itself."""
    # All are stopped before the first is killed, or those left would tell the others.
    for how in (signal.SIGSTOP, signal.SIGKILL):
        for pid in _of_session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
    process.wait()


def _of_session(leader: int) -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                yield int(place.name)


pytestmark = pytest.mark.timeout(900)
HEAD = "ray start --head --port=6379 --include-dashboard=false --disable-usage-stats"
FURTHER = "ray start --address=HEAD:6379 --disable-usage-stats"
SCORE = (
    "python -m evaluator scorers run clipscore-hessel --benchmark demo_ts2 "
    "--engine ray --ray-address HEAD:6379 --out scores.parquet"
)
WORK = "python -m evaluator worker --engine ray --ray-address HEAD:6379 --scratch /shared/scratch"
"""All four as docs/gpu-and-cluster.md has them."""


@pytest.fixture(scope="module")
def two() -> Iterator[Machines]:
    from evaluator.scoring.ray_cluster import keep_token_out_of_home

    keep_token_out_of_home()
    # As the document says: in every shell. Here it is this process and all that it starts.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        with machines(2, HEAD, FURTHER) as found:
            yield found


def scored(command: str, folder: Path, checkpoint: Path) -> dict[str, object]:
    """The record of a run that was typed in a folder; its scores lie there."""
    words = [sys.executable, *command.replace("--out ", f"--out {folder}/").split()[1:]]
    words += ["--checkpoint", f"model={checkpoint}", "--offline"]
    done = finished(words, cwd=REPOSITORY, within_s=280)  # where actors find the code as well
    assert done.returncode == 0, done.stderr
    record: dict[str, object] = json.loads((folder / "scores.record.json").read_text())
    return record


@pytest.mark.nightly
def test_the_command_of_the_document_gives_the_scores_of_one_machine(
    two: Machines, tmp_path: Path
) -> None:
    checkpoint = save_clip(tmp_path / "clip", negative=True)
    places = {name: tmp_path / name for name in ("ray", "local")}
    for place in places.values():
        place.mkdir()
    on_ray = scored(SCORE.replace("HEAD:6379", two.address), places["ray"], checkpoint)
    local = SCORE.replace("--engine ray --ray-address HEAD:6379 ", "")
    scored(local, places["local"], checkpoint)
    found, wanted = (pd.read_parquet(places[name] / "scores.parquet") for name in places)
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-5, atol=1e-6)
    assert "ray" in json.dumps(on_ray["environment"])


@pytest.mark.slow
@pytest.mark.isolation
def test_a_worker_on_the_cluster_scores_a_submission(two: Machines, tmp_path: Path) -> None:
    store, module = folder_store(tmp_path / "store"), module_folder(tmp_path / "mine", LENGTHS)
    desk = desk_of(store, load_registry())
    sent = desk.submit_metric(module, account=ADA).status.submission
    words = WORK.replace("HEAD:6379", two.address).replace("/shared", str(tmp_path)).split()[1:]
    store_here = ("--store", tmp_path / "store", "--once")
    done = finished([sys.executable, *words, *store_here], cwd=REPOSITORY, within_s=280)
    assert done.returncode == 0, done.stderr
    status = Ledger(store).status(sent.submission_id)
    assert status.state is State.PUBLISHED, (status.reason, done.stderr)


@pytest.mark.nightly
def test_a_machine_that_is_lost_in_the_middle_costs_no_score(two: Machines, tmp_path: Path) -> None:
    from tests.evaluator.scoring.test_ray import run as score

    words = ("-m", "tests.evaluator.scoring.elsewhere", two.address, str(tmp_path))
    asked = tmp_path / "asked"
    with running([sys.executable, *words], cwd=REPOSITORY) as run:
        until = time.monotonic() + 240.0
        while len(pids(asked)) < 2 or not (asked / "asked").is_dir():
            assert run.poll() is None, "both machines work before it is done"
            assert time.monotonic() < until
            time.sleep(0.05)
        before = len(list((asked / "asked").iterdir()))
        two.lose(1)
        assert run.wait(timeout=240) == 0
    found = pd.read_pickle(tmp_path / "found.pickle")
    local = score(AccidentSource(tmp_path / "quick"), tmp_path / "local", LocalEngine())
    assert found.equals(local.overall)
    assert before < len(list((asked / "asked").iterdir())), "it was lost in the middle"


@pytest.mark.slow
def test_who_lacks_the_token_gets_nowhere(two: Machines) -> None:
    code = f"import ray; ray.init({two.address!r}, logging_level='CRITICAL'); print('got in')"
    wrong = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    done = finished([sys.executable, "-c", code], env=wrong, within_s=200)
    assert done.returncode != 0
    assert "got in" not in done.stdout
