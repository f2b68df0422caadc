"""Strangers' code in namespaces of its own, made by bubblewrap.

Day one: own pid, network, mount, ipc, uts and user namespaces, a read-only root without this
machine's folders, an empty environment, no capabilities. System-call filter, a uid per box and
cgroups are rooms for later: `arguments` is where the first goes, `_spawn` the second.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.backend import Probe
from evaluator.isolation.box import NamespaceBox
from evaluator.isolation.interpreter import Interpreter
from evaluator.isolation.job import Job
from evaluator.isolation.limits import Limits
from evaluator.isolation.session import ScorerSession
from evaluator.isolation.text import one_line

_SET_UP_S = 30.0

_REMEDIES: tuple[tuple[str, str, str], ...] = (
    (
        "setting up uid map",
        "this system does not let bubblewrap use user namespaces",
        "On Ubuntu 23.10 or later install an AppArmor profile for bubblewrap that holds `userns,`, "
        "or set sysctl kernel.apparmor_restrict_unprivileged_userns=0.",
    ),
    (
        "mount proc on",
        "the worker runs in a container that hides parts of /proc",
        "Run the worker outside a container, or start its container with unmasked paths "
        "(--security-opt systempaths=unconfined).",
    ),
    (
        "creating new namespace failed",
        "this system does not let bubblewrap make namespaces",
        "Set sysctl user.max_user_namespaces above 0 and, on Debian, "
        "kernel.unprivileged_userns_clone=1; in a container also allow the calls unshare, mount "
        "and pivot_root.",
    ),
    (
        "no permissions to create",
        "this system does not let bubblewrap make namespaces",
        "Set sysctl user.max_user_namespaces above 0 and, on Debian, "
        "kernel.unprivileged_userns_clone=1; in a container also allow the calls unshare, mount "
        "and pivot_root.",
    ),
    (
        "unknown option",
        "bubblewrap is older than 0.8",
        "Install bubblewrap 0.8 or later.",
    ),
    (
        "can't find source path",
        "the worker's user cannot read the Python installation",
        "Install Python and the virtual environment where the worker's user may read them.",
    ),
)


def diagnose(printed: str) -> tuple[str, str]:
    """Reason and remedy for what bubblewrap printed when it failed."""
    said = printed.lower()
    for sign, reason, remedy in _REMEDIES:
        if sign in said:
            return f"{reason.capitalize()} ({printed}).", remedy
    told = printed or "it printed nothing"
    return f"Bubblewrap could not start a box ({told}).", "Run bubblewrap by hand to see why."


def arguments(
    *,
    interpreter: Interpreter,
    job: Job | None,
    limits: Limits,
    info_fd: int,
    usr_links: Sequence[tuple[str, str]],
) -> list[str]:
    """Everything bubblewrap is told, the command excepted; the order matters to it."""
    return [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"),
        *("--new-session", "--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox"),
        *("--uid", "1000", "--gid", "1000"),
        *_mounts(interpreter, job, usr_links),
        *("--proc", "/proc", "--dev", "/dev"),
        *_memory_folders(limits),
        # Where the worker is root, root is also whom the kernel sees in the box, capabilities or
        # not; and to root alone the settings of the whole machine, under /proc/sys, are writable.
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", layout.SCRATCH),
        *_variables(interpreter, limits),
        *("--info-fd", str(info_fd)),
    ]


def _mounts(
    interpreter: Interpreter, job: Job | None, usr_links: Sequence[tuple[str, str]]
) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for target, name in usr_links:
        yield from ("--symlink", target, name)
    yield from ("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")
    yield from ("--perms", "0755", "--dir", layout.RUNNER)
    for bind in layout.binds(interpreter, job):
        yield from ("--ro-bind", str(bind.source), bind.target)


def _memory_folders(limits: Limits) -> Iterator[str]:
    for folder, n_bytes in layout.memory_folders(limits).items():
        yield from ("--size", str(n_bytes), "--perms", "1777", "--tmpfs", folder)


def _variables(interpreter: Interpreter, limits: Limits) -> Iterator[str]:
    for name, value in layout.variables(interpreter, limits).items():
        yield from ("--setenv", name, value)


@dataclass(frozen=True)
class Bubblewrap:
    """The backend for strangers' code.

    Attributes:
        executable: how bubblewrap is called here.
        hidden: folders that a box must not see; a probe that sees one refuses.
    """

    executable: str = "bwrap"
    hidden: tuple[Path, ...] = field(
        default_factory=lambda: (Path(__file__).resolve().parents[2], *_home())
    )
    name: str = "bubblewrap"

    def probe(self) -> Probe:
        """Start a real box without a submission and look around inside."""
        if shutil.which(self.executable) is None:
            return Probe(
                ok=False,
                reason="Bubblewrap is not installed.",
                remedy="Install it (apt install bubblewrap) and start the worker again.",
            )
        interpreter = Interpreter.running_inside()
        command = layout.inspection_command(interpreter, self.hidden)
        try:
            box = self._spawn(interpreter, None, Limits(), command)
        except PlatformError as error:
            return Probe(ok=False, reason=error.message, remedy=error.hint)
        try:
            found, printed = box.process.communicate(timeout=_SET_UP_S)
        except subprocess.TimeoutExpired:
            return Probe(
                ok=False, reason="A box did not answer in time.", remedy="Look at the machine."
            )
        finally:
            box.end()
            box.release()
        if not found:
            reason, remedy = diagnose(one_line(printed))
            return Probe(ok=False, reason=reason, remedy=remedy)
        return judge(found.decode(errors="replace"))

    def start(self, job: Job) -> ScorerSession:
        """Start a box; see `Backend.start`. The calling thread must outlive the session.

        Raises:
            PlatformError: `box_not_started` or `device_unavailable`, with reason and remedy.
        """
        if job.device != "cpu":
            raise PlatformError(
                "device_unavailable",
                f"A box cannot be given the device {job.device!r} yet.",
                "Score on the CPU.",
            )
        interpreter = Interpreter.running_inside()
        command = layout.runner_command(interpreter, job)
        box = self._spawn(interpreter, job, job.limits, command)
        session = ScorerSession(box, job.limits)
        try:
            return session.await_box()
        except PlatformError as error:
            raise _not_started(" ".join(session.log.split())) from error

    def _spawn(
        self,
        interpreter: Interpreter,
        job: Job | None,
        limits: Limits,
        command: list[str],
    ) -> NamespaceBox:
        executable = shutil.which(self.executable)
        if executable is None:
            raise PlatformError("box_not_started", "Bubblewrap is not installed.")
        info_read, info_write = os.pipe2(os.O_CLOEXEC)
        try:
            told = arguments(
                interpreter=interpreter,
                job=job,
                limits=limits,
                info_fd=info_write,
                usr_links=_usr_links(),
            )
            process = _launch(executable, told, command, info_write)
        finally:
            os.close(info_write)
        try:
            # Root outside stays root to the kernel, which does not limit root's processes.
            return _adopt(process, info_read, counts=os.geteuid() != 0)
        finally:
            os.close(info_read)


def judge(printed: str) -> Probe:
    """What the findings of `inspection` mean."""
    rows = [line.split("\t", 2) for line in printed.splitlines()]
    if not rows or any(len(row) != 3 for row in rows):
        return Probe(
            ok=False, reason="A box started, but nothing could be checked inside it.",
            remedy="Look at the Python installation of the worker.",
        )  # fmt: skip
    layers = ("process", *(name for name, held, _ in rows if held == "yes"))
    faults = [fault for _, held, fault in rows if held != "yes"]
    if faults:
        reason = f"Inside a box, not all is as it must be: {'; '.join(faults)}."
        remedy = "Keep the project, its store and home folders out of /usr, which every box sees."
        return Probe(ok=False, layers=layers, reason=reason, remedy=remedy)
    return Probe(ok=True, layers=layers)


def _launch(
    executable: str, told: list[str], command: list[str], info_fd: int
) -> subprocess.Popen[bytes]:
    """Start bubblewrap with no environment, no telling arguments and no other descriptors.

    It stays in the box as its first process, where its environment and command line can be read.
    """
    args_fd = os.memfd_create("arguments")
    try:
        os.write(args_fd, b"".join(word.encode() + b"\0" for word in told))
        os.lseek(args_fd, 0, os.SEEK_SET)
        return subprocess.Popen(  # noqa: S603 - every word of it is ours
            [executable, "--args", str(args_fd), "--", *command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=(args_fd, info_fd),
            start_new_session=True,
        )
    finally:
        os.close(args_fd)


def _adopt(process: subprocess.Popen[bytes], info_fd: int, *, counts: bool) -> NamespaceBox:
    """Learn which process is the first inside, so that all of them can be ended from here on.

    Raises:
        PlatformError: bubblewrap gave up before it had one.
    """
    try:
        pid = _first_pid(info_fd)
        return NamespaceBox(
            process=process,
            init_pidfd=os.pidfd_open(pid),
            init_pid=pid,
            namespace=Path(f"/proc/{pid}/ns/pid").stat().st_ino,
            memory_folders=tuple(layout.memory_folders(Limits())),
            counts_processes=counts,
        )
    except (ValueError, FileNotFoundError, ProcessLookupError, TimeoutError) as error:
        process.kill()
        _, printed = process.communicate()
        raise _not_started(one_line(printed)) from error


def _first_pid(info_fd: int) -> int:
    data = b""
    poll = select.poll()
    poll.register(info_fd, select.POLLIN)
    while not data.rstrip().endswith(b"}"):
        if not poll.poll(_SET_UP_S * 1000):
            raise TimeoutError
        part = os.read(info_fd, 4096)
        if not part:
            break
        data += part
    return int(json.loads(data)["child-pid"])


def _not_started(printed: str) -> PlatformError:
    reason, remedy = diagnose(printed)
    return PlatformError("box_not_started", reason, remedy)


def _home() -> list[Path]:
    """The home folder, unless it is one that service users have and every box sees."""
    home = Path.home().resolve()
    return [] if home == Path("/") or home.is_relative_to("/usr") else [home]


def _usr_links() -> list[tuple[str, str]]:
    """`/bin`, `/lib` and so on, as links into /usr, as every current distribution has them."""
    names = ("bin", "sbin", "lib", "lib64")
    return [(f"usr/{name}", f"/{name}") for name in names if Path("/usr", name).is_dir()]
