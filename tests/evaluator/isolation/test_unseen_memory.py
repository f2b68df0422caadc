"""Memory that no process seems to hold, where only the watchdog bounds a box."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.isolation import processes
from evaluator.isolation.backend import Layer
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.job import MIB, Job
from tests.evaluator.isolation.boxes import SHORT, Submit, box_of

SMALL = replace(SHORT, start_s=60.0, memory_bytes=192 * MIB)
SHARED = """
    held = mmap.mmap({file}, 400 << 20)
    for page in range(0, len(held), 4096):
        held[page] = 1
        if page % (16 << 20) == 0:
            held.madvise(mmap.MADV_DONTNEED)
"""
PAGE_TABLES = """
    libc.mmap.restype = ctypes.c_void_p
    sizes = [ctypes.c_void_p(None), ctypes.c_size_t(1 << 38)]
    at = libc.mmap(*sizes, 1, 0x4022, -1, ctypes.c_long(0))
    libc.madvise(ctypes.c_void_p(at), sizes[1], 15)
    seen = (ctypes.c_char * (1 << 38)).from_address(at)
    for byte in range(0, 1 << 38, 2 << 20):
        seen[byte]
"""
SOCKETS = """
    held = []
    for _ in range(400):
        for one in socket.socketpair():
            held.append(one)
            one.setblocking(False)
            try:
                while True:
                    one.send(bytes(65536))
            except BlockingIOError:
                pass
"""
NAMES = """
    for number in range(250_000):
        os.close(os.open(f"/scratch/{number}", os.O_CREAT | os.O_WRONLY))
"""
HOLDING = {
    "shared, and out of the page tables": SHARED.format(file=-1),
    "shared by a device": SHARED.format(file='os.open("/dev/zero", os.O_RDWR)'),
    "page tables": PAGE_TABLES,
    "buffers of sockets": SOCKETS,
    "names of empty files": NAMES,
}


def holding(lines: str) -> str:
    return f"""
import ctypes, mmap, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
class Scorer:
    def __init__(self):
        self.held = self.hold()
        time.sleep(10)
    def hold(self):
{textwrap.indent(lines, "    ")}
        return held if "held" in locals() else None
    def score(self, images, prompts):
        return [1.0] * len(images)
"""


@pytest.mark.slow
@pytest.mark.isolation
@pytest.mark.parametrize("lines", HOLDING.values(), ids=HOLDING)
def test_the_watchdog_sees_memory_that_is_resident_nowhere(
    bubblewrap: Bubblewrap, submit: Submit, lines: str
) -> None:
    watched = replace(bubblewrap, without=frozenset({Layer.MEMORY_CGROUP}))
    with (
        pytest.raises(SubmitterError) as raised,
        watched.start(Job(submit(holding(lines)), limits=SMALL)),
    ):
        pass
    assert raised.value.code == "out_of_memory", raised.value


@pytest.mark.isolation
def test_a_box_that_is_only_watched_goes_first_when_the_machine_has_no_memory_left(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    watched = replace(bubblewrap, without=frozenset({Layer.MEMORY_CGROUP}))
    session = watched.start(Job(submit("class Scorer: ...")))
    try:
        text = Path(f"/proc/{box_of(session).init_pid}/oom_score_adj").read_text()
    finally:
        session.close()
    assert text == "1000\n"


def test_page_tables_count_and_what_is_mapped_without_a_file_only_where_it_matters() -> None:
    me = [os.getpid()]
    tables = processes.unseen_bytes(me, 1 << 60)
    assert 0 < tables < 1 << 30
    with mmap.mmap(-1, 64 * MIB):
        assert processes.unseen_bytes(me, 1 << 60) < tables + 64 * MIB
        assert processes.unseen_bytes(me, 0) >= 64 * MIB


def test_a_piece_of_shared_memory_counts_once_for_all_that_share_it() -> None:
    before = processes.shared_bytes([os.getpid()])
    with mmap.mmap(-1, 64 * MIB):
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            assert processes.shared_bytes([os.getpid(), child]) - before == 64 * MIB
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_sockets_count_as_if_they_were_full() -> None:
    before = processes.sockets_bytes(os.getpid())
    pairs = [socket.socketpair() for _ in range(100)]
    assert processes.sockets_bytes(os.getpid()) > before
    for pair in pairs:
        for one in pair:
            one.close()


def test_a_process_that_is_gone_holds_nothing() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert processes.sockets_bytes(child) == 0
    assert processes.shared_bytes([child]) == 0
    assert processes.unseen_bytes([child], 0) == 0
    assert processes.mounted_bytes(child, ["/tmp"]) == 0
