"""Starting bubblewrap, and bounding its box before anything runs in it."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.isolation import layout
from evaluator.isolation.bubblewrap import cgroups, seccomp_bpf
from evaluator.isolation.bubblewrap.cgroup_places import Places
from evaluator.isolation.bubblewrap.faults import not_started
from evaluator.isolation.bubblewrap.slots import take_slot
from evaluator.isolation.bubblewrap.staging import require_readable, require_way, stage
from evaluator.isolation.bubblewrap.starter import Starter
from evaluator.isolation.bubblewrap.words import Descriptors, Plan, arguments
from evaluator.isolation.interpreter import BUNDLE_FOLDER
from evaluator.isolation.layers import Layer
from evaluator.isolation.supervising.box import Held, NamespaceBox
from evaluator.isolation.supervising.text import one_line

_SET_UP_S = 30.0
_NICENESS = 10
_ENDED_FIRST = "1000"

Look = Callable[[NamespaceBox], None]


def nothing(box: NamespaceBox) -> None:
    """A look that sees nothing."""


def launch(
    executable: str, plan: Plan, command: list[str], *, places: Places, look: Look = nothing
) -> NamespaceBox:
    """Start a box, bound it, look at it, and only then let it run the command.

    Args:
        executable: bubblewrap.
        plan: of the box.
        command: what is run inside.
        places: where cgroups may be made.
        look: called while nothing runs in the box.

    Raises:
        PlatformError: `box_not_started`, `not_readable`, `no_user_for_box`,
            `no_system_call_filter` or `bound_refused`.
    """
    filtered = Layer.SYSTEM_CALLS not in plan.without
    programs = seccomp_bpf.programs(gpu=bool(plan.devices)) if filtered else ()
    with ExitStack() as opened, ExitStack() as given, ExitStack() as unused:
        info, tell_info = _pipe(opened, given)
        wait, let_go = _pipe(given, opened)
        have = _held(plan, places, unused)
        filters = tuple(_memory(program, given) for program in programs)
        start = _Start(executable, plan, command, Descriptors(tell_info, wait, filters))
        starter = Starter(lambda: start.by(have.slot.uid if have.slot else None))
        process = _started(starter)
        given.close()
        held = replace(have, starter=starter)
        box = _adopt(process, info, held, plan)
        unused.pop_all()
        try:
            _bound(box, plan)
            look(box)
            os.write(let_go, b"1")
        except BaseException as error:
            box.end()
            printed = process.stderr.read() if process.stderr else b""
            box.release()
            if isinstance(error, (ProcessLookupError, FileNotFoundError, BrokenPipeError)):
                raise not_started(one_line(printed)) from error
            raise
        return box


def _held(plan: Plan, places: Places, unused: ExitStack) -> Held:
    """User and bounds of a box, given back if it does not come to be."""
    drops = os.geteuid() == 0 and Layer.KERNEL_UID not in plan.without
    slot = take_slot() if drops else None
    if slot is not None:
        unused.callback(slot.release)
    cgroup = cgroups.make(places, plan.limits)
    if cgroup is not None:
        unused.callback(cgroup.remove)
    return Held(slot, cgroup)


@dataclass(frozen=True)
class _Start:
    executable: str
    plan: Plan
    command: list[str]
    descriptors: Descriptors

    def by(self, uid: int | None) -> subprocess.Popen[bytes]:
        """Start it as a user; this thread sees other files afterwards if there is one."""
        placed = {}
        if uid is not None:
            sources = self.plan.sources()
            placed = dict(stage(sources))
            self._require_readable(uid, reached=bool(placed))
        told = arguments(self.plan, self.descriptors, usr_links=_usr_links(), placed=placed)
        with ExitStack() as given:
            words = b"".join(word.encode() + b"\0" for word in told)
            return self._run(_memory(words, given), uid)

    def _require_readable(self, uid: int, *, reached: bool) -> None:
        job = self.plan.job
        if job is not None:
            shown = (job.folder, *(model.folder for model in job.models))
            require_readable(shown, uid, reached=reached)
        if not reached:
            for source in (*(folder for folder, _ in self.plan.interpreter.binds), BUNDLE_FOLDER):
                require_way(source, uid)

    def _run(self, told: int, uid: int | None) -> subprocess.Popen[bytes]:
        """Start bubblewrap with no environment, no telling arguments and no other descriptors.

        It stays in the box as its first process, where its environment and command line can be read.
        """
        open_to_box = Layer.ENVIRONMENT in self.plan.without
        return subprocess.Popen(  # noqa: S603 - every word of it is ours
            [self.executable, "--args", str(told), "--", *self.command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ) if open_to_box else {},
            cwd="/",
            pass_fds=(told, self.descriptors.info, self.descriptors.block,
                      *self.descriptors.filters),
            start_new_session=True,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )  # fmt: skip


def _started(starter: Starter) -> subprocess.Popen[bytes]:
    try:
        return starter.start()
    except OSError as error:
        raise not_started(f"starting it failed: {error}") from error


def _adopt(process: subprocess.Popen[bytes], info: int, held: Held, plan: Plan) -> NamespaceBox:
    """Learn which process is the first inside, so that all of them can be ended from here on.

    Raises:
        PlatformError: bubblewrap gave up before it had one.
    """
    try:
        pid = _first_pid(info)
        namespace_fd = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        return NamespaceBox(
            process=process,
            init_pidfd=os.pidfd_open(pid),
            init_pid=pid,
            namespace=os.fstat(namespace_fd).st_ino,
            namespace_fd=namespace_fd,
            memory_folders=tuple(layout.MEMORY_FOLDERS),
            counts_processes=not plan.root_to_kernel,
            memory_limit=plan.limits.memory_bytes,
            held=held,
        )
    except (ValueError, FileNotFoundError, ProcessLookupError, TimeoutError) as error:
        process.kill()
        _, printed = process.communicate()
        if held.starter is not None:
            held.starter.release()
        raise not_started(one_line(printed)) from error


def _bound(box: NamespaceBox, plan: Plan) -> None:
    """Put a box into its cgroup; where that does not bound processors, behind other work."""
    if not box.bounds_memory:
        # Whatever it may hold that nobody counts: it goes before anything else of this machine.
        with suppress(OSError):  # a help where the watchdog fails, and no bound
            Path(f"/proc/{box.init_pid}/oom_score_adj").write_text(_ENDED_FIRST)
    cgroup = box.held.cgroup
    if cgroup is not None:
        for pid in (box.process.pid, box.init_pid):
            cgroup.add(pid)
    if (cgroup is None or "cpu" not in cgroup.folders) and Layer.CPU_NICENESS not in plan.without:
        os.setpriority(os.PRIO_PROCESS, box.init_pid, _NICENESS)
        os.sched_setaffinity(box.init_pid, _some_processors(plan.limits.threads, box.init_pid))


def _some_processors(number: int, turn: int) -> frozenset[int]:
    """As many of those that the worker may use, others for each box."""
    usable = sorted(os.sched_getaffinity(0))
    return frozenset(usable[(turn + i) % len(usable)] for i in range(number))


def _first_pid(info: int) -> int:
    data = b""
    poll = select.poll()
    poll.register(info, select.POLLIN)
    while not data.rstrip().endswith(b"}"):
        if not poll.poll(_SET_UP_S * 1000):
            raise TimeoutError
        part = os.read(info, 4096)
        if not part:
            break
        data += part
    return int(json.loads(data)["child-pid"])


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Ends for reading and writing, each closed with what it belongs to."""
    read, write = os.pipe2(os.O_CLOEXEC)
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _memory(content: bytes, opened: ExitStack) -> int:
    descriptor = os.memfd_create("box")
    opened.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _usr_links() -> list[tuple[str, str]]:
    """`/bin`, `/lib` and so on, as links into /usr, as every current distribution has them."""
    names = ("bin", "sbin", "lib", "lib64")
    return [(f"usr/{name}", f"/{name}") for name in names if Path("/usr", name).is_dir()]
