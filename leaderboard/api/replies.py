"""Answers over HTTP: what their bytes are is their tag, and who has them is not sent them again."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from starlette.datastructures import Headers
from starlette.responses import Response

JSON = "application/json"
SHARED = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Assay-As-Of, Assay-Stale, Content-Disposition",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept-Encoding",
}
"""Of every answer, refusals included: any page may read what anybody may."""
_ASK_AGAIN = {"Cache-Control": "public, no-cache"}
"""Kept by whoever likes, and asked about before each use: with its tag that costs next to nothing."""
_SMALLEST = 500
_LEVEL = 5
_OF_ONE = 2000  # Bytes that keeping an answer takes beside its content, at most
_COMPRESSED = frozenset({JSON, "text/csv; charset=utf-8"})


@dataclass(frozen=True)
class Body:
    """The content of an answer."""

    content: bytes
    media_type: str = JSON  # of the content
    file_name: str = ""  # under which it is kept; empty where it is no file
    to_keep: bool = False  # whether a browser is to keep it, not to show it
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.media_type.encode() + b"\n" + self.content).hexdigest()
        object.__setattr__(self, "tag", digest[:40])


def response_of(
    body: Body, headers: Headers, as_of: datetime | None = None, *, stale: bool = False
) -> Response:
    """A whole answer, or that what the client has is still right."""
    packed = body.media_type in _COMPRESSED and takes_gzip(headers.get("Accept-Encoding", ""))
    packed = packed and len(body.content) >= _SMALLEST
    tag = f'"{body.tag}{"-gzip" if packed else ""}"'
    said = {**SHARED, **_ASK_AGAIN, "ETag": tag}
    if as_of is not None:
        said["Assay-As-Of"] = as_of.isoformat()
    if stale:
        said["Assay-Stale"] = "true"
    if matches(headers.get("If-None-Match", ""), tag):
        return Response(status_code=304, headers=said)
    if body.file_name:
        kind = "attachment" if body.to_keep else "inline"
        said["Content-Disposition"] = f'{kind}; filename="{body.file_name}"'
    content = body.content
    if packed:
        said["Content-Encoding"] = "gzip"
        content = gzip.compress(content, _LEVEL, mtime=0)
    return Response(content, headers=said, media_type=body.media_type)


def takes_gzip(accepted: str) -> bool:
    """Whether an `Accept-Encoding` allows gzip."""
    allowed: dict[str, bool] = {}
    for part in accepted.lower().split(","):
        name, _, rest = part.strip().partition(";")
        weight = rest.strip().removeprefix("q=").strip()
        allowed[name.strip()] = not weight or weight.strip("0.") != ""
    return allowed.get("gzip", allowed.get("*", False))


def matches(asked: str, tag: str) -> bool:
    """Whether an `If-None-Match` names a tag."""
    named = [part.strip().removeprefix("W/") for part in asked.split(",")]
    return tag in named or asked.strip() == "*"


def reply_bytes(body: Body) -> int:
    """Bytes that keeping an answer takes, about."""
    return _OF_ONE + len(body.content)
