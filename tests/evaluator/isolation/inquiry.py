"""Questions that a scorer answers from inside, of every backend alike.

A box is slow to start beside a question, so one scorer asks many of them and answers each with a
float: 1 for yes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evaluator.isolation.job import MIB
from tests.evaluator.isolation.boxes import SHORT

REPOSITORY = Path(__file__).resolve().parents[3]
SECRET = "ASSAY_TEST_SECRET"

SMALL = replace(
    SHORT, scratch_bytes=24 * MIB, shm_bytes=24 * MIB, file_bytes=16 * MIB, memory_bytes=512 * MIB
)
"""For a scorer that tries how much it may write."""

PEAK_BYTES = 120 * MIB

SEEN: Mapping[str, str] = {
    "a variable of the worker": f"any({SECRET!r} in environ(p) for p in ('self', '1'))",
    "a variable nobody set": "bool({e.partition('=')[0] for p in ('self', '1') "
    "for e in environ(p).split(chr(0)) if e} - KNOWN)",
    "the project": f"os.path.exists({str(REPOSITORY)!r})",
    "the home folder": f"os.path.exists({str(Path.home())!r})",
    "the rest of the machine": "any(map(os.path.exists, ('/var', '/home', '/root', '/etc/shadow')))",
    "a socket of an engine": "any(map(os.path.exists, ENGINE_SOCKETS))",
    "other processes": "len([p for p in os.listdir('/proc') if p.isdigit()]) > 4",
    "a network": "{n.split(':')[0].strip() for n in open('/proc/net/dev').readlines()[2:]} - {'lo'}",
    "the name of this machine": "os.uname().nodename != 'sandbox'",
    "its name servers": "any(s in text('/etc/resolv.conf') for s in NAME_SERVERS)",
    "open files of the worker": "set(os.listdir('/proc/self/fd')) - {'0', '1', '2', '3', '200', '201'}",
    "open files of the first process": "[link for link in links('/proc/1/fd') "
    "if link.startswith('/') and not link.startswith(('/dev/', '/proc/'))]",
    "another submission": "os.listdir('/submission') != ['scorer.py']",
    "the kernel's root user": "os.getuid() == 0",
    "a capability": "[l for l in open('/proc/self/status') if l.startswith('CapEff') "
    "and int(l.split()[1], 16)]",
}
"""What must not be seen."""

UNREACHABLE: Mapping[str, str] = {
    "a port of this machine": "socket.create_connection(('127.0.0.1', PORT), timeout=1)",
    "a port of this machine, version 6": "socket.create_connection(('::1', PORT), timeout=1)",
    "another machine": "socket.create_connection(('192.0.2.1', 80), timeout=1)",
    "a datagram out": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
    ".sendto(b'x', ('192.0.2.1', 53))",
    "an abstract socket of this machine": "socket.socket(socket.AF_UNIX).connect(ABSTRACT)",
    "the hypervisor": "socket.socket(40, socket.SOCK_STREAM).connect((2, 1))",
    "a name": "socket.getaddrinfo('example.org', 80)",
    "root": "os.setuid(0)",
    "another root folder": "os.chroot('/tmp')",
    "the memory of the first process": "os.close(os.open('/proc/1/mem', os.O_RDWR))",
}
"""What must be refused."""

UNWRITABLE: Mapping[str, str] = {
    path: f"touch({path!r})"
    for path in (
        "/x",
        "/usr/x",
        "/etc/x",
        "/dev/x",
        "/submission/x",
        "/submission/scorer.py",
        "/runner/x",
        "/runner/wire_protocol.py",
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/1/exe",
    )
} | {
    "the libraries": "touch(os.path.dirname(PIL.__file__) + '/x')",
    # Past read-only mounts: its owner may change the mode of a file that nobody may write now.
    "the mode of the program that started the box": "os.chmod('/proc/1/exe', 0o755)",
    "its times": "os.utime('/proc/1/exe', (0, 0))",
}
"""What may not be written or changed."""

BOUNDED: Mapping[str, str] = {
    "a file": "fill('/tmp', 1, 20)",
    "/scratch": "fill('/scratch', 8, 4)",
    "/dev/shm": "fill('/dev/shm', 8, 4)",
    "/tmp": "fill('/tmp', 10, 8)",
}
"""Where more than fits must be refused: files, and MiB of each."""

WRITABLE: Mapping[str, str] = {
    f"a small file in {folder}": f"touch('{folder}/small')"
    for folder in ("/scratch", "/tmp", "/dev/shm")
}
"""Where a scorer may write."""

DENIED_CALLS: Mapping[str, str] = {
    "ptrace": "call(101, 0, 0, 0, 0)",
    "unshare": "call(272, 0x10000000)",
    "io_uring_setup": "call(425, 1, 0)",
    "bpf": "call(321, 0, 0, 0)",
    "userfaultfd": "call(323, 0)",
    "keyctl": "call(250, 0, 0)",
    "memfd_create": "call(319, b'x', 0)",
    "mount": "call(165, b'x', b'/tmp', b'tmpfs', 0, 0)",
    "socket of IP": "call(41, 2, 1, 0)",
    "socket of netlink": "call(41, 16, 3, 0)",
    "socket of vsock": "call(41, 40, 1, 0)",
    "TIOCSTI": "call(16, 1, 0x5412, b'x')",
    "TIOCSTI above 32 bits": "call(16, 1, 0x100005412, b'x')",
    "a call of the future": "call(1000)",
}
"""By the numbers of x86_64: refused by the filter, with its own error numbers."""

_FILTERED = "{errno.EPERM, errno.EAFNOSUPPORT, errno.ENOSYS}"

_INQUIRY = """
import ctypes, errno, os, socket, sys, time
import PIL

