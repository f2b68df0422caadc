"""HTTP client of the Hub with timeouts on every call and the token kept to its own origin.

`httpx` is whichever library the installed client uses, so that its errors can be caught by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from huggingface_hub import set_client_factory
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # exported, but lazily
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    httpx,
    parse_ratelimit_headers,
)
from huggingface_hub.utils._http import hf_request_event_hook  # the hook its documentation names

from benchmarks.errors import PlatformError

__all__ = [
    "TIMEOUT",
    "at_home",
    "build_hf_headers",
    "get_session",
    "hf_raise_for_status",
    "hf_request_event_hook",
    "httpx",
    "limit_waiting",
    "origin",
    "parse_ratelimit_headers",
]

TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_COMMIT_READ_S = 75.0
"""The Hub gives itself a minute for a commit; who waits less does not learn how it ended."""
_PORTS = {"http": 80, "https": 443}
_DEFAULT_HUB = "https://huggingface.co"
_LFS_BATCH = "/info/lfs/objects/batch"


@lru_cache(maxsize=1)
def limit_waiting() -> None:
    """Give the client's own calls a timeout, which they lack, and refuse to send its token away."""
    set_client_factory(
        lambda: httpx.Client(
            event_hooks={
                "request": [hf_request_event_hook, _wait_for_commits],
                "response": [_refuse_foreign_addresses],
            },
            follow_redirects=True,
            timeout=TIMEOUT,
        )
    )


def at_home(address: str, home: str) -> str:
    """The address of a request with a token, if it is of the origin the token is meant for."""
    if origin(address) == origin(home) != "":
        return address
    raise PlatformError(
        "led_astray",
        f"An answer of {_printable_origin(home)} leads on to {_printable_origin(address)}. That was not followed, since "
        "the token would have gone there.",
        "Look at HF_ENDPOINT, and at what stands between this machine and the Hub.",
    )


def _wait_for_commits(request: httpx.Request) -> None:
    if request.method == "POST" and "/commit/" in request.url.path:
        request.extensions["timeout"] = {**TIMEOUT.as_dict(), "read": _COMMIT_READ_S}


def _refuse_foreign_addresses(reply: httpx.Response) -> None:
    """Check the addresses of a reply that the client would follow with its token.

    Redirects are none of them: the client drops the token where one leaves the origin.
    """
    if "Authorization" in reply.request.headers:
        home = str(reply.request.url)
        for address in _followed_with_token(reply):
            at_home(urljoin(home, address), home)


def _followed_with_token(reply: httpx.Response) -> Iterator[str]:
    after = reply.links.get("next", {}).get("url")
    if after:
        yield after
    if reply.request.url.path.endswith(_LFS_BATCH) and reply.is_success:
        reply.read()
        for address in _to_verify(reply):
            # The client makes addresses of its own endpoint of these.
            if origin(address) != origin(_DEFAULT_HUB):
                yield address


def _to_verify(reply: httpx.Response) -> Iterator[str]:
    """Addresses at which arrived large files are reported; malformed ones the client refuses."""
    try:
        content = reply.json()
    except ValueError:
        return
    objects = content.get("objects") if isinstance(content, dict) else None
    for each in objects if isinstance(objects, list) else []:
        href = each
        for key in ("actions", "verify", "href"):
            href = href.get(key) if isinstance(href, dict) else None
        if isinstance(href, str):
            yield href


def origin(address: str) -> str:
    """Scheme, host and port of an address; empty where it has none that can be read."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else ""


def _printable_origin(address: str) -> str:
    """The origin, as it may stand in a message."""
    found = origin(address) or "nowhere"
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in found)[:120]
