"""Attempts that code in a box makes, each a few lines of source that raise where it is stopped.

An attempt knows the worst case: the exact host path, port or address of what it is after, given by
`@places@` that the decoys fill in. So that an attempt is stopped proves a wall, not ignorance.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.hostile.case import Category


@dataclass(frozen=True)
class Attempt:
    """One thing that must not succeed.

    Attributes:
        name: in words; unique.
        category: what it is after.
        code: raises where it is stopped.
    """

    name: str
    category: Category
    code: str


PRELUDE = """\
import ctypes, fcntl, mmap, os, resource, signal, socket, struct, sys, time
ABOVE = os.getppid()
LIBC = ctypes.CDLL(None, use_errno=True)

def syscall(number, *arguments):
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    LIBC.syscall.restype = ctypes.c_long
    result = LIBC.syscall(ctypes.c_long(number), *given)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result

def read(path, size=4096):
    with open(path, "rb", buffering=0) as file:
        data = file.read(size)
    assert data, "nothing in it"
    return data

def opened(path, flags):
    os.close(os.open(path, flags))

def attempt(name, act):
    # A child of its own: some ways of being stopped are a signal.
    pid = os.fork()
    if pid == 0:
        code, why = 1, ""
        signal.alarm(10)
        try:
            act()
            code = 0
        except BaseException as error:
            why = type(error).__name__ + " " + str(getattr(error, "errno", ""))
        if why:
            os.write(2, f"  {why}\\n".encode())
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    print(("GOT " if status == 0 else "refused ") + name, flush=True)
"""

_BRIGHTNESS = """\
class Scorer:
    def score(self, images, prompts):
        return [float(image.getpixel((0, 0))[0]) for image in images]
