"""A command that is run warm is what a process of its own would be, or it is one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import finished, running
from tests.kit.warm.warm_python import WarmPython, WarmServer, warm_server

COMMON = {"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"}
PROBE = """
import os, random, signal, sys
from probe import read_early

def told(name, value):
    print(f"{name}: {value}")

told("name", (__name__, __spec__.name, __file__, __package__))
told("words", (sys.argv, sys.orig_argv[1:]))
told("path", sys.path)
told("folder", os.getcwd())
told("environment", sorted(os.environ.items()))
told("mask", oct(os.umask(0)))
told("ignored", [n for n in range(1, 32) if signal.getsignal(n) == signal.SIG_IGN])
told("interrupted", signal.getsignal(signal.SIGINT))
told("files", sorted(os.listdir("/proc/self/fd"))[:-1])
for stream in (sys.stdin, sys.stdout, sys.stderr):
    told(stream.name, (stream.mode, stream.encoding, stream.errors, stream.line_buffering))
told("input", sys.stdin.read())
told("bytecode", sys.dont_write_bytecode)
how, *more = sys.argv[1:]
if how == "exit":
    sys.exit(int(more[0]) if more[0].isdigit() else more[0])
if how == "raise":
    raise ValueError("no luck")
if how == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "wait":
    def ended(number, _):
        told("signal", number)
        sys.exit(3)
    signal.signal(signal.SIGTERM, ended)
    open(more[0], "w").close()
    signal.pause()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[WarmServer]:
    with warm_server(COMMON, ()) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a package of its own."""
    package = tmp_path / "here" / "probe"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import os\nread_early = os.environ.get('READ_EARLY')\nwritten_early = os.environ.setdefault('SET_EARLY', '1')\n"
    )
    (package / "__main__.py").write_text(PROBE)
    return package.parent


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**COMMON, "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "more")}


@pytest.fixture
def python(server: WarmServer, folder: Path, environment: dict[str, str]) -> Iterator[WarmPython]:
    with server.python(folder, environment, ["probe"]) as python:
        yield python


WAYS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": (["exit", "0"], {}),
    "a code": (["exit", "41"], {"input": "typed\n"}),
    "words": (["exit", "a message"], {"input": ""}),
    "spaces and signs": (["", "é 'x' \udc80", "-m", "--"], {}),
    "an error": (["raise"], {}),
    "killed": (["die"], {}),
    "a mask": (["exit", "0"], {"umask": 0o027}),
    "more variables": (["exit", "0"], {"more": {"ÜBER": "\udcff", "EMPTY": ""}}),
    "a debugger": (["exit", "0"], {"more": {"PYTHONBREAKPOINT": "0"}}),
    "without bytecode": (["exit", "0"], {"more": {"PYTHONDONTWRITEBYTECODE": "1"}}),
}  # fmt: skip


@pytest.mark.first_quick
@pytest.mark.parametrize("way", WAYS)
def test_it_comes_to_the_same(
    python: WarmPython, folder: Path, environment: dict[str, str], way: str
) -> None:
    words, options = WAYS[way]
    options = {"input": "", **options}
    env = {**environment, **options.pop("more", {})}
    warm, real = (
        subprocess.run(
            [program, "-m", "probe", *words], cwd=folder, env=env, capture_output=True,
            text=True, errors="surrogateescape", check=False, **options,
        )
        for program in (python.program, sys.executable)
    )  # fmt: skip
    assert warm.stdout == real.stdout
    assert warm.stderr == real.stderr
    assert warm.returncode == real.returncode
    assert python.stop() == {"warm": 1}


def test_signals_arrive_and_whoever_is_killed_takes_the_command_along(
    python: WarmPython, folder: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    for number, code in ((signal.SIGTERM, 3), (signal.SIGKILL, -signal.SIGKILL)):
        begun = tmp_path / f"begun-{number}"
        os.mkfifo(begun)
        command = [python.program, "-m", "probe", "wait", begun]
        with running(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True,
        ) as process:  # fmt: skip
            begun.read_text()
            process.send_signal(number)
            # The end of what it prints comes when the command itself has ended.
            told, _ = process.communicate(timeout=60)
            assert process.returncode == code
            assert ("signal: 15" in told) == (code == 3)
    assert python.stop() == {"warm": 2}


def test_where_it_would_not_be_the_same_it_is_a_process_of_its_own(
    python: WarmPython, folder: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    def ran(*words: object, cwd: Path = folder, **more: str) -> str:
        command = ["bash", "-c", *words, python.program]
        done = finished(command, cwd=cwd, env={**environment, **more}, within_s=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    plain = '"$0" -m probe exit 0 < /dev/null'
    assert "probe" in ran(plain)
    assert ran('"$0" -c "print(1)"') == "1\n"
    assert "usage" in ran('"$0" -m zipfile --help')
    ran(plain, READ_EARLY="1")
    ran(f"{plain} & wait $!")
    ran(f"{plain} 5< /dev/null")
    ran(f"ulimit -n 99; {plain}")
    ran(plain, cwd=tmp_path, PYTHONPATH=str(folder))
    (folder / "probe" / "__init__.py").write_text("read_early = 'changed'\n")
    ran(plain)
    refused = python.stop()
    assert refused.pop("warm") == 1
    assert refused == {
        "another module": 1,
        "other variables: READ_EARLY": 1,
        "in the background": 1,
        "a file open that is no stream": 1,
        "another user, limit or namespace": 1,
        "other code": 2,
    }


def test_what_starts_a_thread_cannot_be_imported_before_a_fork(
    server: WarmServer, folder: Path, environment: dict[str, str]
) -> None:
    (folder / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    with server.python(folder, environment, ["threaded"]) as python:
        done = finished([python.program, "-c", "print(2)"], cwd=folder, env=environment)
        assert done.stdout == "2\n"
        assert "2 threads run before a fork" in python.ended()
