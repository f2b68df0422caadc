"""What a block is refused with, by its code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.errors import AssayError


@contextmanager
def refused(
    code: str, *words: str, kind: type[AssayError] = AssayError, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[AssayError]]:
    """The block ends in an error of this code; its message or hint holds each of the words."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert caught.value.code == code
    told = str(caught.value)
    assert [word for word in words if word not in told] == [], told
