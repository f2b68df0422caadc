"""Boxes of bubblewrap at every wall in full, and scorers of our own without any."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import replace

import pytest

from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.job import MIB
from tests.evaluator.isolation.asking import started
from tests.evaluator.isolation.boxes import SHORT, png
from tests.evaluator.isolation.conformance_scorers import ENDING_WALLS, FORKING
from tests.evaluator.isolation.inquiry import REPOSITORY
from tests.evaluator.isolation.suite import Answers, Walls

pytestmark = pytest.mark.isolation


class TestBubblewrap(Walls):
    """Boxes by bubblewrap."""

    full = True

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, bubblewrap: Bubblewrap) -> Backend:
        """See `Walls`."""
        return bubblewrap

    def test_a_box_of_an_ordinary_user_may_have_as_many_processes_as_its_limit(
        self, backend: Backend, submissions: ExitStack
    ) -> None:
        if os.geteuid() == 0:  # whose boxes are ended from outside
            return
        # Pages that forks share count once for each.
        roomy = replace(SHORT, memory_bytes=8192 * MIB)
        with started(backend, FORKING, roomy, submissions) as session:
            assert 100 < session.score([png()], [(0, "a cat")])[0] < SHORT.processes


class TestPlain(Answers):
    """The backend without walls, for our own scorers."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls) -> Backend:
        """See `Answers`."""
        return PlainProcess()


def test_the_list_of_walls_names_every_test_of_them() -> None:
    page = (REPOSITORY / "docs/security.md").read_text(encoding="utf-8")
    table = page.partition("| wall | its test in `Walls` |")[2].partition("\n\n")[0]
    named = re.findall(r"\| `(test_\w+)(?:\[(\w+)\])?` \|", table)
    tests = {name for name in dir(Walls) if name.startswith("test_")}
    assert {name for name, _ in named} == tests
    assert {wall for _, wall in named if wall} == set(ENDING_WALLS)
