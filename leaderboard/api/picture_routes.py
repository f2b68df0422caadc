"""Routes of the images of benchmarks, as thumbnails."""

from __future__ import annotations

import hashlib
import threading
from typing import Protocol

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.errors import AssayError
from leaderboard.api.replies import SHARED, matches, refusal
from leaderboard.cache import MemoryCache
from leaderboard.thumbnails import MEDIA_TYPE, WIDTHS, thumbnail, width_for

PATH = "/v1/images"
DRAWN = "/v1/generations"
"""The images that models drew: `/v1/generations/<submission>/<prompt id>/<seed>?w=320`."""
KEPT_BYTES = 64 << 20  # Of thumbnails in memory; what was not asked for longest makes way
AT_ONCE = 2
"""Images that are decoded at the same time: each may take as much memory as it has pixels."""
_THREADS = 8  # Requests that have a thread: the pages share others, which wait for no image
_PATIENCE_S = 20.0
_KEPT_BY_BROWSERS = "public, max-age=86400"
_Key = tuple[str, str, int]


def routes(pictures: Finds, generations: Finds | None = None) -> list[Route]:
    """The routes of all images, such as `/v1/images/<benchmark>/<image_id>?w=320`."""
    found = {PATH: pictures} if generations is None else {PATH: pictures, DRAWN: generations}
    return [
        Route(f"{path}/{{whose}}/{{image_id:path}}", _Thumbnails(finds).answer, methods=["GET"])
        for path, finds in found.items()
    ]


class Finds(Protocol):
    """Finds images of a benchmark, or of a submission."""

    def has(self, whose: str, /) -> bool:
        """Whether its images may be shown now."""

    def __call__(self, whose: str, image_id: str, /) -> bytes | None:
        """An image; None where there is none that may be shown."""


class _BusyError(Exception):
    """Too many images are being made at the moment."""


class _Thumbnails:
    """Makes thumbnails and keeps the latest ones."""

    def __init__(self, pictures: Finds) -> None:
        self._pictures = pictures
        self._at_once = threading.BoundedSemaphore(AT_ONCE)
        self._threads = CapacityLimiter(_THREADS)
        self._kept: MemoryCache[bytes] = MemoryCache(len, KEPT_BYTES)

    async def answer(self, request: Request) -> Response:
        """A thumbnail, or what is wrong."""
        asked = request.query_params.get("w", "320")
        if not (asked.isascii() and asked.isdecimal() and len(asked) < 6):
            hint = f"Ask for one of {', '.join(map(str, WIDTHS))}."
            return refusal(400, "bad_width", "The parameter w is no number of pixels.", hint)
        key = (request.path_params["whose"], request.path_params["image_id"], width_for(int(asked)))
        try:
            found = await run_sync(self._thumbnail, key, limiter=self._threads)
        except _BusyError:
            return refusal(503, "busy", "Too many images are asked for.", "Try again soon.")
        except (OSError, AssayError):  # of the disk, or of the store
            return refusal(503, "unread", "The image cannot be read now.", "Try again soon.")
        except ValueError:
            return refusal(404, "unreadable", "This image cannot be shown.")
        if found is None:
            hint = "Images are shown where they are on this machine and answers are public."
            return refusal(404, "no_image", "There is no such image here.", hint)
        return _with_etag(request, found)

    def _thumbnail(self, key: _Key) -> bytes | None:
        if not self._pictures.has(key[0]):  # also of what was shown before
            return None
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        if not self._at_once.acquire(timeout=_PATIENCE_S):
            raise _BusyError
        try:
            whose, image_id, width = key
            content = self._pictures(whose, image_id)
            made = None if content is None else thumbnail(content, width)
        finally:
            self._at_once.release()
        if made is not None:
            self._kept.put(key, made)
        return made


def _with_etag(request: Request, content: bytes) -> Response:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = SHARED | {
        "ETag": tag,
        "Cache-Control": _KEPT_BY_BROWSERS,
        "Content-Security-Policy": "default-src 'none'",
    }
    if matches(request.headers.get("If-None-Match", ""), tag):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=MEDIA_TYPE, headers=headers)
