"""One test a wall, for every way to isolate code: what one of them does, all of them do.

Each backend has a class of its own in a test file, which says by a fixture `backend` what it is. The
list of walls in `docs/security.md` names these tests. `full` has everything tried that a wall is
there for, in place of one case: always on bubblewrap, and on all others in a nightly run.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from benchmarks.errors import SubmitterError, TransientError
from evaluator.isolation import processes
from evaluator.isolation.backend import Backend, Layer
from evaluator.isolation.containers import Containers
from evaluator.isolation.job import MIB
from tests.evaluator.isolation import inquiry
from tests.evaluator.isolation.asking import (
    Answered,
    Ended,
    all_answered,
    boxes_known_to,
    ended,
    remains,
    soon,
    started,
)
from tests.evaluator.isolation.boxes import SHORT, png
from tests.evaluator.isolation.conformance_scorers import (
    DUAL_ENCODER,
    ENDING_WALLS,
    FLOODING_WITH_A_DAEMON,
    NEIGHBOUR,
    SLEEPER,
    THREADING,
    endings_of,
)
from tests.evaluator.isolation.inquiry import REPOSITORY
from tests.kit.processes import running
from tests.kit.tiers import nightly

AT_ONCE = 3
LARGE = png(size=(512, 512))


class Answers:
    """What a scorer answers must not depend on how it is isolated, or whether."""

    full: ClassVar[bool] = nightly()

    def test_a_scorer_is_asked_in_the_cheapest_way_and_its_floats_come_back(
        self, backend: Backend, submissions: ExitStack
    ) -> None:
        with started(backend, DUAL_ENCODER, SHORT, submissions) as session:
            scores = session.score([png(), LARGE], [(0, "cat"), (1, "a"), (1, "cat")])
            elements = session.score_elements(
                None, [(1, "a cat", ["a", "cat"]), (0, "dog", ["dog"])]
            )
        np.testing.assert_array_equal(scores, [26.0, 514.0, 1538.0])
        assert [list(row) for row in elements] == [[1.0, 3.0], [3.0]]
        assert session.peak_memory_bytes > MIB

    @pytest.fixture(scope="class")
    @classmethod
    def endings(cls, backend: Backend, submissions: ExitStack) -> Mapping[str, Ended]:
        """How each scorer that ends badly did; some at once, since most of them wait."""
        tried = endings_of(full=cls.full, isolated=backend.name != "plain")
        with ThreadPoolExecutor(AT_ONCE) as pool, pytest.MonkeyPatch.context() as patch:
            if isinstance(backend, Containers):  # whose client ends some time after the scorer
                patch.setattr("evaluator.isolation.session._EXIT_SEEN_WITHIN_S", 30.0)
            ends = pool.map(lambda ending: ended(backend, ending, submissions), tried.values())
            return dict(zip(tried, ends, strict=True))

    @pytest.mark.parametrize("wall", ENDING_WALLS)
    def test_a_bad_ending_is_told_to_its_author(
        self, endings: Mapping[str, Ended], wall: str
    ) -> None:
        at_wall = {name: end for name, end in endings.items() if end.of.wall == wall}
        assert at_wall
        wrong = {
            name: (end.code, end.message)
            for name, end in at_wall.items()
            if end.code not in end.of.codes or end.of.said not in end.message
        }
        assert wrong == {}

    def test_nothing_is_left_of_a_box_that_ended_badly(self, endings: Mapping[str, Ended]) -> None:
        assert {name: end.remains for name, end in endings.items() if end.remains} == {}


class Walls(Answers):
    """What every backend does that isolates, a test for each wall."""

    @pytest.fixture(scope="class")
    @classmethod
    def answered(cls, backend: Backend, submissions: ExitStack) -> Answered:
        """The answers to all questions, out of one box."""
        return all_answered(backend, submissions)

    def test_a_real_box_has_every_layer(self, backend: Backend) -> None:
        probe = backend.probe()
        assert probe.ok, f"{probe.reason} {probe.remedy}"
        assert {Layer.PID, Layer.NETWORK, Layer.FILESYSTEM, Layer.CAPABILITIES} <= set(probe.layers)
        gvisor, filtered = Layer.GVISOR in probe.layers, Layer.SYSTEM_CALLS in probe.layers
        assert gvisor if backend.name == "gvisor" else filtered

    def test_a_box_that_shows_what_it_must_hide_is_refused(self, backend: Backend) -> None:
        shown: Backend = type(backend)(**(vars(backend) | {"hidden": (Path("/usr/bin"),)}))
        probe = shown.probe()
        assert not probe.ok
        assert "/usr/bin is visible" in probe.reason

    def test_a_box_shows_nothing_of_its_worker(self, answered: Answered) -> None:
        assert answered.of(inquiry.SEEN) == []

    def test_a_box_reaches_nothing_outside(self, answered: Answered) -> None:
        assert answered.of(inquiry.UNREACHABLE) == []
        assert answered.visitors == 0

    def test_a_box_cannot_change_what_it_is_given(self, answered: Answered) -> None:
        assert answered.of(inquiry.UNWRITABLE) == []

    def test_what_a_box_may_write_is_bounded(self, answered: Answered) -> None:
        assert answered.of(inquiry.BOUNDED) == []
        assert answered.of(inquiry.WRITABLE, wanted=1.0) == []

    def test_system_calls_that_scoring_never_needs_do_not_reach_the_kernel(
        self, answered: Answered, backend: Backend
    ) -> None:
        if backend.name == "gvisor":  # which answers them itself
            assert f"kernel {os.uname().release}" not in answered.log
        else:
            assert answered.of(inquiry.DENIED_CALLS) == []

    def test_what_is_printed_is_kept_and_cleaned(self, answered: Answered) -> None:
        assert answered.log.splitlines()[:4] == [
            "to red stdout ",
            "RE01 straight to the descriptor",
            "from a child",
            "to stderr",
        ]

    def test_the_most_memory_a_box_held_is_measured(self, answered: Answered) -> None:
        assert inquiry.PEAK_BYTES <= answered.peak_bytes < inquiry.PEAK_BYTES + 200 * MIB

    def test_a_flood_of_output_is_cut_and_no_daemon_survives(
        self, backend: Backend, submissions: ExitStack
    ) -> None:
        with started(backend, FLOODING_WITH_A_DAEMON, SHORT, submissions) as session:
            assert session.score([png()], [(0, "a cat")]) == [1.0]
            assert len(session._box.pids()) > 1
            # Through an engine, the output takes longer than the answer.
            assert soon(lambda: session.log.endswith("last line\n"))
        assert remains(session) == []
        assert len(session.log) < SHORT.log_bytes + 100
        assert session.log.startswith("first line")
        assert "bytes left out" in session.log

    def test_a_box_that_is_killed_from_outside_is_not_its_authors_fault(
        self, backend: Backend, submissions: ExitStack
    ) -> None:
        with (
            started(backend, SLEEPER, SHORT, submissions) as session,
            pytest.raises(TransientError) as caught,
        ):
            for pid in sorted(session._box.pids()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            session.score([png()], [(0, "a cat")])
        assert caught.value.code == "killed_from_outside"

    def test_a_limit_of_processes_that_was_reached_is_named(
        self, backend: Backend, submissions: ExitStack
    ) -> None:
        if backend.name == "gvisor":  # whose own threads count, so that the bound is far above
            return
        few = replace(SHORT, processes=40)
        with (
            started(backend, THREADING, few, submissions) as session,
            pytest.raises(SubmitterError) as caught,
        ):
            session.score([png()], [(0, "a cat")])
        # Without a cgroup, as an ordinary user has none, the kernel tells only the scorer.
        told = session._box.bounds_processes
        assert caught.value.code == ("too_many_processes" if told else "scorer_raised")
        assert ("the limit of 40 processes" in caught.value.message) is told

    def test_two_boxes_at_once_do_not_see_each_other(
        self, backend: Backend, submissions: ExitStack
    ) -> None:
        with ExitStack() as stack:
            sessions = [
                stack.enter_context(started(backend, NEIGHBOUR, SHORT, submissions))
                for _ in range(2)
            ]
            told = [session.score([png()], [(0, "a cat")] * 3) for session in sessions]
            as_whom = {processes.user_of(max(session._box.pids())) for session in sessions}
        alone, n_processes, highest = zip(*told, strict=True)
        assert alone == (1.0, 1.0)
        assert max(n_processes) <= 4
        assert max(highest) < 100
        if os.geteuid() == 0 and backend.name != "gvisor":  # whose processes all are nobody's
            assert len(as_whom) == 2

    def test_a_killed_worker_leaves_nothing_that_runs(
        self, backend: Backend, submissions: ExitStack
    ) -> None:
        folder = Path(submissions.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        (folder / "scorer.py").write_text(SLEEPER)
        worker = f"""
import pickle
from pathlib import Path
from evaluator.isolation.job import Job
backend = pickle.loads(bytes.fromhex({pickle.dumps(backend).hex()!r}))
with backend.start(Job(Path({str(folder)!r}))) as session:
    print(*session._box.pids(), flush=True)
    session.score([b""], [(0, "a cat")])
"""
        command = [sys.executable, "-c", worker]
        with running(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
            assert process.stdout is not None
            pids = [int(word) for word in process.stdout.readline().split()]
            assert pids
            process.kill()
        # Nobody sweeps yet: the box ends by itself, though its scorer never reads.
        assert soon(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        if isinstance(backend, Containers):
            backend.probe()
            assert boxes_known_to(backend.engine) == []
