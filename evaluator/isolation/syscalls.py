"""System calls of a box: one table, from which every backend writes its filter.

A call that is in neither table does not exist inside (ENOSYS), so that what a kernel gains later
is refused until somebody has looked at it. Calls of another architecture kill the process.
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
import platform
import signal
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from types import ModuleType
from typing import Any

from benchmarks.errors import PlatformError

_LOW_32 = 0xFFFFFFFF
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET together."""
RUNNER_PID = 2
"""In a box of bubblewrap, whose own process is the first."""
_KILLED = 128 + signal.SIGKILL
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C


class Test(Enum):
    """How an argument is looked at.

    The kernel reads only the lower half of the registers that hold integers, a filter reads all of
    them. So what is refused is tested under a mask, and what is let through must be equal as a whole.
    """

    __test__ = False  # not a test case

    OTHER_THAN = "other than the value"
    BITS = "any bit of the value is set"
    EQUAL_LOW = "the lower 32 bits equal the value"


@dataclass(frozen=True, slots=True)
class Condition:
    """When a call is refused, where not always."""

    argument: int  # position, from 0
    test: Test  # how it is looked at
    value: int  # what it is held against

    def refuses(self, argument: int) -> bool:
        """Whether a call with this argument is refused."""
        if self.test is Test.OTHER_THAN:
            return argument != self.value
        if self.test is Test.BITS:
            return bool(argument & self.value)
        return argument & _LOW_32 == self.value


@dataclass(frozen=True, slots=True)
class Rule:
    """System calls that are refused."""

    names: tuple[str, ...]  # of the calls
    stops: str  # what would be possible otherwise
    code: int = errno.EPERM  # the error number that the caller sees
    when: Condition | None = None  # only then; None for always
    # whether the libraries of a graphics card need it, so that it is refused on the processor
    # alone
    needed_by_gpu: bool = False


