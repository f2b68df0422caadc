"""Link previews: the frame, tags and picture of a view, in the first answer.

Programs that preview links run no script, so it must be there in the first answer.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard
from urllib.parse import quote, urlencode

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from PIL import Image, ImageDraw, ImageFont
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.api.replies import Body, reply_bytes, response_of, takes_gzip
from leaderboard.api.source import Source
from leaderboard.cache import MemoryCache
from leaderboard.rendering import render
from leaderboard.service.address import root_of
from leaderboard.text import clean, interval, number, one_line
from leaderboard.web.middleware import framed
from leaderboard.web.page import Page
from leaderboard.web.page_metadata import (
    SITE,
    Line,
    PageMetadata,
    document_title,
    metadata_of,
    own_metadata,
)

PICTURE = "share.png"
"""`share.png?page=boards&…`, with the query of the page."""
PATIENCE_S = 2.0
"""How long a page waits for its head; then it goes out with its own."""
LONGEST_QUERY = 2000
"""Characters of a query that are looked at; whoever asks for more is told of the page itself."""
_THREADS = 4
_KEPT_BYTES = 8 << 20
_LEVEL = 5


class Described:
    """Middleware that gives pages their frame and the head of what they show."""

    def __init__(
        self,
        app: ASGIApp,
        pages: tuple[Page, ...],
        source: Source | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._app = app
        self._every = pages
        self._pages = {page.path: page for page in pages}
        self._source = source
        self._patience_s = patience_s
        self._threads = CapacityLimiter(_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        page = self._page(scope)
        if page is None:
            await self._app(scope, receive, send)
            return
        changed = _Changed(send, Headers(scope=scope))
        await self._app(scope, receive, changed.take)
        if changed.held is not None:
            query = scope["query_string"].decode("latin-1")
            head = await self._head(page, query)
            told = _tags(head, page, query, root_of(changed.asked), self._source)
            await changed.release(
                lambda document: framed(with_tags(document, told), self._every, page.path)
            )

    def _page(self, scope: Scope) -> Page | None:
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            return None
        return self._pages.get(str(scope["path"]).strip("/"))

    async def _head(self, page: Page, query: str) -> PageMetadata:
        if len(query) > LONGEST_QUERY:
            return own_metadata(page)
        # A store that hangs is no reason for a page not to come.
        with anyio.move_on_after(self._patience_s):
            return await run_sync(
                metadata_of, page, QueryParams(query), self._source,
                limiter=self._threads, abandon_on_cancel=True,
            )  # fmt: skip
        return own_metadata(page)


class _Changed:
    """An answer that is held back if it is a page; anything else goes on as it comes."""

    def __init__(self, send: Send, asked: Headers) -> None:
        self.asked = asked
        self.held: Message | None = None
        self._send = send
        self._content: list[bytes] = []

    async def take(self, message: Message) -> None:
        """Take a part of it."""
        if message["type"] == "http.response.start" and _is_page(message):
            self.held = message
        elif message["type"] == "http.response.body" and self.held is not None:
            self._content.append(message.get("body", b""))
        else:
            await self._send(message)

    async def release(self, change: Callable[[bytes], bytes]) -> None:
        """Send the page as it is after a change."""
        assert self.held is not None
        content = change(b"".join(self._content))
        headers = MutableHeaders(raw=list(self.held["headers"]))
        headers.add_vary_header("Accept-Encoding")
        if takes_gzip(self.asked.get("Accept-Encoding", "")):
            content = gzip.compress(content, _LEVEL, mtime=0)
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(content))
        await self._send({**self.held, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": content})


def share_route(pages: tuple[Page, ...], source: Source) -> Route:
    """The route of the pictures."""
    kept = MemoryCache(reply_bytes, _KEPT_BYTES)
    by_path = {page.path: page for page in pages}

    def made(path: str, query: Mapping[str, str]) -> Body:
        page = by_path[path]
        head = metadata_of(page, query, source)
        return kept.of(head, lambda: Body(picture(head), "image/png", PICTURE))

    async def serve(request: Request) -> Response:
        # The first names the page; another is of its query, which row it begins at.
        path, *_ = (*request.query_params.getlist("page"), "")
        if path not in by_path:
            return Response("There is no such page.", 404, media_type="text/plain")
        short = len(request.url.query) <= LONGEST_QUERY
        query = request.query_params if short else QueryParams()
        body = await source.in_thread(lambda: made(path, query))
        return response_of(body, request.headers)

    return Route(f"/{PICTURE}", serve, methods=["GET", "HEAD"])


def _is_page(message: Message) -> bool:
    headers = Headers(raw=message["headers"])
    return (
        message["status"] == 200
        and headers.get("Content-Type", "").startswith("text/html")
        and "Content-Encoding" not in headers
    )


def _tags(head: PageMetadata, page: Page, query: str, root: str, source: Source | None) -> str:
    if not root:
        return tags(head)
    asked = f"?{quote(query, safe='%~:,/&=+@')}" if 0 < len(query) <= LONGEST_QUERY else ""
    if source is None:
        return tags(head, f"{root}{page.path}{asked}")
    given = urlencode({"page": page.path})
    shown = f"{root}{PICTURE}?{given}{asked.replace('?', '&', 1)}"
    return tags(head, f"{root}{page.path}{asked}", shown)


# Tags

LONGEST_DESCRIPTION = 300
_OF_GRADIO = re.compile(
    rb'\s*<meta\b[^>]*?\b(?:property="og:|name="(?:twitter:|description"))[^>]*>'
)
_START = b"<head>"
_SCRIPT = b"<script"


def tags(head: PageMetadata, address: str = "", picture: str = "") -> str:
    """The tags of a head."""
    return render(
        "shell/tags.html",
        title=document_title(head.title),
        said=one_line(head.description, LONGEST_DESCRIPTION),
        site=SITE,
        address=address,
        picture=picture,
        width=WIDTH,
        height=HEIGHT,
    )


def with_tags(page: bytes, found: str) -> bytes:
    """A page of Gradio's with these tags in place of its own; as it was where it has no head."""
    start = page.find(_START)
    if start < 0:
        return page
    start += len(_START)
    # Gradio's tags come before its scripts, which hold whatever the site holds.
    end = page.find(_SCRIPT, start)
    end = len(page) if end < 0 else end
    own = _OF_GRADIO.sub(b"", page[start:end])
    charset, mark, rest = own.partition(b"/>")  # The encoding must come among the first bytes.
    if b"charset" not in charset:
        charset, mark, rest = b"", b"", own
    return page[:start] + charset + mark + found.encode() + rest + page[end:]


