"""Scorers that every backend must bear alike, among them those that end badly."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace

from evaluator.isolation.job import MIB, Limits
from tests.evaluator.isolation.boxes import SHORT


@dataclass(frozen=True)
class Ending:
    """A scorer that ends badly.

    Attributes:
        wall: that it runs against: one of `ENDING_WALLS`.
        source: its text.
        codes: one of which its author is told.
        said: part of what its author is told.
        limits: of the job.
        isolated: whether it takes a backend that isolates.
    """

    wall: str
    source: str
    codes: tuple[str, ...]
    said: str = ""
    limits: Limits = SHORT
    isolated: bool = False


ENDING_WALLS = ("ends", "answers", "time", "memory")
"""Walls that a scorer runs against by ending badly."""


def _scorer(*lines: str, imports: str = "os, signal, struct, time") -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return f"import {imports}\nclass Scorer:\n    def score(self, images, prompts):\n{body}\n"


# Written to at every page, and never held twice: each process stays below the limit by itself.
_HELD = "held = bytearray(150 * 2**20); held[::4096] = bytes(150 * 256)"

_ENDS: Mapping[str, Ending] = {
    "kills itself": Ending("ends", _scorer("os.kill(os.getpid(), 9)"), ("crashed",), "SIGKILL"),
    "exits": Ending("ends", _scorer("os._exit(7)"), ("crashed",), "ended by itself with exit code 7"),
    "segfaults": Ending("ends", _scorer("os.kill(os.getpid(), 11)"), ("crashed",), "killed by SIGSEGV"),
    "ends as if it were killed": Ending("ends", _scorer("os._exit(137)"), ("crashed",), "SIGKILL"),
    "closes its pipe": Ending("ends", _scorer("os.close(201)", "return [1.0]"), ("crashed",)),
}  # fmt: skip
_ANSWERS: Mapping[str, Ending] = {
    "answers something else": Ending(
        "answers", _scorer("os.write(201, b'garbage ' * 9)", "return [1.0]"), ("protocol",)
    ),
    "answers too long": Ending(
        "answers",
        _scorer(
            "os.write(201, struct.pack('<4sII', b'RE01', 1, 2) + struct.pack('<2d', 1, 1))",
            "return [1.0]",
        ),
        ("protocol",),
    ),
    "answers before it is asked": Ending(
        "answers",
        _scorer(
            "os.write(201, struct.pack('<4sIId', b'RE01', 1, 1, 1.0))",
            "os.write(201, struct.pack('<4sIId', b'RE01', 2, 1, 1.0))",
            "time.sleep(0.5)",
            "return [1.0]",
        ),
        ("protocol",),
    ),
}
_IN_TIME: Mapping[str, Ending] = {
    "never answers": Ending(
        "time",
        _scorer(
            "for n in set(range(1, 32)) - {9, 19}: signal.signal(n, signal.SIG_IGN)",
            "while True: pass",
        ),
        ("timeout",),
        "Scoring batch 1 took longer than 1 s",
        replace(SHORT, batch_s=1.0),
    ),
    "answers for ever": Ending(
        "time", _scorer("time.sleep(0.4)", "return [1.0]"), ("timeout",), "whole job",
        replace(SHORT, job_s=1.5),
    ),
}  # fmt: skip
_IN_MEMORY: Mapping[str, Ending] = {
    "takes too much memory in several processes": Ending(
        "memory",
        _scorer("for _ in range(4):", "    if os.fork() == 0:", f"        {_HELD}",
                "        time.sleep(60)", "time.sleep(60)"),
        ("out_of_memory",), "the limit is 300 MiB",
        replace(SHORT, memory_bytes=300 * MIB), isolated=True,
    ),
    "takes too much memory at once": Ending(
        "memory", _scorer("bytearray(b'x' * 2**30)", "return [1.0]"), ("out_of_memory",),
        limits=replace(SHORT, memory_bytes=300 * MIB),
    ),
    "takes too much memory in files": Ending(
        "memory",
        _scorer("for n in range(4):", "    with open(f'/scratch/{n}', 'wb') as file:",
                "        for _ in range(100): file.write(bytes(2**20))", "time.sleep(60)"),
        ("out_of_memory",), "the limit is 200 MiB",
        replace(SHORT, memory_bytes=200 * MIB), isolated=True,
    ),
}  # fmt: skip
_ALL: Mapping[str, Ending] = {**_ENDS, **_ANSWERS, **_IN_TIME, **_IN_MEMORY}


def endings_of(*, full: bool, isolated: bool) -> Mapping[str, Ending]:
    """Scorers that end badly, by name.

    Args:
        full: all of them; else the first at each wall.
        isolated: whether the backend isolates.
    """
    usable = [name for name, ending in _ALL.items() if isolated or not ending.isolated]
    first = {_ALL[name].wall: name for name in reversed(usable)}
    return {name: _ALL[name] for name in (usable if full else first.values())}


DUAL_ENCODER = """
class Scorer:
    def encode_images(self, images):
        self.encoded = len(images)
        return [[float(image.width), 1.0] for image in images]
    def encode_texts(self, texts):
        return [[float(len(text)), 2.0] for text in texts]
    def similarity(self, images, texts):
        return [i[0] * t[0] + self.encoded for i, t in zip(images, texts)]
    def score(self, images, prompts):
        raise AssertionError("the dearer way")
    def score_elements(self, images, prompts, elements):
        return [[float(len(e)) for e in row] for row in elements]
"""

FLOODING_WITH_A_DAEMON = """
import os, signal, time
class Scorer:
    def score(self, images, prompts):
        print("first line", flush=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for number in set(range(1, 32)) - {9, 19}:
                    signal.signal(number, signal.SIG_IGN)
                time.sleep(600)
            os._exit(0)
        for _ in range(100):
            print("x" * 100_000)
        print("last line", flush=True)
        return [1.0] * len(prompts)
"""

FORKING = """
import os, signal
class Scorer:
    def score(self, images, prompts):
        children = []
        try:
            for _ in range(400):
                child = os.fork()
                if child == 0:
                    signal.pause()
                children.append(child)
        except BlockingIOError:
            pass
        return [float(len(children))]
"""

NEIGHBOUR = """
import os, socket, time
class Scorer:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.bind("\\0assay-neighbour")
            self.socket.listen()
            self.alone = 1.0
        except OSError:
            self.alone = 0.0
    def score(self, images, prompts):
        for folder in ("/scratch", "/tmp", "/dev/shm"):
            self.alone *= not os.path.exists(f"{folder}/trace")
            open(f"{folder}/trace", "w").close()
        pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
        return [self.alone, float(len(pids)), float(max(pids))]
"""

SLEEPER = """
import time
class Scorer:
    def score(self, images, prompts):
        time.sleep(600)
"""

THREADING = _scorer(
    "threading.stack_size(65536)",
    "for _ in range(200): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "return [1.0]",
    imports="threading, time",
)
"""Wants more threads than it may have."""
