"""What tests of the leaderboard begin with."""

from __future__ import annotations

import pytest

from tests.kit.governed import House


@pytest.fixture
def house() -> House:
    """An empty store in memory, with authors, an operator and a worker."""
    return House()
