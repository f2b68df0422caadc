"""What several tests of the worker start from."""

from __future__ import annotations

import pytest

from tests.kit import toy


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve images in place of three."""
    monkeypatch.setattr(toy, "PAIRS", tuple(f"pair {n}" for n in range(12)))
