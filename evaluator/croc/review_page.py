"""Page on which raters keep or drop images: plain forms, and one script for keys."""

from __future__ import annotations

import difflib
import hashlib
import hmac
import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from itertools import chain
from threading import Lock
from typing import Annotated, Any, Literal
from urllib.parse import urlencode, urlsplit

from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware

from benchmarks.errors import SubmitterError
from evaluator.croc.agreement import agreement_of
from evaluator.croc.decisions import LONGEST_NAME, rater_name
from evaluator.croc.review import Review, ReviewRow
from evaluator.croc.review_set import REVIEW_SIDES, ReviewImage, is_inside
from evaluator.standalone_page import render_page

_COOKIE = "assay_review"
LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine: no other site's page can have the requests sent under them."""
_TITLES = ("Original", "Contrast")
_SIDE_KEYS = (("F", "D"), ("J", "K"))
_STATIC = {
    "style.css": ("leaderboard.web", "text/css"),
    "review.css": ("evaluator.croc", "text/css"),
    "review.js": ("evaluator.croc", "text/javascript"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self'; "
    "script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Said = Literal["keep", "drop", ""]
_LARGEST_PLACE = 1 << 31


@dataclass(frozen=True)
class Side:
    """One side of a row, as the page shows it."""

    name: str
    title: str
    text: str
    words: Sequence[tuple[str, bool]]  # parts of the text, and whether the other side lacks them
    image: str | None  # its address
    stays: bool | None  # what the rater said of it
    keys: tuple[str, str]


def review_app(review: Review, token: str = "") -> FastAPI:
    """The page of a review.

    `token`: what an address must carry once (`?token=...`), for a page that other machines can reach;
    empty: this machine's own names alone are answered.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    page = ReviewPage(review)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["*"] if token else list(LOCAL))
    app.middleware("http")(partial(_guarded, token=token))
    app.add_exception_handler(SubmitterError, page.refusal)
    app.get("/", response_class=HTMLResponse)(page.start)
    app.get("/review", response_class=HTMLResponse)(page.row)
    app.post("/decide")(page.decide)
    app.post("/undo")(page.undo)
    app.get("/image/{image}/{version}")(page.image)
    app.get("/{name}")(_static)
    return app


async def _guarded(request: Request, go_on: Any, token: str) -> Response:
    """Refuse what lacks the token or comes from another site's page; say what a browser may load."""
    host = request.headers.get("host", "")
    if _host_of(request.headers.get("origin", f"//{host}")) != host:
        return HTMLResponse("Sent from another site.", 403)
    if token and not _same(request.cookies.get(_COOKIE, ""), token):
        if not _same(request.query_params.get("token", ""), token):
            return HTMLResponse("The address needs the token of this review: ?token=...", 403)
        entered = RedirectResponse("./", 303)
        entered.set_cookie(_COOKIE, token, httponly=True, samesite="lax")
        return entered
    answer: Response = await go_on(request)
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    return answer


def _host_of(address: str) -> str | None:
    """Host and port of an address; None where it is none."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return None


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _static(name: str) -> Response:
    if name not in _STATIC:
        return HTMLResponse("There is no such page.", 404)
    package, kind = _STATIC[name]
    return Response(resources.files(package).joinpath("static", name).read_bytes(), media_type=kind)


class ReviewPage:
    """What each address answers."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self._one_at_a_time = Lock()
        self._root = review.images.root.resolve()
        shown = (pair.images for pair in review.images.pairs)
        paths = dict.fromkeys(image.path for image in chain(*chain(*shown)))
        self._paths = tuple(paths)
        self._number = {path: place for place, path in enumerate(paths)}

    def start(self) -> HTMLResponse:
        """Who has decided how much, and how far raters agree."""
        with self._one_at_a_time:
            votes = self._review.votes()
            agreement = agreement_of(votes, self._review.images.categories)
            return self._page(
                "start.html",
                images=self._review.images,
                longest=LONGEST_NAME,
                notes=list(self._notes()),
                progress=[self._review.progress(one.rater) for one in agreement.raters],
                majority={one.rater: one for one in agreement.raters},
                agreement=agreement,
            )

    def row(self, rater: str, after: int = -1, place: int | None = None) -> Response:
        """The next row of a rater, or a certain one."""
        name = _rater(rater)
        with self._one_at_a_time:
            found = self._review.next_place(name, after) if place is None else place
            if found is not None:
                return self._row(name, found)
            stand = self._review.progress(name)
        said = f"{name}, all {stand.rows} rows are decided; {stand.kept} of {stand.images} images stay."
        return self._page("notice.html", title="All done", message=said, rater=name)

    def decide(
        self,
        rater: Annotated[str, Form()],
        place: Annotated[int, Form(ge=0, lt=_LARGEST_PLACE)],
        row: Annotated[str, Form()],
        prompt: Annotated[Said, Form()] = "",
        contrast: Annotated[Said, Form()] = "",
    ) -> Response:
        """Record what was said of a row, and go on to the next.

        `row`: digest of the row that the rater saw at `place`, where another server may have another one.
        """
        name = _rater(rater)
        said = (prompt, contrast)
        with self._one_at_a_time:
            there = self._existing(name, place)
            if self._review.digest(there) != row:
                return self._row(
                    name, place, "The rows or their images changed; this one is next.", 409
                )
            if any(i is not None and not s for i, s in zip(there.images, said, strict=True)):
                return self._row(name, place, "Say of each image whether it stays.", 400)
            self._review.decide(name, place, (prompt == "keep", contrast == "keep"))
        return _to_row(name, after=place)

    def undo(self, rater: Annotated[str, Form()]) -> Response:
        """Take the last decision back, and show its row."""
        name = _rater(rater)
        with self._one_at_a_time:
            place = self._review.undo(name)
        return _to_row(name) if place is None else _to_row(name, place=place)

    def image(self, image: int, version: str) -> Response:
        """An image of the folder, by its number, as long as the file is that of the address."""
        if not 0 <= image < len(self._paths) or not is_inside(self._root, self._paths[image]):
            return HTMLResponse("There is no such image.", 404)
        path = self._paths[image]
        if version != self._version(path):
            return HTMLResponse("The image was replaced.", 404)
        kind = mimetypes.guess_type(path)[0] or ""
        if not kind.startswith("image/") or "svg" in kind:
            return HTMLResponse("This is no image.", 404)
        return Response(
            (self._root / path).read_bytes(),
            media_type=kind,
            headers={"Cache-Control": "private, max-age=3600"},
        )

    def refusal(self, _: Request, error: Exception) -> Response:
        """The page of an error."""
        return self._page("notice.html", 400, title="Not possible", message=str(error), rater="")

    def _row(self, rater: str, place: int, message: str = "", status: int = 200) -> HTMLResponse:
        row = self._existing(rater, place)
        following = self._review.next_place(rater, place)
        ahead = () if following is None else self._existing(rater, following).images
        return self._page(
            "row.html",
            status,
            rater=rater,
            place=place,
            digest=self._review.digest(row),
            told=self._review.images.properties[row.pair.category],
            progress=self._review.progress(rater),
            sides=list(self._sides(rater, row)),
            ahead=[self._address(image) for image in ahead if image is not None],
            message=message,
        )

    def _address(self, image: ReviewImage) -> str:
        return f"image/{self._number[image.path]}/{self._version(image.path)}"

    def _version(self, path: str) -> str:
        """Tells a file from any other that had its number, here or with another server."""
        place = self._root / path
        found = place.stat() if place.exists() else None
        said = f"{place}/{found and (found.st_mtime_ns, found.st_size)}"
        return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def _existing(self, rater: str, place: int) -> ReviewRow:
        rows = self._review.rows_of(rater)
        if not 0 <= place < len(rows):
            raise SubmitterError("unknown_row", f"There is no row {place + 1} of {len(rows)}.")
        return rows[place]

    def _sides(self, rater: str, row: ReviewRow) -> Iterator[Side]:
        stays = self._review.of(rater).stays
        first, second = row.pair.texts
        words = marked_words(first, second)
        for side, name in enumerate(REVIEW_SIDES):
            image = row.images[side]
            yield Side(
                name,
                _TITLES[side],
                row.pair.texts[side],
                words[side],
                None if image is None else self._address(image),
                None if image is None else stays.get((row.pair.key, image.path, row.repeat)),
                _SIDE_KEYS[side],
            )

    def _notes(self) -> Iterator[str]:
        gone = self._review.images.missing
        if gone:
            yield f"{len(gone)} listed images are not there, the first is {gone[0]}."
        if self._review.n_gone:
            yield f"{self._review.n_gone} decided images went or were replaced, and do not count."
        if self._review.n_unhashed:
            yield (
                f"{self._review.n_unhashed} images were decided with an earlier version, so it is "
                "not known whether they were replaced since; they count."
            )
        unread = self._review.log.unread
        if unread:
            numbers = ", ".join(map(str, unread[:5]))
            yield f"{self._review.log.path.name}: {len(unread)} lines do not count, for they cannot be read ({numbers})."

    def _page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        return HTMLResponse(render_page("evaluator.croc", template, **values), status)


def marked_words(first: str, second: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in parts, and whether the other text lacks a part."""
    one, other = (re.findall(r"\s*\S+", text) for text in (first, second))
    plain = [[word.strip().strip(".,;:!?").casefold() for word in words] for words in (one, other)]
    left: list[tuple[str, bool]] = []
    right: list[tuple[str, bool]] = []
    matcher = difflib.SequenceMatcher(None, plain[0], plain[1], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        for parts, words in ((left, one[a:b]), (right, other[c:d])):
            if words:
                parts.append(("".join(words), tag != "equal"))
    return left, right


def _rater(text: str) -> str:
    try:
        return rater_name(text)
    except ValueError as error:
        raise SubmitterError("bad_name", f"{error}.".capitalize()) from error


def _to_row(rater: str, **where: int) -> Response:
    return RedirectResponse(f"review?{urlencode({'rater': rater, **where})}", 303)