KNOWN = {{"HOME", "TMPDIR", "USER", "PATH", "LANG", "LC_CTYPE", "PWD", "OMP_NUM_THREADS",
         "HF_HUB_OFFLINE", "HF_HUB_CACHE", "LD_LIBRARY_PATH"}}
PORT, ABSTRACT, NAME_SERVERS, ENGINE_SOCKETS = {port}, {abstract!r}, {servers!r}, {sockets!r}
libc = ctypes.CDLL(None, use_errno=True)

def text(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""

def environ(pid):
    return text(f"/proc/{{pid}}/environ")

def links(folder):
    try:
        return [os.readlink(f"{{folder}}/{{name}}") for name in os.listdir(folder)]
    except PermissionError:
        return []

def touch(path):
    with open(path, "ab") as file:
        file.write(b"x")

def fill(folder, n_files, n_mib):
    names = [f"{{folder}}/full{{n}}" for n in range(n_files)]
    try:
        for name in names:
            with open(name, "wb") as file:
                for _ in range(n_mib):
                    file.write(bytes(2**20))
    finally:
        for name in names:
            if os.path.exists(name):
                os.remove(name)

def call(number, *words):
    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(w) if isinstance(w, int) else w for w in words]) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def asked(what, act, answer):
    try:
        return answer(act)
    except Exception as error:
        print(f"{{what}}: {{error!r}}")
        return -1.0

def seen(act):
    return float(bool(act()))

def worked(act):
    try:
        act()
    except OSError:
        return 0.0
    return 1.0

def unfiltered(act):
    try:
        act()
    except OSError as error:
        return float(error.errno not in {filtered})
    return 1.0

class Scorer:
    def score(self, images, prompts):
        print("to \\x1b[31mred\\x1b[0m stdout \\u202e")
        os.write(1, b"RE01 straight to the descriptor\\n")
        os.system("echo from a child")
        sys.stderr.write("to stderr\\n")
        print(f"kernel {{os.uname().release}}")
        print(f"user {{os.getuid()}}")
        held = bytearray({peak})
        time.sleep(1)  # it is sampled
        del held
        return [
            {answers}
        ]
"""


def inquiry(*, port: int, abstract: str, servers: Sequence[str], sockets: Sequence[str]) -> str:
    """A scorer that answers every question, in the order of `questions`.

    Args:
        port: where this machine listens.
        abstract: name of an abstract socket where it listens.
        servers: its name servers.
        sockets: of engines, that must not be in the box.
    """
    answers = ",\n            ".join(
        f"asked({what!r}, lambda: {act}, {answer})"
        for group, answer in questions_and_answers()
        for what, act in group.items()
    )
    return _INQUIRY.format(
        port=port, abstract=abstract, servers=list(servers), sockets=list(sockets),
        filtered=_FILTERED, peak=PEAK_BYTES, answers=answers,
    )  # fmt: skip


def questions_and_answers() -> tuple[tuple[Mapping[str, str], str], ...]:
    """Each group, and the function of the scorer that answers it."""
    return (
        (SEEN, "seen"),
        (UNREACHABLE, "worked"),
        (UNWRITABLE, "worked"),
        (BOUNDED, "worked"),
        (WRITABLE, "worked"),
        (DENIED_CALLS, "unfiltered"),
    )
