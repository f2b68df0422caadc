"""Requests and replies, as values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    def header(self, name: str) -> str:
        return self._lower.get(name.lower(), "")

    @cached_property
    def _lower(self) -> dict[str, str]:
        return {key.lower(): value for key, value in self.headers.items()}

    @property
    def token(self) -> str:
        return self.header("Authorization").removeprefix("Bearer ")

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)

    def asked(self, name: str, default: str = "") -> str:
        """The first value of a name in the query."""
        return self.query.get(name, [default])[0]

    def json(self) -> dict[str, Any]:
        """The body as an object; empty where there is none."""
        found: dict[str, Any] = json.loads(self.body or b"{}")
        return found


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def json_reply(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """A reply of the API."""
    told = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, told, json.dumps(content).encode())


def error(status: int, message: str, code: str = "", **more: str) -> Reply:
    """A refusal, in the header and in the body, as the Hub tells it; `more` are headers."""
    headers = {"X-Error-Message": message, **more}
    if code:
        headers["X-Error-Code"] = code
    return json_reply({"error": message}, status, headers)


def ranged(
    request: Request, content: bytes, etag: str, extra: dict[str, str] | None = None
) -> Reply:
    """A content, or the part of it that was asked for."""
    headers = {"ETag": f'"{etag}"', "Accept-Ranges": "bytes", **(extra or {})}
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.header("Range"))
    if request.method == "HEAD":
        return Reply(200, {**headers, "Content-Length": str(len(content))})
    if not asked:
        return Reply(200, headers, content)
    start, end = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
    if start >= len(content):
        return Reply(416, {**headers, "Content-Range": f"bytes */{len(content)}"})
    headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
    return Reply(206, headers, content[start : end + 1])
