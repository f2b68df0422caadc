"""As whom the kernel sees a box."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation import bubblewrap as bubblewrap_launch
from evaluator.isolation import processes
from evaluator.isolation.bubblewrap import Bubblewrap, Starter, sweep
from evaluator.isolation.cgroups import Places
from evaluator.isolation.job import Job, ModelFiles
from evaluator.isolation.session import ScorerSession
from evaluator.isolation.users import (
    UIDS,
    hides_names,
    left_by_nobody,
    require_readable,
    require_way,
    take_slot,
)
from tests.evaluator.isolation.boxes import CONSTANT, SHORT, Submit, box_of, png
from tests.kit.processes import finished, running

REPOSITORY = Path(__file__).resolve().parents[3]
NOBODY = 65534


def test_no_two_boxes_get_the_same_user(tmp_path: Path) -> None:
    first, second = (
        take_slot(tmp_path, range(70000, 70002)),
        take_slot(tmp_path, range(70000, 70002)),
    )
    assert (first.uid, second.uid) == (70000, 70001)
    with pytest.raises(PlatformError) as caught:
        take_slot(tmp_path, range(70000, 70002))
    assert caught.value.code == "no_user_for_box"
    first.release()
    again = take_slot(tmp_path, range(70000, 70002))
    assert again.uid == 70000
    again.release()
    second.release()


def test_the_user_of_a_killed_worker_is_free_again(tmp_path: Path) -> None:
    program = f"""
        import os, signal
        from pathlib import Path
        from evaluator.isolation.users import take_slot
        print(take_slot(Path({str(tmp_path)!r}), range(70000, 70001)).uid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = finished([sys.executable, "-c", textwrap.dedent(program)], cwd=REPOSITORY)
    assert done.stdout == "70000\n", done.stderr
    with left_by_nobody(70000, tmp_path) as left:
        assert left
        with pytest.raises(PlatformError):
            take_slot(tmp_path, range(70000, 70001))
    held = take_slot(tmp_path, range(70000, 70001))
    with left_by_nobody(70000, tmp_path) as left:
        assert not left
    with left_by_nobody(70001, tmp_path) as left:
        assert not left, "no box ever had it"
    held.release()


@pytest.mark.isolation
def test_what_runs_as_the_user_of_no_box_any_more_is_ended_at_the_next_start() -> None:
    if os.geteuid() != 0:
        return  # only root has users for boxes
    # From the end of the range: boxes of tests that run meanwhile take theirs from its beginning.
    held, free = take_slot(uids=reversed(UIDS)), take_slot(uids=reversed(UIDS))
    with (
        running(["sleep", "60"], user=held.uid) as kept,
        running(["sleep", "60"], user=free.uid) as left,
        running(["sleep", "60"]) as own,
    ):
        free.release()
        sweep(Places())
        assert left.wait(60) == -signal.SIGKILL
        assert kept.poll() is None
        assert own.poll() is None
    held.release()


def test_a_user_that_the_machine_has_an_account_for_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(PlatformError):
        take_slot(tmp_path, [os.getuid()])


def test_a_folder_of_locks_that_others_could_write_to_is_not_trusted(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PlatformError) as caught:
        take_slot(tmp_path, UIDS)
    assert str(tmp_path) in caught.value.message


def test_a_lock_is_not_inherited_by_what_the_worker_starts(tmp_path: Path) -> None:
    slot = take_slot(tmp_path, UIDS)
    assert fcntl.fcntl(slot.lock, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    slot.release()


@pytest.mark.parametrize("closed", ["sub", "sub/weights.bin"])
def test_a_file_that_the_box_could_not_read_is_named_with_the_remedy(
    tmp_path: Path, closed: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/weights.bin").touch()
    (tmp_path / closed).chmod(0o700)
    tmp_path.chmod(0o755)
    with pytest.raises(PlatformError) as caught:
        require_readable([tmp_path], 64000, reached=True)
    assert caught.value.code == "not_readable"
    assert caught.value.hint == f"Let it: chmod o+rX {tmp_path / closed}"


def test_a_way_that_is_closed_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "private/inner").mkdir(parents=True)
    (tmp_path / "private").chmod(0o700)
    with pytest.raises(PlatformError) as caught:
        require_way(tmp_path / "private/inner", 64000)
    closed = next(p for p in [*reversed(tmp_path.parents), tmp_path, tmp_path / "private"]
                  if not p.stat().st_mode & stat.S_IXOTH)  # fmt: skip
    assert caught.value.hint == f"Let it: chmod o+x {closed}"


@pytest.mark.isolation
def test_the_kernel_never_sees_root_in_a_box_and_two_boxes_of_root_differ(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    folder = submit(CONSTANT)
    with bubblewrap.start(Job(folder)) as one, bubblewrap.start(Job(folder)) as other:
        users = tuple(processes.user_of(box_of(each).init_pid) for each in (one, other))
    if os.geteuid() == 0:
        assert users[0] != users[1]
        assert all(user in UIDS for user in users)
    else:
        assert users == (os.getuid(), os.getuid())


@pytest.mark.isolation
def test_a_submission_in_a_folder_closed_to_others_is_shown_to_its_box_alone(
    bubblewrap: Bubblewrap, submit: Submit, tmp_path: Path
) -> None:
    folder = submit(CONSTANT)
    tmp_path.chmod(0o700)
    with bubblewrap.start(Job(folder)) as session:
        assert list(session.score([png()], [(0, "a cat")])) == [1.0]
        # Others mount and unmount meanwhile, so only what concerns the folder is looked at.
        assert tmp_path.name not in Path("/proc/self/mountinfo").read_text()


TELLING = """
    from pathlib import Path
    class Scorer:
        def score(self, images, prompts):
            for process in ("1", "self"):
                for name in ("mountinfo", "mounts", "mountstats", "cgroup", "environ", "cmdline", "maps"):
                    try:
                        print(Path("/proc", process, name).read_text().replace("\\0", " "))
                    except PermissionError:
                        pass
            return [1.0]
"""
NEUTRAL = (
    "/bin", "/dev", "/etc/ld.so.cache", "/models", "/newroot", "/opt/python", "/opt/site-packages",
    "/proc", "/runner", "/scratch", "/submission", "/tmp", "/usr",
    "/full", "/null", "/random", "/tty", "/urandom", "/zero",
)  # fmt: skip
"""Beginnings of the paths that a box may read: its own, and what every machine has, devices too."""


@pytest.mark.isolation
@pytest.mark.skipif(not hides_names(), reason="takes root and overlayfs")
def test_nothing_that_a_box_reads_of_itself_names_a_folder_of_this_machine(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    folder = submit(TELLING)
    model = folder.parent / "a-model"
    model.mkdir()
    job = Job(
        folder,
        limits=replace(SHORT, log_bytes=1 << 20),
        models=(ModelFiles("o/n", "0" * 40, model),),
    )
    with bubblewrap.start(job) as session:
        assert list(session.score([png()], [(0, "a cat")])) == [1.0]
    told = session.log
    assert "bytes left out" not in told
    # A file of the stage has a number for a name.
    paths = set(re.findall(r"(?<![\w.)])/[^\s:,=]+", told)) - {"/", *(f"/{n}" for n in range(20))}
    assert {"/submission", "/runner/runner.py"} < paths
    assert {path for path in paths if not path.startswith(NEUTRAL)} == set()
    assert [str(path) for path in (REPOSITORY, folder.parent) if str(path) in told] == []
    groups = {
        line.rpartition(":")[2] for line in told.splitlines() if re.match(r"\d+:[^/]*:/", line)
    }
    assert groups <= {"/"}, "its cgroups have no names"


@pytest.mark.isolation
def test_root_that_may_not_mount_is_told_which_folder_is_closed(
    bubblewrap: Bubblewrap, submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = submit(CONSTANT)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(bubblewrap_launch, "stage", lambda sources: {})
    if os.geteuid() != 0:
        bubblewrap.start(Job(folder)).close()  # nothing is staged for an ordinary user
        return
    with pytest.raises(PlatformError) as caught:
        bubblewrap.start(Job(folder))
    assert caught.value.code == "not_readable"
    assert caught.value.hint.startswith("Let it: chmod o+x /")


@pytest.mark.isolation
def test_a_box_outlives_the_thread_that_asked_for_it(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    folder = submit(CONSTANT)
    sessions: list[ScorerSession] = []
    asking = threading.Thread(target=lambda: sessions.append(bubblewrap.start(Job(folder))))
    asking.start()
    asking.join()
    with sessions[0] as session:
        assert list(session.score([png()], [(0, "a cat")])) == [1.0]


def test_an_error_of_starting_reaches_who_asked() -> None:
    def fail() -> subprocess.Popen[bytes]:
        raise FileNotFoundError("no such program")

    with pytest.raises(FileNotFoundError, match="no such program"):
        Starter(fail).start()
