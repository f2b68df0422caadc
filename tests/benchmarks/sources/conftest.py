"""The test Hub."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hub.server import HubServer, running_hub


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A Hub of its own for each test."""
    with running_hub() as server:
        yield server
