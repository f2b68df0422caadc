"""Everything bubblewrap is told about a box, the command excepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.isolation import layout
from evaluator.isolation.interpreter import Interpreter
from evaluator.isolation.job import Job
from evaluator.isolation.layers import Layer
from evaluator.isolation.limits import Limits

_UNREAL = {"proc", "dev", "sys", "tmp", "usr", "bin", "sbin", "lib", "lib64", "opt", "runner"}


@dataclass(frozen=True, slots=True)
class Plan:
    """One box.

    Attributes:
        interpreter: by the names it has inside.
        limits: sizes of what is writable.
        job: what is run; None for a box that is only looked at.
        devices: nodes of a graphics card.
        hidden: folders that no box may see.
        without: layers that are turned off.
        root_to_kernel: whether the kernel sees root in the box.
    """

    interpreter: Interpreter
    limits: Limits
    job: Job | None = None
    devices: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    without: frozenset[Layer] = frozenset()
    root_to_kernel: bool = False

    def sources(self) -> tuple[Path, ...]:
        """Files and folders of this machine that the box sees, beside `/usr`."""
        shown = tuple(bind.source for bind in layout.binds(self.interpreter, self.job))
        return shown + (self.hidden if Layer.FILESYSTEM in self.without else ())


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open files that bubblewrap is told of by number.

    Attributes:
        info: where it says which process is the first inside.
        block: where it waits for a word before it runs the command.
        filters: programs of the system-call filter.
    """

    info: int
    block: int
    filters: tuple[int, ...] = ()


def arguments(
    plan: Plan,
    descriptors: Descriptors,
    *,
    usr_links: Sequence[tuple[str, str]],
    placed: Mapping[Path, Path] | None = None,
) -> list[str]:
    """What bubblewrap is told; the order matters to it.

    Args:
        plan: of the box.
        descriptors: that it is given.
        usr_links: (target, name) of links in the root.
        placed: where files are found that have been staged.
    """
    return [
        *_walls(plan.without),
        *_mounts(plan, usr_links, placed or {}),
        *("--proc", "/proc", "--dev", "/dev"),
        *_devices(plan.devices),
        *_memory_folders(plan),
        *_seals(plan),
        *("--chdir", layout.SCRATCH),
        *_variables(plan),
        *("--info-fd", str(descriptors.info), "--block-fd", str(descriptors.block)),
        *(word for fd in descriptors.filters for word in ("--add-seccomp-fd", str(fd))),
    ]


def _walls(without: frozenset[Layer]) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
    if Layer.IPC not in without:
        yield "--unshare-ipc"
    if Layer.NETWORK not in without:
        yield "--unshare-net"
    if Layer.USER_NAMESPACES not in without:
        yield "--disable-userns"
    if Layer.ENVIRONMENT not in without:
        yield "--clearenv"
    yield from ("--cap-add" if Layer.CAPABILITIES in without else "--cap-drop", "ALL")
    yield from ("--die-with-parent", "--new-session", "--hostname", "sandbox")
    yield from ("--uid", "1000", "--gid", "1000")


def _mounts(
    plan: Plan, usr_links: Sequence[tuple[str, str]], placed: Mapping[Path, Path]
) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for target, name in usr_links:
        yield from ("--symlink", target, name)
    yield from ("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")
    if Layer.FILESYSTEM in plan.without:
        yield from _whole_machine(plan, placed)
    yield from ("--perms", "0755", "--dir", layout.RUNNER)
    for bind in layout.binds(plan.interpreter, plan.job):
        yield from ("--ro-bind", str(placed.get(bind.source, bind.source)), bind.target)


def _whole_machine(plan: Plan, placed: Mapping[Path, Path]) -> Iterator[str]:
    for entry in sorted(Path("/").iterdir()):
        if entry.is_dir() and entry.name not in _UNREAL | {layout.SCRATCH.strip("/")}:
            yield from ("--ro-bind-try", str(entry), str(entry))
    for folder in plan.hidden:
        if folder.is_relative_to("/tmp"):  # noqa: S108 - the name inside
            yield from ("--ro-bind-try", str(placed.get(folder, folder)), str(folder))


def _devices(nodes: Sequence[Path]) -> Iterator[str]:
    for node in nodes:  # not an ordinary bind, which would make them useless (nodev)
        yield from ("--dev-bind", str(node), str(node))
    if nodes:
        yield from ("--ro-bind", "/sys", "/sys")


def _memory_folders(plan: Plan) -> Iterator[str]:
    bounded = Layer.MEMORY_FOLDERS not in plan.without
    for folder, n_bytes in layout.memory_folders(plan.limits).items():
        if bounded:
            yield from ("--size", str(n_bytes))
        yield from ("--perms", "1777", "--tmpfs", folder)


def _seals(plan: Plan) -> Iterator[str]:
    # Where root is whom the kernel sees in the box, capabilities or not, the settings of the whole
    # machine, under /proc/sys, are writable. A card's driver writes names of threads there.
    if Layer.KERNEL_SETTINGS not in plan.without and (plan.root_to_kernel or not plan.devices):
        yield from ("--remount-ro", "/proc")
    if Layer.MEMORY_FOLDERS not in plan.without:
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _variables(plan: Plan) -> Iterator[str]:
    for name, value in layout.variables(plan.interpreter, plan.limits).items():
        yield from ("--setenv", name, value)
