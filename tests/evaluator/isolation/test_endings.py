"""Boxes whose supervisor is killed, and boxes that do not end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.isolation import processes
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.bubblewrap import Bubblewrap, NamespaceSandbox, sweep, unreferenced
from evaluator.isolation.cgroups import machine_cgroups
from evaluator.isolation.job import MIB, Job
from evaluator.isolation.session import ScorerSession
from tests.evaluator.isolation.asking import remains, soon
from tests.evaluator.isolation.boxes import CONSTANT, SHORT, Open, Submit, box_of
from tests.kit.processes import running
from tests.kit.tiers import nightly

REPOSITORY = Path(__file__).resolve().parents[3]
TRIES = 25 if nightly() else 8
STARTING = """
    import os, signal, sys
    from pathlib import Path
    from evaluator.isolation.bubblewrap import Bubblewrap
    from evaluator.isolation.job import Job
    backend = Bubblewrap()
    backend.start(Job(Path(sys.argv[1]))).close()
    for line in sys.stdin:
        if os.fork() == 0:
            print(os.getpid(), flush=True)
            backend.start(Job(Path(sys.argv[1]), entry_point=sys.argv[2])).__enter__()
            signal.pause()
        os.wait()
        print("killed", flush=True)
"""


def processes_with(word: str) -> list[int]:
    def told(pid: int) -> bool:
        return word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()

    return processes.pids_where(told)


@pytest.mark.slow
@pytest.mark.isolation
def test_a_supervisor_killed_while_its_box_starts_leaves_nothing(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    assert bubblewrap.probe().ok
    folder = submit(CONSTANT)
    mark = f"marked_{os.getpid()}_{time.monotonic_ns()}"
    (folder / f"{mark}.py").write_text((folder / "scorer.py").read_text())
    draw = random.Random(0)
    with running(
        [sys.executable, "-c", textwrap.dedent(STARTING), str(folder), f"{mark}:Scorer"],
        cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    ) as parent:  # fmt: skip
        assert parent.stdin is not None
        assert parent.stdout is not None
        for _ in range(TRIES):
            parent.stdin.write("go\n")
            supervisor = int(parent.stdout.readline())
            time.sleep(draw.uniform(0, 0.04))
            os.kill(supervisor, signal.SIGKILL)
            assert parent.stdout.readline() == "killed\n"
        parent.stdin.close()
    # What is left a moment later runs nothing of the submission, and goes at the next start.
    deadline = time.monotonic() + 120
    while (left := processes_with(mark)) != (idle := waiting(left)):
        assert time.monotonic() < deadline, (left, idle)
        time.sleep(0.05)
    sweep(machine_cgroups())
    while processes_with(mark):
        assert time.monotonic() < deadline + 10, "boxes outlived their supervisors"
        time.sleep(0.05)


def waiting(pids: list[int]) -> list[int]:
    """Those that are still bubblewrap itself, alone in their box."""
    orphaned = unreferenced()
    return [pid for pid in pids if pid in orphaned]


def test_a_process_that_survived_is_remembered_until_it_ends(tmp_path: Path) -> None:
    with running(["sleep", "60"]) as survivor:
        processes.mark_survivors([survivor.pid, 2**22 + 1], tmp_path)
        assert processes.survivors(tmp_path) == (survivor.pid,)
        survivor.kill()
    assert processes.survivors(tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_another_process_has_by_now_is_no_survivor(tmp_path: Path) -> None:
    (tmp_path / f"{os.getpid()}-1").touch()
    assert processes.survivors(tmp_path) == ()


def test_no_job_is_taken_beside_processes_that_did_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "marks_folder", lambda: tmp_path)
    status = IsolationStatus(Bubblewrap(), (("bubblewrap", Probe(ok=True, layers=("pid",))),))
    assert status.ok
    assert status.require() is status.backend
    with running(["sleep", "60"]) as survivor:
        processes.mark_survivors([survivor.pid])
        assert not status.ok
        assert "still running" in status.reason
        assert "Restart" in status.remedy
        with pytest.raises(PlatformError) as caught:
            status.require()
        assert caught.value.code == "isolation_unavailable"
        survivor.kill()
    assert status.ok


@pytest.mark.isolation
def test_a_box_that_does_not_end_is_marked(
    bubblewrap: Bubblewrap, submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "marks_folder", lambda: tmp_path / "marks")
    folder = submit(CONSTANT)
    session = bubblewrap.start(Job(folder))
    with running(["sleep", "60"]) as survivor:
        monkeypatch.setattr("evaluator.isolation.session._GONE_WITHIN_S", 0.05)
        monkeypatch.setattr(NamespaceSandbox, "pids", lambda self: [survivor.pid])
        with pytest.raises(PlatformError) as caught:
            session.close()
        assert caught.value.code == "box_not_ended"
        assert processes.survivors() == (survivor.pid,)
        survivor.kill()


def stopped(session: ScorerSession) -> bool:
    """Whether all processes of the box are, so that nothing is read any more."""
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in box_of(session).pids()]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


@pytest.mark.isolation
def test_a_box_that_does_not_read_does_not_block_the_supervisor(opened: Open) -> None:
    session = opened(CONSTANT, replace(SHORT, batch_s=1.0))
    with session, pytest.raises(SubmitterError) as caught:
        for pid in session._box.pids():
            os.kill(pid, signal.SIGSTOP)
        assert soon(lambda: stopped(session))
        session.score([bytes(8 * MIB)], [(0, "a cat")])
    assert caught.value.code == "timeout"
    assert remains(session) == []