DENIED: tuple[Rule, ...] = (
    Rule(
        ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "process_madvise",
         "process_mrelease", "move_pages", "migrate_pages"),
        "reading, changing or comparing other processes",
    ),
    Rule(("pidfd_getfd",), "taking open files out of other processes"),
    Rule(
        ("mount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig",
         "fsmount", "fspick", "pivot_root", "chroot"),
        "changing what is seen of the file system",
    ),
    Rule(("unshare", "setns"), "making or entering namespaces"),
    Rule(("clone",), "making namespaces", when=Condition(0, Test.BITS, _NEW_NAMESPACES)),
    # Its flags lie in memory, where no filter can look; the C library falls back to clone.
    Rule(("clone3",), "making namespaces unseen", code=errno.ENOSYS),
    Rule(
        ("socket", "socketpair"),
        "reaching the network, the kernel's own protocols or, by vsock, a hypervisor",
        code=errno.EAFNOSUPPORT,
        when=Condition(0, Test.OTHER_THAN, socket.AF_UNIX),
    ),
    Rule(("bpf", "perf_event_open", "lookup_dcookie"), "running code in the kernel, or profiling it"),
    Rule(
        ("io_uring_setup", "io_uring_enter", "io_uring_register"),
        "making calls past this very filter, by a part of the kernel with many faults",
    ),
    Rule(("userfaultfd",), "holding the kernel at a fault, which many exploits need"),
    Rule(("keyctl", "add_key", "request_key"), "keys of the kernel, which know no namespaces"),
    Rule(
        ("name_to_handle_at", "open_by_handle_at"),
        "opening files by number, past what is seen of the file system",
    ),
    Rule(("mknod", "mknodat"), "making devices"),
    Rule(
        ("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop",
         "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
        "memory that belongs to no process and is counted for none",
    ),
    Rule(("memfd_create",), "memory that no process seems to hold", needed_by_gpu=True),
    Rule(("memfd_secret", "vmsplice"), "memory that no process seems to hold"),
    Rule(
        ("io_setup", "io_submit", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents"),
        "using up what all of this machine may have together",
    ),
    Rule(("sync", "syncfs"), "making the disks of this machine wait"),
    Rule(
        ("init_module", "finit_module", "delete_module", "create_module", "query_module",
         "get_kernel_syms", "kexec_load", "kexec_file_load", "reboot"),
        "changing or restarting the kernel",
    ),
    Rule(
        ("clock_settime", "clock_adjtime", "adjtimex", "settimeofday"), "setting the clock"
    ),
    Rule(
        ("ioctl",), "typing into a terminal outside", when=Condition(1, Test.EQUAL_LOW, _TIOCSTI)
    ),
    Rule(
        ("ioctl",), "typing into a console outside", when=Condition(1, Test.EQUAL_LOW, _TIOCLINUX)
    ),
    Rule(
        ("acct", "swapon", "swapoff", "quotactl", "quotactl_fd", "sethostname", "setdomainname",
         "syslog", "vhangup", "fanotify_init", "fanotify_mark", "iopl", "ioperm", "modify_ldt"),
        "managing the machine",
    ),
    Rule(
        ("personality", "uselib", "ustat", "sysfs", "_sysctl", "nfsservctl", "vserver",
         "afs_syscall", "tuxcall", "security", "getpmsg", "putpmsg", "epoll_ctl_old",
         "epoll_wait_old", "remap_file_pages"),
        "calls of old, which nobody looks after",
    ),
)  # fmt: skip
"""Refused, in the order in which they are told."""

ALLOWED: frozenset[str] = frozenset(
    """
    accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown
    clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range creat
    dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd
    eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fchdir fchmod
    fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr
    fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake
    futimesat get_mempolicy get_robust_list get_thread_area getcpu getcwd getdents getdents64
    getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid
    getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt
    gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1
    inotify_rm_watch ioprio_get
    ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown
    lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise
    map_shadow_stack mbind membarrier mincore mkdir mkdirat mlock mlock2 mlockall mmap mprotect
    mq_getsetattr mq_notify mq_timedreceive mq_timedsend mremap msync munlock munlockall munmap
    nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2
    pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 pselect6
    pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg
    removexattr rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending
    rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
    sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
    sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
    sched_setscheduler sched_yield seccomp select sendfile sendmmsg sendmsg sendto set_mempolicy
    set_mempolicy_home_node set_robust_list set_thread_area set_tid_address setfsgid setfsuid
    setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit
    setsid setsockopt setuid setxattr shutdown sigaltstack signalfd signalfd4 splice stat statfs
    statx symlink symlinkat sync_file_range sysinfo tee tgkill time timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
    timerfd_settime times tkill truncate umask uname unlink unlinkat utime utimensat utimes vfork
    wait4 waitid write writev
    """.split()  # noqa: SIM905 - a table to be read
)
"""Let through, beside the conditional ones of `DENIED`."""


def denied(*, gpu: bool) -> Iterator[Rule]:
    """The rules for a box."""
    return (rule for rule in DENIED if not (gpu and rule.needed_by_gpu))


def known() -> frozenset[str]:
    """Every call of the two tables; no other exists inside."""
    return ALLOWED.union(*(rule.names for rule in DENIED))


_BINARY_TREE = 2


@functools.cache
def filter_programs(*, gpu: bool = False) -> tuple[bytes, ...]:
    """The filter, as filter_programs that are all asked; the strictest answer counts.

    One cannot both know every call and refuse two values of one argument: the first answers calls
    that are in no table, the second those that are refused, the third what would kill the runner.
    """
    seccomp = _library()
    return (_of_known(seccomp), _of_denied(seccomp, gpu=gpu), _of_kills(seccomp))


def _library() -> ModuleType:
    try:
        # Looks for a shared library when it is imported, which takes a while.
        return importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError) as error:
        raise PlatformError(
            "no_system_call_filter",
            f"The system-call filter of a box cannot be made ({error}).",
            "Install libseccomp (apt install libseccomp2) and pyseccomp (pip install pyseccomp).",
        ) from error


def _of_known(seccomp: ModuleType) -> bytes:
    made = _filter(seccomp, seccomp.ERRNO(errno.ENOSYS))
    for number in _numbers(seccomp, known()):
        made.add_rule(seccomp.ALLOW, number)
    return _exported(made)


