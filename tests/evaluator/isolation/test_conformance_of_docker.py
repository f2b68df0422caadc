"""Docker, alone and with gVisor below, by the one set of tests that all backends pass."""

from __future__ import annotations

import pytest

from evaluator.isolation.backend import Backend
from evaluator.isolation.containers.backends import Containers
from tests.evaluator.isolation.suite import Walls

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


class TestDocker(Walls):
    """Boxes by Docker."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, docker_backend: Containers) -> Backend:
        """See `Walls`."""
        return docker_backend


class TestGVisor(Walls):
    """Boxes by Docker with gVisor below."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, gvisor_backend: Containers) -> Backend:
        """See `Walls`."""
        return gvisor_backend
