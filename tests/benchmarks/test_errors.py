"""Errors carry a code, a message and a hint wherever they go."""

from __future__ import annotations

import pickle

import pytest

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError


@pytest.mark.parametrize("kind", [SubmitterError, TransientError, PlatformError])
def test_an_error_goes_whole_to_another_process(kind: type[AssayError]) -> None:
    there = pickle.loads(pickle.dumps(kind("bad_file", "a.csv is empty.", "Send another.")))
    assert type(there) is kind
    assert (there.code, there.message, there.hint) == (
        "bad_file",
        "a.csv is empty.",
        "Send another.",
    )
    assert str(there) == "a.csv is empty. Send another."


def test_without_a_hint_an_error_is_its_message() -> None:
    assert str(PlatformError("incident", "It broke.")) == "It broke."