def _of_denied(seccomp: ModuleType, *, gpu: bool) -> bytes:
    made = _filter(seccomp, seccomp.ALLOW)
    for rule in denied(gpu=gpu):
        for number in _numbers(seccomp, rule.names):
            for arguments in _alternatives(seccomp, rule):
                made.add_rule(seccomp.ERRNO(rule.code), number, *arguments)
    return _exported(made)


def _of_kills(seccomp: ModuleType) -> bytes:
    """Ends with SIGSYS whoever sends the runner SIGKILL, or ends with the exit code of that.

    What then ends by SIGKILL was killed from outside.
    """
    made = _filter(seccomp, seccomp.ALLOW)

    def ends(name: str, *values: tuple[int, int]) -> None:
        arguments = [seccomp.Arg(n, seccomp.MASKED_EQ, _LOW_32, v & _LOW_32) for n, v in values]
        for number in _numbers(seccomp, [name]):
            made.add_rule(seccomp.KILL_PROCESS, number, *arguments)

    # To all others: none of them is the first or the caller, so that the runner has none to kill.
    everyone = [
        seccomp.Arg(n, seccomp.MASKED_EQ, _LOW_32, v & _LOW_32) for n, v in ((0, -1), (1, 9))
    ]
    for number in _numbers(seccomp, ["kill"]):
        made.add_rule(seccomp.ERRNO(errno.ESRCH), number, *everyone)
    for target in (RUNNER_PID, -RUNNER_PID, 0):  # alone, its group, that of the caller
        ends("kill", (0, target), (1, signal.SIGKILL))
    ends("tkill", (0, RUNNER_PID), (1, signal.SIGKILL))
    ends("tgkill", (0, RUNNER_PID), (2, signal.SIGKILL))
    ends("rt_sigqueueinfo", (0, RUNNER_PID), (1, signal.SIGKILL))
    ends("rt_tgsigqueueinfo", (0, RUNNER_PID), (2, signal.SIGKILL))
    ends("pidfd_send_signal", (1, signal.SIGKILL))
    for number in _numbers(seccomp, ["exit", "exit_group"]):
        code = seccomp.Arg(0, seccomp.MASKED_EQ, 0xFF, _KILLED)
        made.add_rule(seccomp.KILL_PROCESS, number, code)
    return _exported(made)


def _filter(seccomp: ModuleType, otherwise: int) -> Any:
    made = seccomp.SyscallFilter(otherwise)
    made.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    made.set_attr(seccomp.Attr.CTL_OPTIMIZE, _BINARY_TREE)
    return made


def _numbers(seccomp: ModuleType, names: Iterable[str]) -> Iterator[int]:
    """Of the calls that this architecture has."""
    resolved = (seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) for name in sorted(names))
    return (number for number in resolved if number >= 0)


def _alternatives(seccomp: ModuleType, rule: Rule) -> Iterator[tuple[Any, ...]]:
    """Comparisons, any of which refuses the call."""
    when = rule.when
    if when is None:
        yield ()
    elif when.test is Test.OTHER_THAN:
        yield (seccomp.Arg(when.argument, seccomp.NE, when.value),)
    elif when.test is Test.EQUAL_LOW:
        yield (seccomp.Arg(when.argument, seccomp.MASKED_EQ, _LOW_32, when.value),)
    else:
        for bit in (1 << n for n in range(when.value.bit_length()) if when.value >> n & 1):
            yield (seccomp.Arg(when.argument, seccomp.MASKED_EQ, bit, bit),)


def _exported(made: Any) -> bytes:
    descriptor = os.memfd_create("filter")
    with os.fdopen(descriptor, "w+b") as file:
        made.export_bpf(file)
        file.seek(0)
        return file.read()


_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_LOW_BITS = 32
_LOW_MASK = (1 << _LOW_BITS) - 1

_Argument = dict[str, Any]


