"""As whom the kernel sees a box."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation.bubblewrap import launch as bubblewrap_launch
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.bubblewrap.cgroup_places import Places
from evaluator.isolation.bubblewrap.outside import sweep
from evaluator.isolation.bubblewrap.slots import UIDS, left_by_nobody, take_slot
from evaluator.isolation.bubblewrap.staging import require_readable, require_way
from evaluator.isolation.bubblewrap.starter import Starter
from evaluator.isolation.job import Job
from evaluator.isolation.supervising import processes
from evaluator.isolation.supervising.box import NamespaceBox
from evaluator.isolation.supervising.session import ScorerSession
from tests.evaluator.isolation.boxes import SHORT, Open, Submit, png
from tests.processes import running

REPOSITORY = Path(__file__).resolve().parents[3]
NOBODY = 65534


def user_of(session: ScorerSession) -> int:
    box = session._box
    assert isinstance(box, NamespaceBox)
    return processes.user_of(box.init_pid)


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
        from evaluator.isolation.bubblewrap.slots import take_slot
        print(take_slot(Path({str(tmp_path)!r}), range(70000, 70001)).uid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
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
    folder = submit("class Scorer:\n    def score(self, images, prompts): return [1.0]")
    with bubblewrap.start(Job(folder)) as one, bubblewrap.start(Job(folder)) as other:
        users = user_of(one), user_of(other)
    if os.geteuid() == 0:
        assert users[0] != users[1]
        assert all(user in UIDS for user in users)
    else:
        assert users == (os.getuid(), os.getuid())


@pytest.mark.isolation
def test_what_a_box_is_given_it_can_read_and_not_change(opened: Open) -> None:
    session = opened("""
        import os
        from pathlib import Path
        def can(flag):
            return float(any(os.access(path, flag) for path in Path("/submission").rglob("*")))
        class Scorer:
            def score(self, images, prompts):
                return [can(os.R_OK), can(os.W_OK), float(os.access("/submission", os.W_OK))]
        """)
    with session:
        assert list(session.score([png()], [(0, "a cat")] * 3)) == [1.0, 0.0, 0.0]


@pytest.mark.isolation
def test_a_submission_in_a_folder_closed_to_others_is_shown_to_its_box_alone(
    bubblewrap: Bubblewrap, submit: Submit, tmp_path: Path
) -> None:
    folder = submit("class Scorer:\n    def score(self, images, prompts): return [1.0]")
    tmp_path.chmod(0o700)
    with bubblewrap.start(Job(folder)) as session:
        assert list(session.score([png()], [(0, "a cat")])) == [1.0]
        # Others mount and unmount meanwhile, so only what concerns the folder is looked at.
        assert tmp_path.name not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.isolation
def test_root_that_may_not_mount_is_told_which_folder_is_closed(
    bubblewrap: Bubblewrap, submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = submit("class Scorer:\n    def score(self, images, prompts): return [1.0]")
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
    folder = submit("class Scorer:\n    def score(self, images, prompts): return [1.0]")
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


ORDINARY = """
import os, sys
from pathlib import Path
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.job import Job
assert os.getuid() == 65534
probe = Bubblewrap(hidden=()).probe()
print(probe.ok, probe.reason, flush=True)
with Bubblewrap(hidden=()).start(Job(Path(sys.argv[1]))) as session:
    print(*session.score([Path(sys.argv[1], "image.png").read_bytes()], [(0, "a cat")]))
"""
FORKING = """
import os, signal
class Scorer:
    def score(self, images, prompts):
        children = []
        try:
            for _ in range(400):
                child = os.fork()
                if child == 0:
                    signal.pause()
                children.append(child)
        except BlockingIOError:
            pass
        return [float(len(children))]
"""


@pytest.mark.isolation
def test_an_ordinary_user_gets_the_same_box_and_its_process_limit_counts(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    folder = submit(FORKING)
    (folder / "image.png").write_bytes(png())
    if os.geteuid() != 0:
        with bubblewrap.start(Job(folder, limits=SHORT)) as session:
            assert 100 < session.score([png()], [(0, "a cat")])[0] < SHORT.processes
        return
    done = as_nobody([sys.executable, "-c", ORDINARY, "/mnt/submission"], folder)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.strip() == "True"
    assert 100 < float(second) < SHORT.processes


def as_nobody(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run as an ordinary user, who sees root's closed folders as if they were open.

    Args:
        command: to be run.
        folder: shown as `/mnt/submission`.
    """
    base = Path(sys.base_prefix)
    closed = [p for p in reversed(base.parents) if not p.stat().st_mode & stat.S_IXOTH]
    lines = ["set -e", "mount -t tmpfs -o mode=0755 none /mnt", "mkdir /mnt/submission",
             f"mount --bind {folder} /mnt/submission"]  # fmt: skip
    for path in closed[:1]:
        lines += [
            "mkdir -p /mnt/python", f"mount --bind {base} /mnt/python",
            f"mount -t tmpfs -o mode=0755 none {path}", f"mkdir -p {base}",
            f"mount --move /mnt/python {base}",
        ]  # fmt: skip
    lines.append('exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"')
    shell = ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", *command]
    return subprocess.run(
        shell, check=False, cwd=REPOSITORY, capture_output=True, text=True, timeout=120,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )  # fmt: skip
