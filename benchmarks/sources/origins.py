"""Where the Hub's token may go: to the origin it was meant for, wherever an answer leads."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # exported, but lazily

from benchmarks.errors import PlatformError

_PORTS = {"http": 80, "https": 443}
_DEFAULT_HUB = "https://huggingface.co"
_LFS_BATCH = "/info/lfs/objects/batch"


def origin_of(address: str) -> str:
    """Scheme, host and port of an address; empty where it has none that can be read."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else ""


def at_home(address: str, home: str) -> str:
    """The address itself, if it is of the same origin as another.

    Args:
        address: to which a request with a token is to go.
        home: an address the token is meant for.

    Raises:
        PlatformError: `led_astray`, it is not.
    """
    if origin_of(address) == origin_of(home) != "":
        return address
    raise PlatformError(
        "led_astray",
        f"An answer of {_shown(home)} leads on to {_shown(address)}. That was not followed, since "
        "the token would have gone there.",
        "Look at HF_ENDPOINT, and at what stands between this machine and the Hub.",
    )


def refuse_to_be_led_astray(reply: httpx.Response) -> None:
    """A hook for replies: the client would follow some of their addresses with its token.

    Redirects are none of them: the client drops the token where one leaves the origin.

    Raises:
        PlatformError: `led_astray`.
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
            if origin_of(address) != origin_of(_DEFAULT_HUB):
                yield address


def _to_verify(reply: httpx.Response) -> Iterator[str]:
    """Where the client tells that large files arrived; what has another form it refuses itself."""
    try:
        told = reply.json()
    except ValueError:
        return
    objects = told.get("objects") if isinstance(told, dict) else None
    for each in objects if isinstance(objects, list) else []:
        actions = each.get("actions") if isinstance(each, dict) else None
        verify = actions.get("verify") if isinstance(actions, dict) else None
        href = verify.get("href") if isinstance(verify, dict) else None
        if isinstance(href, str):
            yield href


def _shown(address: str) -> str:
    """The origin, as it may stand in a message."""
    found = origin_of(address) or "nowhere"
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in found)[:120]