def oci_profile(*, gpu: bool = False, machine: str | None = None) -> dict[str, Any]:
    """The filter as a profile for `--security-opt seccomp=FILE`."""
    here = machine or platform.machine()
    if here not in _ARCHITECTURES:
        raise PlatformError(
            "no_system_call_filter",
            f"There is no system-call filter for the architecture {here!r}.",
            f"Run the worker on one of {', '.join(sorted(_ARCHITECTURES))}.",
        )
    rules = list(denied(gpu=gpu))
    sometimes = _sometimes(rules)
    return {
        # A call that is in neither table does not exist inside.
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "architectures": [_ARCHITECTURES[here]],  # calls of any other end the process
        "syscalls": [
            _allow(sorted(ALLOWED | _left_out(gpu=gpu))),
            *(_refuse(rule, []) for rule in rules if rule.when is None),
            *(part for name, found in sometimes.items() for part in _conditional(name, found)),
        ],
    }


def _left_out(*, gpu: bool) -> frozenset[str]:
    """Calls that are refused elsewhere but not in this box."""
    every = {name for rule in denied(gpu=False) for name in rule.names}
    return frozenset(every - {name for rule in denied(gpu=gpu) for name in rule.names})


def _sometimes(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        if rule.when is not None:
            for name in rule.names:
                found.setdefault(name, []).append(rule)
    return found


def _conditional(name: str, rules: Sequence[Rule]) -> Iterator[dict[str, Any]]:
    """Rules for one call that is refused sometimes; each condition is about the same argument."""
    conditions = [rule.when for rule in rules if rule.when is not None]
    for rule, condition in zip(rules, conditions, strict=True):
        for argument in refusals(condition):
            yield _refuse(rule, [argument], name)
    for argument in permissions(conditions):
        yield _allow([name], [argument])


def refusals(condition: Condition) -> Iterator[_Argument]:
    """Tests that together hold exactly where a condition refuses."""
    if condition.test is Test.OTHER_THAN:
        yield _argument(condition, "SCMP_CMP_NE", condition.value)
    elif condition.test is Test.BITS:
        for bit in _bits(condition.value):
            yield _argument(condition, "SCMP_CMP_MASKED_EQ", bit, bit)
    else:
        yield _argument(condition, "SCMP_CMP_MASKED_EQ", _LOW_MASK, condition.value)


def permissions(conditions: Sequence[Condition]) -> Iterator[_Argument]:
    """Tests of which at least one holds exactly where none of the conditions refuses."""
    first, tests = conditions[0], {condition.test for condition in conditions}
    if tests == {Test.EQUAL_LOW} and len({condition.argument for condition in conditions}) == 1:
        for mask, value in others({condition.value for condition in conditions}):
            yield _argument(first, "SCMP_CMP_MASKED_EQ", mask, value)
    elif len(conditions) > 1:
        raise ValueError("several conditions on one call must be values of one argument")
    elif first.test is Test.OTHER_THAN:
        yield _argument(first, "SCMP_CMP_EQ", first.value)
    else:
        yield _argument(first, "SCMP_CMP_MASKED_EQ", first.value, 0)


def others(values: set[int]) -> Iterator[tuple[int, int]]:
    """(mask, value) pairs: a number of 32 bits matches one exactly where it is none of the values.

    It differs from all of them in a bit that they share, or in what they have in the other bits.
    """
    one = min(values)
    apart = 0
    for value in values:
        apart |= one ^ value
    for bit in _bits(_LOW_MASK & ~apart):
        yield bit, ~one & bit
    taken = {value & apart for value in values}
    for chosen in product(*((0, bit) for bit in _bits(apart))):
        if apart and sum(chosen) not in taken:
            yield apart, sum(chosen)


def _bits(mask: int) -> list[int]:
    return [1 << place for place in range(64) if mask >> place & 1]


def _argument(condition: Condition, test: str, value: int, second: int = 0) -> _Argument:
    return {"index": condition.argument, "op": test, "value": value, "valueTwo": second}


def _allow(names: Sequence[str], arguments: Sequence[_Argument] = ()) -> dict[str, Any]:
    return {"names": list(names), "action": "SCMP_ACT_ALLOW", "args": list(arguments)}


def _refuse(rule: Rule, arguments: Sequence[_Argument], name: str | None = None) -> dict[str, Any]:
    return {
        "names": [name] if name else list(rule.names),
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": rule.code,
        "args": list(arguments),
    }
