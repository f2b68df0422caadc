"""Expectation of an error by its code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.errors import AssayError


@contextmanager
def refused(code: str, match: str | None = None) -> Iterator[pytest.ExceptionInfo[AssayError]]:
    """Expect an error with this code, whose text matches."""
    with pytest.raises(AssayError, match=match) as caught:
        yield caught
    assert caught.value.code == code
