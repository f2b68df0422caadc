"""Bodies of requests: as much of one as is taken, and what becomes of those that do not come."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.requests import Request

from leaderboard.service.bodies import body_of

HANGS_UP = {"type": "http.disconnect"}


def piece(content: bytes, *, last: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": content, "more_body": not last}


def read(messages: Sequence[dict[str, Any]], most: int) -> bytes:
    """What is read of a request of which these messages come, and then nothing."""
    coming = iter(messages)

    async def receive() -> dict[str, Any]:
        for message in coming:
            return message
        await asyncio.sleep(60)
        raise AssertionError

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    return asyncio.run(body_of(request, most, within_s=0.05))


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([piece(b"", last=True)], b""),
        ([piece(b"ab"), piece(b"cd", last=True)], b"abcd"),
        ([piece(b"abcd"), piece(b"efgh"), HANGS_UP], b"abcdefgh"),
    ],
)
def test_a_body_is_read_until_it_shows_that_it_is_too_large(
    messages: list[dict[str, Any]], found: bytes
) -> None:
    assert read(messages, 4) == found


@pytest.mark.parametrize("messages", [[], [piece(b"ab")], [HANGS_UP], [piece(b"ab"), HANGS_UP]])
def test_who_is_too_slow_and_who_hangs_up_come_to_the_same(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(TimeoutError):
        read(messages, 4)
