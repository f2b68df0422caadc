"""System calls of a box: one table, from which every backend writes its filter.

A call that is in neither table does not exist inside (ENOSYS), so that what a kernel gains later
is refused until somebody has looked at it. Calls of another architecture kill the process.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

_LOW_32 = 0xFFFFFFFF
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET together."""
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
    """When a call is refused, where not always.

    Attributes:
        argument: position, from 0.
        test: how it is looked at.
        value: what it is held against.
    """

    argument: int
    test: Test
    value: int

    def refuses(self, argument: int) -> bool:
        """Whether a call with this argument is refused."""
        if self.test is Test.OTHER_THAN:
            return argument != self.value
        if self.test is Test.BITS:
            return bool(argument & self.value)
        return argument & _LOW_32 == self.value


@dataclass(frozen=True, slots=True)
class Rule:
    """System calls that are refused.

    Attributes:
        names: of the calls.
        stops: what would be possible otherwise.
        code: the error number that the caller sees.
        when: only then; None for always.
        needed_by_gpu: whether the libraries of a graphics card need it, so that it is refused on
            the processor alone.
    """

    names: tuple[str, ...]
    stops: str
    code: int = errno.EPERM
    when: Condition | None = None
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
    """The rules for a box.

    Args:
        gpu: whether it is given a graphics card.
    """
    return (rule for rule in DENIED if not (gpu and rule.needed_by_gpu))


def known() -> frozenset[str]:
    """Every call of the two tables; no other exists inside."""
    return ALLOWED.union(*(rule.names for rule in DENIED))