# Picture

WIDTH, HEIGHT = 1200, 630
"""Pixels of the picture; the size that all who show one expect."""
_PAPER, _INK, _MUTED, _BLUE, _RULE = "#ffffff", "#1a2733", "#55646f", "#0f5fa8", "#c9d3da"
_LEFT, _RIGHT = 60, WIDTH - 60
_TITLE, _TEXT, _SMALL = 50, 30, 26
_TOP_OF_ROWS, _ROW = 260, 58
_NAME_WIDTH, _AXIS_LEFT, _AXIS_RIGHT = 420, 600, 860
_VALUE_AT = 890
_PLAIN = {"–": "-", "—": "-", "−": "-", "’": "'", "“": '"', "”": '"', "·": "-", "↑": "", "↓": ""}
_UNKNOWN = "?"
_MOST_LINES_OF_TEXT = 4
_LOWEST = HEIGHT - 60
"""Below it stands the note."""


def picture(head: PageMetadata) -> bytes:
    """The picture as PNG; equal heads make equal bytes."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, WIDTH, 12), fill=_BLUE)
    draw.text((_LEFT, 40), SITE, font=_font(_SMALL), fill=_BLUE)
    under = _paragraph(draw, head.title, 80, _TITLE, _INK, most=2)
    if any(_drawn(line.value) for line in head.lines):
        _rows(draw, head, max(_TOP_OF_ROWS, under + 56))
    else:
        _paragraph(draw, head.description, under + 24, _TEXT, _MUTED, most=_MOST_LINES_OF_TEXT)
    foot = _cut(draw, drawable(head.note), _SMALL, _RIGHT - _LEFT)
    draw.text((_LEFT, HEIGHT - 28), foot, font=_font(_SMALL), fill=_MUTED, anchor="ls")
    kept = io.BytesIO()
    image.quantize(64).save(kept, "PNG", optimize=True)
    return kept.getvalue()


def drawable(value: str) -> str:
    """A text in the letters that the font has: others by their name or base, or a question mark."""
    return "".join(_letter(char) for char in clean(value))


def _letter(char: str) -> str:
    if char.isascii():
        return char
    if char in _PLAIN:
        return _PLAIN[char]
    if char == "…":
        return "..."
    named = unicodedata.name(char, "")
    if named.startswith("GREEK SMALL LETTER ") and named.count(" ") == 3:
        return named.rpartition(" ")[2].lower()
    base = unicodedata.normalize("NFKD", char)[:1]
    return base if base.isascii() else _UNKNOWN


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _paragraph(
    draw: ImageDraw.ImageDraw, value: str, top: int, size: int, colour: str, *, most: int
) -> int:
    """Write a text in lines; returns where the next thing may begin."""
    font, lines, line = _font(size), [], ""
    for word in drawable(value).split():
        tried = f"{line} {word}".strip()
        if line and draw.textlength(tried, font=font) > _RIGHT - _LEFT:
            lines.append(line)
            line = word
        else:
            line = tried
    lines.append(line)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1]} ..."]
    for place, one in enumerate(lines):
        shown = _cut(draw, one, size, _RIGHT - _LEFT)
        draw.text((_LEFT, top + place * int(size * 1.3)), shown, font=font, fill=colour)
    return top + len(lines) * int(size * 1.3)


def _cut(draw: ImageDraw.ImageDraw, value: str, size: int, width: int) -> str:
    font, kept = _font(size), value
    if draw.textlength(kept, font=font) <= width:
        return kept
    while kept and draw.textlength(f"{kept}...", font=font) > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}..."


def _rows(draw: ImageDraw.ImageDraw, head: PageMetadata, top: int) -> None:
    label = _cut(draw, drawable(head.axis), _SMALL, _RIGHT - _AXIS_LEFT)
    draw.text((_AXIS_LEFT, top - 12), label, font=_font(_SMALL), fill=_MUTED, anchor="ls")
    draw.line((_LEFT, top, _RIGHT, top), fill=_RULE, width=2)
    at = _axis(head.lines)
    for place, line in enumerate(head.lines):
        middle = top + _ROW // 2 + place * _ROW
        if middle + _ROW // 2 > _LOWEST:
            return
        _row(draw, line, middle)
        draw.line((_LEFT, middle + _ROW // 2, _RIGHT, middle + _ROW // 2), fill=_RULE, width=1)
        if head.axis and _drawn(line.value):
            _mark(draw, line, middle, at)


def _axis(lines: Sequence[Line]) -> Callable[[float], float]:
    ends = [end for line in lines for end in (line.value, line.low, line.high) if _drawn(end)]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0
    return lambda value: _AXIS_LEFT + (value - low) / span * (_AXIS_RIGHT - _AXIS_LEFT)


def _mark(draw: ImageDraw.ImageDraw, line: Line, middle: int, at: Callable[[float], float]) -> None:
    if _drawn(line.low) and _drawn(line.high):
        draw.line((at(line.low), middle, at(line.high), middle), fill=_BLUE, width=5)
    if _drawn(line.value):
        x = at(line.value)
        draw.ellipse((x - 9, middle - 9, x + 9, middle + 9), fill=_BLUE, outline=_PAPER, width=2)


def _drawn(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _row(draw: ImageDraw.ImageDraw, line: Line, middle: int) -> None:
    name, plain = _font(_TEXT), _font(_SMALL)
    draw.text((_LEFT, middle), drawable(line.ranks), font=plain, fill=_MUTED, anchor="lm")
    shown = _cut(draw, drawable(line.name), _TEXT, _NAME_WIDTH)
    draw.text((_LEFT + 100, middle), shown, font=name, fill=_INK, anchor="lm")
    said = drawable(f"{number(line.value)} {interval(line.low, line.high)}")
    draw.text((_VALUE_AT, middle), said, font=plain, fill=_INK, anchor="lm")