"""


def scorer_of(attempts: Sequence[Attempt]) -> str:
    """Source of a scorer that makes every attempt, prints what came of each, and then behaves."""
    acts = "".join(
        f"def act_{n}():\n{textwrap.indent(textwrap.dedent(one.code).strip(), '    ')}\n"
        f"attempt({one.name!r}, act_{n})\n"
        for n, one in enumerate(attempts)
    )
    return f"{PRELUDE}\n{acts}\n{_BRIGHTNESS}"


def attempts_at(category: Category, codes: Mapping[str, str]) -> tuple[Attempt, ...]:
    """Attempts at one kind of thing, from their code by name."""
    return tuple(Attempt(name, category, code) for name, code in codes.items())


NETWORK = attempts_at(
    Category.NETWORK,
    {
        "a connection over IPv4": 'socket.create_connection(("127.0.0.1", @tcp4@), timeout=3)',
        "a connection over IPv6": 'socket.create_connection(("::1", @tcp6@), timeout=3)',
        "a question to a name server": """
            asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            asked.settimeout(5)
            asked.sendto(b"example.org?", ("127.0.0.1", @udp@))
            assert asked.recv(99)
            """,
        "the resolver of the C library": 'socket.getaddrinfo("example.org", 80)',
        "a socket of the worker's machine, by its path": """
            found = socket.socket(socket.AF_UNIX)
            found.connect("@unix@")
            """,
        "an abstract socket of the worker's machine": """
            found = socket.socket(socket.AF_UNIX)
            found.connect("\\0@abstract@")
            """,
        "a socket to the hypervisor (vsock)": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
        "the kernel's routing socket (netlink)": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).bind((0, 0))",
        "a raw packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "a socket of the kernel's cryptography": 'socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET).bind(("hash", "sha256"))',
        "an internet socket that is connected to nothing": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "the list of open ports of the machine": 'assert b":%04X " % @tcp4@ in read("/proc/net/tcp", 1 << 22)',
    },
)
READING = attempts_at(
    Category.READING,
    {
        "the labels": 'read("@labels@")',
        "another submission": 'read("@other@")',
        "an upload in the store": 'read("@upload@")',
        "the worker's token in its home folder": 'read("@token_file@")',
        "the project": 'read("@project@")',
        "the home folder": 'assert os.listdir("@home@")',
        "the accounts of the machine": 'read("/etc/passwd")',
        "the folders of the process above": 'read(f"/proc/{ABOVE}/root/etc/passwd")',
        "the environment of the process above": 'read(f"/proc/{ABOVE}/environ")',
        "the environment of any other process": """
            ours = set(os.environ)
            for name in os.listdir("/proc"):
                if name.isdigit():
                    try:
                        found = read(f"/proc/{name}/environ", 1 << 20)
                    except (OSError, AssertionError):
                        continue
                    if {v.split(b"=")[0].decode() for v in found.split(b"\\0")[:-1]} - ours:
                        return
            raise PermissionError
            """,
        "the worker's memory through /proc": """
            with open(f"/proc/{ABOVE}/mem", "rb", buffering=0) as memory:
                memory.seek(@address@)
                assert memory.read(8)[::-1] == b"@end_of_secret@"
            """,
        "the memory above by a system call (process_vm_readv)": """
            class Piece(ctypes.Structure):
                _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
            with open(f"/proc/{ABOVE}/maps") as maps:
                start = next(int(l.split("-")[0], 16) for l in maps if "[stack]" not in l)
            room = ctypes.create_string_buffer(8)
            here = Piece(ctypes.addressof(room), 8)
            there = Piece(start, 8)
            syscall(310, ABOVE, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
            """,
        "the process above, traced (ptrace)": "syscall(101, 0x4206, ABOVE, 0, 0)",
        "a descriptor of the process above (pidfd_getfd)": "syscall(438, syscall(434, ABOVE, 0), 1, 0)",
        "a comparison with the process above (kcmp)": "syscall(312, ABOVE, ABOVE, 2, 0, 0)",
        "a signal to the worker": "os.kill(@worker@, 0)",
        "a descriptor that the worker left open": """
            listed = sorted(map(int, os.listdir("/proc/self/fd")))
            # The three ordinary ones, the two of the protocol, and that of the listing.
            others = [n for n in listed if n > 2 and n not in (200, 201)]
            assert len(others) > 1 or "/" in os.readlink("/proc/self/fd/1")
            """,
        "memory that others share by a number": "syscall(30, @shared@, 0, 0)",
        "the kernel's messages": "syscall(103, 3, ctypes.create_string_buffer(64), 64)",
        "the kernel's message device": 'opened("/dev/kmsg", os.O_RDONLY)',
        "the physical memory": 'opened("/dev/mem", os.O_RDONLY)',
        "the kernel's memory": 'read("/proc/kcore")',
        "the list of mounted disks": 'opened("@disk@", os.O_RDONLY)',
        "keys of the kernel's keyring": "syscall(250, 0, -3, 1)",
    },
)
KERNEL = attempts_at(
    Category.KERNEL,
    {
        "a user namespace of its own": "syscall(272, 0x10000000)",
        "a mount namespace of its own": "syscall(272, 0x00020000)",
        "a network namespace of its own": "syscall(272, 0x40000000)",
        "a process in namespaces of its own (clone)": """
            # CLONE_NEWUSER and SIGCHLD
            pid = syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
            """,
        "a folder over another (mount)": """
            assert LIBC.unshare(0x00020000) == 0 or True
            if LIBC.mount(b"x", b"/tmp", b"tmpfs", 0, None) != 0:
                raise OSError(ctypes.get_errno(), "")
            """,
        "another root folder (chroot)": 'os.chroot("/usr")',
        "the user root": "os.setresuid(0, 0, 0)",
        "another group": "os.setgroups([0])",
        "a device file": 'os.mknod("@scratch@/device", 0o020666, os.makedev(1, 1))',
        "a program of the kernel (bpf)": "syscall(321, 0, ctypes.create_string_buffer(struct.pack('<5I', 2, 4, 8, 1, 0) + bytes(128)), 148)",
        "a ring of requests (io_uring)": "syscall(425, 4, ctypes.create_string_buffer(120))",
        "faults handled by itself (userfaultfd)": "syscall(323, 0)",
        "performance counters": "syscall(298, ctypes.create_string_buffer(struct.pack('<2I', 1, 128) + bytes(120)), 0, -1, -1, 0)",
        "a file without a name in memory (memfd)": 'os.close(os.memfd_create("x"))',
        "memory shared by a number (System V)": "syscall(31, syscall(29, 0, 4096, 0o600), 0, 0)",
        "a semaphore by a number (System V)": "syscall(66, syscall(64, 0, 1, 0o600), 0, 0, 0)",
        "a message queue of the kernel": "syscall(240, b'assay-attempt', 0o102, 0o600, 0); syscall(241, b'assay-attempt')",
        "a file by its handle": "syscall(304, -100, ctypes.create_string_buffer(64), 0)",
        "a higher priority": "os.setpriority(os.PRIO_PROCESS, 0, -5)",
        "real-time scheduling": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
        "limits above its own": """
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard + 1))
            """,
        "safety from the out-of-memory killer": 'opened("/proc/self/oom_score_adj", os.O_WRONLY)',
        "calls of another architecture (x32)": "syscall(0x40000000 | 39)",
        "typing into the terminal (TIOCSTI)": "import errno\n"
        "try:\n"
        "    fcntl.ioctl(0, 0x5412, b'x')\n"
        "except OSError as error:\n"
        "    # The kernel looks for a terminal only where no filter stands before it.\n"
        "    assert error.errno != errno.EPERM",
    },
)
WRITING = attempts_at(
    Category.WRITING,
    {
        "a file of the machine": 'opened("@canary@", os.O_WRONLY)',
        "a new file on the machine": 'opened("@decoys@", os.O_TMPFILE | os.O_WRONLY)',
        "its own folder": "opened(os.path.dirname(__file__), os.O_TMPFILE | os.O_WRONLY)",
        "its own source": "opened(__file__, os.O_WRONLY)",
        "our runner": 'opened(sys.modules["assay_box.wire_protocol"].__file__, os.O_WRONLY)',
        "a library": "import PIL; opened(PIL.__file__, os.O_WRONLY)",
        "the system's programs": 'opened("/usr/lib", os.O_TMPFILE | os.O_WRONLY)',
        "the root folder": 'opened("/", os.O_TMPFILE | os.O_WRONLY)',
        "the folder of devices": 'opened("/dev", os.O_TMPFILE | os.O_WRONLY)',
        "what the kernel does with crashes": 'opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)',
        "the kernel's memory settings": 'opened("/proc/sys/vm/overcommit_memory", os.O_WRONLY)',
        "the kernel's emergency keys": 'opened("/proc/sysrq-trigger", os.O_WRONLY)',
        "the memory of the process above": 'opened(f"/proc/{ABOVE}/mem", os.O_RDWR)',
        "control groups": 'opened("/sys/fs/cgroup/pids/cgroup.procs", os.O_WRONLY)',
    },
)
ATTEMPTS: tuple[Attempt, ...] = (*NETWORK, *READING, *KERNEL, *WRITING)
UNCONTROLLED = frozenset(
    {
        "the resolver of the C library", "a socket of the kernel's cryptography",
        "a comparison with the process above (kcmp)", "a descriptor that the worker left open",
        "the kernel's message device", "the physical memory", "the kernel's memory",
        "the list of mounted disks", "keys of the kernel's keyring",
        "a folder over another (mount)", "a program of the kernel (bpf)",
        "a ring of requests (io_uring)", "faults handled by itself (userfaultfd)",
        "performance counters", "a file by its handle", "real-time scheduling",
        "limits above its own", "calls of another architecture (x32)",
        "the kernel's emergency keys", "control groups",
    }
)  # fmt: skip
"""Attempts that need not succeed without any box: not every machine has what they are after. All
others must, for root, so that none of them is at something that cannot be had anyway."""
