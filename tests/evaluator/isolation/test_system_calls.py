"""Which system calls a box may make, as its code finds them."""

from __future__ import annotations

import errno
import importlib
import signal
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation import syscalls
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.job import Job
from evaluator.isolation.syscalls import ALLOWED, DENIED, Condition, Rule, Test, denied, known
from tests.evaluator.isolation.boxes import Open, png

pyseccomp = importlib.import_module("pyseccomp")
REVIEWED = 456
"""The highest number that somebody looked at for the tables."""


def number_of(name: str) -> int:
    return int(pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name))


def names_of_this_machine() -> set[str]:
    names = set()
    for number in range(REVIEWED + 1):
        try:
            names.add(pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, number).decode())
        except ValueError:
            continue
    return names


def test_no_call_is_both_let_through_and_refused() -> None:
    always = {name for rule in DENIED if rule.when is None for name in rule.names}
    assert ALLOWED.isdisjoint(name for rule in DENIED for name in rule.names)
    conditional = {name for rule in DENIED if rule.when for name in rule.names}
    assert always.isdisjoint(conditional)


def test_every_call_of_this_machine_was_looked_at() -> None:
    assert names_of_this_machine() <= known()


@pytest.mark.parametrize(
    ("condition", "refused", "let_through"),
    [
        (Condition(0, Test.OTHER_THAN, 1), (0, 2, 40, 1 << 32 | 1), (1,)),
        (Condition(0, Test.BITS, 0x30), (0x10, 0x20, 0x11, 1 << 40 | 0x10), (0, 1, 1 << 40)),
        (Condition(1, Test.EQUAL_LOW, 0x5412), (0x5412, 1 << 32 | 0x5412), (0x5413, 0)),
    ],
)
def test_a_condition_cannot_be_passed_by_the_upper_half_of_a_register(
    condition: Condition, refused: tuple[int, ...], let_through: tuple[int, ...]
) -> None:
    assert all(condition.refuses(argument) for argument in refused)
    assert not any(condition.refuses(argument) for argument in let_through)


def test_a_card_needs_memory_files_and_nothing_else() -> None:
    more = set(denied(gpu=False)) - set(denied(gpu=True))
    assert [rule.names for rule in more] == [("memfd_create",)]
    assert syscalls.filter_programs(gpu=True)[1] != syscalls.filter_programs(gpu=False)[1]


@pytest.mark.isolation
def test_every_call_of_the_table_is_refused_in_a_box_with_its_error(opened: Open) -> None:
    tried = [(rule, name) for rule in DENIED for name in rule.names if number_of(name) >= 0]
    calls = [(number_of(name), *arguments_for(rule)) for rule, name in tried]
    session = opened(f"""
        import ctypes
        class Scorer:
            def score(self, images, prompts):
                libc = ctypes.CDLL(None, use_errno=True)
                def code(number, *arguments):
                    ctypes.set_errno(0)
                    words = [ctypes.c_ulong(a) for a in arguments]
                    return 0.0 if libc.syscall(number, *words) >= 0 else float(ctypes.get_errno())
                return [code(*call) for call in {calls!r}]
        """)
    with session:
        codes = session.score([png()], [(0, "a cat")] * len(calls))
    wrong = [name for (rule, name), code in zip(tried, codes, strict=True) if code != rule.code]
    assert wrong == []


def arguments_for(rule: Rule) -> tuple[int, ...]:
    """Arguments with which the rule applies; harmless where it did not."""
    words = [0, 0, 0, 0, 0, 0]
    if rule.when is not None:
        words[rule.when.argument] = {
            Test.OTHER_THAN: 40,  # AF_VSOCK
            Test.BITS: 0x10000000 | signal.SIGCHLD,
            Test.EQUAL_LOW: 1 << 32 | rule.when.value,
        }[rule.when.test]
    if rule.names == ("ioctl",):
        words[0] = 1
    return tuple(words)


@pytest.mark.isolation
def test_calls_that_no_table_holds_do_not_exist_and_other_architectures_kill(
    opened: Open,
) -> None:
    session = opened("""
        import ctypes, os
        class Scorer:
            def score(self, images, prompts):
                libc = ctypes.CDLL(None, use_errno=True)
                libc.syscall(1000)
                unknown = float(ctypes.get_errno())
                child = os.fork()
                if child == 0:
                    libc.syscall(0x40000000 | 39)  # getpid, as x32 has it
                    os._exit(0)
                _, status = os.waitpid(child, 0)
                return [unknown, float(os.waitstatus_to_exitcode(status))]
        """)
    with session:
        unknown, ended = session.score([png()], [(0, "a cat")] * 2)
    assert unknown == errno.ENOSYS
    assert ended == -signal.SIGSYS or number_of("arch_prctl") < 0  # x32 is of x86-64 alone


@pytest.mark.isolation
def test_what_scorers_use_is_let_through(opened: Open) -> None:
    session = opened("""
        import multiprocessing, socket, subprocess, tempfile, threading
        def double(x): return 2 * x
        class Scorer:
            def score(self, images, prompts):
                a, b = socket.socketpair()
                a.send(b"1")
                told = b.recv(1) == b"1"
                ran = subprocess.run(["/bin/echo", "hi"], capture_output=True).stdout == b"hi\\n"
                with multiprocessing.get_context("fork").Pool(2) as pool:
                    doubled = pool.map(double, [1, 2]) == [2, 4]
                seen = []
                thread = threading.Thread(target=seen.append, args=(1,))
                thread.start(); thread.join()
                with tempfile.TemporaryFile() as file:
                    written = file.write(b"x") == 1
                return [float(x) for x in (told, ran, doubled, seen == [1], written)]
        """)
    with session:
        assert list(session.score([png()], [(0, "a cat")] * 5)) == [1.0] * 5


def test_without_the_library_nothing_is_run_and_the_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(name: str, package: str | None = None) -> ModuleType:
        if name == "pyseccomp":
            raise RuntimeError("Unable to find libseccomp")
        return load(name, package)

    load = importlib.import_module
    syscalls.filter_programs.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    try:
        # `env` is there where bubblewrap is not: it must not come to be started.
        backend = Bubblewrap(executable="env")
        probe = backend.probe()
        with pytest.raises(PlatformError) as caught:
            backend.start(Job(tmp_path))
    finally:
        syscalls.filter_programs.cache_clear()
    assert not probe.ok
    assert "Unable to find libseccomp" in probe.reason
    assert "apt install libseccomp2" in probe.remedy
    assert caught.value.code == "no_system_call_filter"
