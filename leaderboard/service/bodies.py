"""Request bodies of untrusted users, read within bounds."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

HANG_UP = {"Connection": "close"}
"""Else the server would read what is still to come, to throw it away."""
_WITHIN_S = 10.0


async def body_of(request: Request, most: int, *, within_s: float | None = _WITHIN_S) -> bytes:
    """The body of a request, or of one that is too large so much that it shows.

    Raises:
        TimeoutError: it does not come in time, or whoever sent it hung up.
    """
    content = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for piece in request.stream():
                content += piece
                if len(content) > most:
                    break
    except ClientDisconnect as error:
        raise TimeoutError from error
    return bytes(content)
