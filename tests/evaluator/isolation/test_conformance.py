"""One set of tests for every way to isolate code: what one of them does, all of them do."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks.errors import AssayError
from evaluator.isolation import processes
from evaluator.isolation.backend import Backend
from evaluator.isolation.box import NamespaceBox
from evaluator.isolation.container_box import ContainerBox
from evaluator.isolation.containers import Containers
from evaluator.isolation.job import Job
from evaluator.isolation.layers import Layer
from evaluator.isolation.limits import MIB, Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.isolation.session import ScorerSession
from tests.evaluator.isolation import conformance
from tests.evaluator.isolation.boxes import SHORT, png
from tests.evaluator.isolation.conformance import ENDINGS, REPOSITORY, SECRET, SMALL

pytestmark = pytest.mark.isolation

AT_ONCE = 3
LARGE = png(size=(512, 512))


@dataclass(frozen=True)
class Answered:
    """What a scorer answered from inside.

    Attributes:
        values: question to answer.
        log: what it printed.
        peak_bytes: memory its box was seen to hold.
        visitors: how many connections reached this machine's sockets.
    """

    values: Mapping[str, float]
    log: str
    peak_bytes: int
    visitors: int

    def of(self, group: Mapping[str, str], wanted: float = 0.0) -> list[str]:
        """Questions of a group that were answered otherwise than wanted."""
        return [what for what in group if self.values[what] != wanted]


@dataclass(frozen=True)
class Ended:
    """How a scorer ended: the code and message for its author, and what it left."""

    code: str
    message: str
    remains: list[str]


@pytest.fixture(scope="module")
def submissions() -> Iterator[ExitStack]:
    """Removes what was written."""
    with ExitStack() as stack:
        yield stack


def opened(backend: Backend, source: str, limits: Limits, stack: ExitStack) -> ScorerSession:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-submission-")))
    folder.chmod(0o755)
    (folder / "scorer.py").write_text(source)
    session = backend.start(Job(folder, limits=limits))
    if isinstance(session._box, NamespaceBox):
        # Kept until the tests are over: the kernel gives the number of a namespace that is gone
        # to the next one, whose processes would then be taken for what this box left.
        stack.callback(os.close, os.dup(session._box.namespace_fd))
    return session


def remains(session: ScorerSession) -> list[str]:
    """What is left of a box that has ended."""
    box = session._box
    left = [f"process {pid}" for pid in box.pids()]
    if box.exit_code(0) is None:
        left.append("a client")
    if isinstance(box, ContainerBox) and box.engine.container(box.name) is not None:
        left.append(f"container {box.name}")
    return left


@pytest.fixture(scope="module", params=["bubblewrap", "docker", "gvisor", "podman"])
def walled(request: pytest.FixtureRequest) -> Backend:
    """Each backend that isolates, where this machine has it."""
    found: Backend = request.getfixturevalue(f"{request.param}_backend")
    return found


@pytest.fixture(scope="module")
def plain_backend() -> Backend:
    """The one without walls, for our own scorers."""
    return PlainProcess()


@pytest.fixture(scope="module", params=["bubblewrap", "docker", "gvisor", "podman", "plain"])
def any_backend(request: pytest.FixtureRequest) -> Backend:
    """Every backend: what a scorer answers must not depend on it."""
    found: Backend = request.getfixturevalue(f"{request.param}_backend")
    return found


@pytest.fixture(scope="module")
def answered(walled: Backend, submissions: ExitStack) -> Answered:
    """The answers to all questions, out of one box."""
    name = f"\0assay-test-{os.getpid()}-{walled.name}"
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(SECRET, "token")
        listening = [stack.enter_context(made) for made in _listening(name)]
        source = conformance.inquiry(
            port=listening[0].getsockname()[1],
            abstract=name,
            servers=_name_servers(),
            sockets=_engine_sockets(walled),
        )
        asked = [what for group, _ in conformance.questions_and_answers() for what in group]
        with opened(walled, source, SMALL, submissions) as session:
            pairs = [(0, "a cat")] * len(asked)
            values = session.score([png()], pairs)
        visitors = sum(map(_visitors, listening))
    by_question = dict(zip(asked, map(float, values), strict=True))
    return Answered(by_question, session.log, session.peak_memory_bytes, visitors)


def _listening(name: str) -> list[socket.socket]:
    """Sockets of this machine that a box must not reach: two of one port, and an abstract one."""
    four = socket.create_server(("127.0.0.1", 0))
    made = [four]
    if socket.has_ipv6:
        port = four.getsockname()[1]
        made.append(socket.create_server(("::1", port), family=socket.AF_INET6))
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(name)
    unix.listen()
    return [*made, unix]


def _visitors(listening: socket.socket) -> int:
    listening.setblocking(False)
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return 0
    return 1


def _name_servers() -> list[str]:
    lines = Path("/etc/resolv.conf").read_text().splitlines()
    return [line.split()[1] for line in lines if line.startswith("nameserver")]


def _engine_sockets(backend: Backend) -> list[str]:
    usual = ["/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock"]
    if not isinstance(backend, Containers):
        return usual
    own = [word.removeprefix("unix://") for word in backend.engine.options if "unix://" in word]
    return [*usual, *own]


def test_a_real_box_has_every_layer(walled: Backend) -> None:
    probe = walled.probe()
    assert probe.ok, f"{probe.reason} {probe.remedy}"
    assert {Layer.PID, Layer.NETWORK, Layer.FILESYSTEM, Layer.CAPABILITIES} <= set(probe.layers)
    gvisor, filtered = Layer.GVISOR in probe.layers, Layer.SYSTEM_CALLS in probe.layers
    assert gvisor if walled.name == "gvisor" else filtered


def test_a_box_that_shows_what_it_must_hide_is_refused(walled: Backend) -> None:
    shown: Backend = type(walled)(**(vars(walled) | {"hidden": (Path("/usr/bin"),)}))
    probe = shown.probe()
    assert not probe.ok
    assert "/usr/bin is visible" in probe.reason


def test_a_box_shows_nothing_of_its_worker(answered: Answered) -> None:
    assert answered.of(conformance.SEEN) == []


def test_a_box_reaches_nothing_outside(answered: Answered) -> None:
    assert answered.of(conformance.UNREACHABLE) == []
    assert answered.visitors == 0


def test_a_box_cannot_change_what_it_is_given(answered: Answered) -> None:
    assert answered.of(conformance.UNWRITABLE) == []


def test_what_a_box_may_write_is_bounded(answered: Answered) -> None:
    assert answered.of(conformance.BOUNDED) == []
    assert answered.of(conformance.WRITABLE, wanted=1.0) == []


def test_system_calls_that_scoring_never_needs_do_not_reach_the_kernel(
    answered: Answered, walled: Backend
) -> None:
    if walled.name == "gvisor":  # which answers them itself
        assert f"kernel {os.uname().release}" not in answered.log
    else:
        assert answered.of(conformance.DENIED_CALLS) == []


def test_what_is_printed_is_kept_and_cleaned(answered: Answered) -> None:
    assert answered.log.splitlines()[:4] == [
        "to red stdout ",
        "RE01 straight to the descriptor",
        "from a child",
        "to stderr",
    ]


def test_the_most_memory_a_box_held_is_measured(answered: Answered) -> None:
    assert conformance.PEAK_BYTES <= answered.peak_bytes < conformance.PEAK_BYTES + 200 * MIB


def test_a_scorer_is_asked_in_the_cheapest_way_and_its_floats_come_back(
    any_backend: Backend, submissions: ExitStack
) -> None:
    with opened(any_backend, conformance.DUAL_ENCODER, SHORT, submissions) as session:
        scores = session.score([png(), LARGE], [(0, "cat"), (1, "a"), (1, "cat")])
        elements = session.score_elements(None, [(1, "a cat", ["a", "cat"]), (0, "dog", ["dog"])])
    np.testing.assert_array_equal(scores, [26.0, 514.0, 1538.0])
    assert [list(row) for row in elements] == [[1.0, 3.0], [3.0]]
    assert session.peak_memory_bytes > MIB


def test_a_flood_of_output_is_cut_and_no_daemon_survives(
    walled: Backend, submissions: ExitStack
) -> None:
    with opened(walled, conformance.FLOODING_WITH_A_DAEMON, SHORT, submissions) as session:
        assert session.score([png()], [(0, "a cat")]) == [1.0]
        time.sleep(0.3)  # through an engine, the output takes longer than the answer
        assert len(session._box.pids()) > 1
    assert remains(session) == []
    assert len(session.log) < SHORT.log_bytes + 100
    assert session.log.startswith("first line")
    assert session.log.endswith("last line\n")
    assert "bytes left out" in session.log


def ended(backend: Backend, ending: conformance.Ending, stack: ExitStack) -> Ended:
    """Ask until the scorer has ended."""
    session = opened(backend, ending.source, ending.limits, stack)
    try:
        with session:
            for _ in range(9):
                session.score([png()], [(0, "a cat")])
    except AssayError as error:
        return Ended(error.code, error.message, remains(session))
    return Ended("answered", "", remains(session))


@pytest.fixture(scope="module")
def endings(any_backend: Backend, submissions: ExitStack) -> Mapping[str, Ended]:
    """How each scorer that ends badly did; some at once, since most of them wait."""
    walls = any_backend.name != "plain"
    tried = {name: ending for name, ending in ENDINGS.items() if walls or not ending.walls}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda ending: ended(any_backend, ending, submissions), tried.values())
        return dict(zip(tried, found, strict=True))


def test_each_bad_ending_is_told_to_its_author(endings: Mapping[str, Ended]) -> None:
    told = {
        name: (found.code, found.message)
        for name, found in endings.items()
        if found.code not in ENDINGS[name].codes or ENDINGS[name].said not in found.message
    }
    assert told == {}


def test_nothing_is_left_of_a_box_that_ended_badly(endings: Mapping[str, Ended]) -> None:
    assert {name: found.remains for name, found in endings.items() if found.remains} == {}


def test_two_boxes_at_once_do_not_see_each_other(walled: Backend, submissions: ExitStack) -> None:
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(opened(walled, conformance.NEIGHBOUR, SHORT, submissions))
            for _ in range(2)
        ]
        told = [session.score([png()], [(0, "a cat")] * 3) for session in sessions]
        as_whom = {processes.user_of(max(session._box.pids())) for session in sessions}
    alone, n_processes, highest = zip(*told, strict=True)
    assert alone == (1.0, 1.0)
    assert max(n_processes) <= 4
    assert max(highest) < 100
    if os.geteuid() == 0 and walled.name != "gvisor":  # whose processes all are nobody's
        assert len(as_whom) == 2


def test_a_killed_worker_leaves_nothing_that_runs(walled: Backend, submissions: ExitStack) -> None:
    folder = Path(submissions.enter_context(tempfile.TemporaryDirectory()))
    folder.chmod(0o755)
    (folder / "scorer.py").write_text(conformance.SLEEPER)
    worker = f"""
import pickle
from pathlib import Path
from evaluator.isolation.job import Job
backend = pickle.loads(bytes.fromhex({pickle.dumps(walled).hex()!r}))
with backend.start(Job(Path({str(folder)!r}))) as session:
    print(*session._box.pids(), flush=True)
    session.score([b""], [(0, "a cat")])
"""
    command = [sys.executable, "-c", worker]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert pids
        process.kill()
    # Nobody sweeps yet: the box ends by itself, though its scorer never reads.
    assert _gone(pids)
    if isinstance(walled, Containers):
        walled.probe()
        assert walled.engine.call("ps", "--all", "--quiet", "--filter", "label=assay.box=1") == ""


def _gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)
