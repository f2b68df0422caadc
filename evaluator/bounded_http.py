"""HTTP exchange that is bounded: one deadline for all of it, and a limit to the bytes of its body.

A client's own timeouts count from byte to byte: a server that sends one now and then holds it for ever.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from concurrent.futures import Future
from contextlib import AsyncExitStack
from functools import lru_cache
from typing import Any

from benchmarks.sources.client import httpx

LARGEST_ERROR = 1 << 16
"""Bytes of the body of anything but a success; the rest is not read."""
_LAST_PORT = 65535
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class ReplyTooLong(Exception):  # noqa: N818 (of a reply, as the next one)
    """A success whose body has more bytes than are read."""


class ReplyCutOff(Exception):  # noqa: N818
    """A success whose body ended too early, or did not end in time."""


def exchange(
    method: str,
    address: str | httpx.URL,
    *,
    seconds: float,
    most: int,
    **options: Any,
) -> httpx.Response:
    """The response to a request, read and decoded.

    Args:
        method: as HTTP has it.
        address: where to.
        seconds: from the look-up of the name to the last byte.
        most: bytes of the body of a success, decoded; 0: no body is read.
        options: of the client's `build_request`.

    Raises:
        ReplyTooLong, ReplyCutOff: it is a success without a whole body.
        httpx.HTTPError: there was no response in time.
        httpx.InvalidURL: the address is not valid.
    """
    there = web_address(address)

    async def run() -> httpx.Response:
        async with httpx.AsyncClient(verify=_trusted(), timeout=None) as client:
            request = client.build_request(method, there, **options)
            return await _exchange(client, request, seconds, most)

    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(run())


def web_address(address: str | httpx.URL) -> httpx.URL:
    """An address by http or https, read.

    Raises:
        httpx.InvalidURL: nothing can be asked for there.
    """
    try:
        found = httpx.URL(address)
    except UnicodeEncodeError:
        raise httpx.InvalidURL("it cannot be encoded") from None
    if found.scheme not in {"http", "https"} or not found.host:
        raise httpx.InvalidURL("it does not begin with http://HOST or https://HOST")
    if found.port is not None and not 0 < found.port <= _LAST_PORT:
        raise httpx.InvalidURL("there is no such port")
    return found


def resolve(host: str, port: int, seconds: float) -> list[str]:
    """The addresses of a name.

    Raises:
        OSError: it has none, or none was told in time (TimeoutError).
        UnicodeError: it is no name.
    """
    found = _look_up(host, port, type=socket.SOCK_STREAM).result(seconds)
    return [str(one[4][0]) for one in found]


class _Loop(asyncio.SelectorEventLoop):
    """Event loop that can close while a name is looked up; the usual one waits for its threads."""

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        return await asyncio.wrap_future(_look_up(host, port, **options), loop=self)


def _look_up(host: Any, port: Any, **options: Any) -> Future[list[Any]]:
    """`socket.getaddrinfo` in a thread that nobody has to wait for: nothing can interrupt it."""
    found: Future[list[Any]] = Future()
    found.set_running_or_notify_cancel()  # Then what comes too late is no error of the thread.

    def run() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, **options))
        except (OSError, ValueError, OverflowError) as error:
            found.set_exception(error)

    threading.Thread(target=run, name="name look-up", daemon=True).start()
    return found


async def _exchange(
    client: httpx.AsyncClient, request: httpx.Request, seconds: float, most: int
) -> httpx.Response:
    response, content = None, bytearray()
    try:
        async with asyncio.timeout(seconds), AsyncExitStack() as stack:
            response = await client.send(request, stream=True, follow_redirects=False)
            stack.push_async_callback(response.aclose)
            limit = most if response.is_success else min(most, LARGEST_ERROR)
            if most:
                async for part in response.aiter_bytes():
                    content += part
                    if len(content) > limit:
                        break
    except (TimeoutError, httpx.HTTPError) as error:
        if response is None:
            if isinstance(error, TimeoutError):
                raise httpx.TimeoutException("no response in time") from error
            raise
        if response.is_success:
            raise ReplyCutOff(type(error).__name__) from error
    if response.is_success and len(content) > limit:
        raise ReplyTooLong
    headers = [one for one in response.headers.multi_items() if one[0] not in _OF_THE_WIRE]
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=bytes(content[:limit]),
        request=response.request,
    )


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Certificates that are trusted; reading them takes longer than most requests."""
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context
