"""Page of votes: plain forms that need no script, and one script for keys."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from benchmarks.errors import AssayError, SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet
from leaderboard.accounts import Account
from leaderboard.governance.authentication import (
    Authentication,
    AuthenticationMethod,
    Visit,
    not_signed_in,
)
from leaderboard.rendering import render
from leaderboard.service.bodies import body_of
from leaderboard.thumbnails import MEDIA_TYPE
from leaderboard.votes.records import Ballot, Choice, Poll
from leaderboard.votes.service import Side, VotingService
from leaderboard.web.assets import vote_script
from leaderboard.web.middleware import document_values, visit_of
from leaderboard.web.page import Page

PATH = "/vote"
MOST_BYTES = 2000
"""Of an answer."""
ANSWERS = (
    (Choice.LEFT, "Left", "1"),
    (Choice.RIGHT, "Right", "2"),
    (Choice.EQUAL, "Equal", "3"),
    (Choice.BOTH_BAD, "Both bad", "4"),
)
"""Choice, label and key of each button."""
_STATUS = {
    "not_signed_in": HTTPStatus.FORBIDDEN,
    "banned_voter": HTTPStatus.FORBIDDEN,
    "no_poll": HTTPStatus.NOT_FOUND,
    "unknown_ballot": HTTPStatus.CONFLICT,
    "bad_answer": HTTPStatus.BAD_REQUEST,
    "too_many_votes": HTTPStatus.TOO_MANY_REQUESTS,
}
_UNREAD = HTTPStatus.SERVICE_UNAVAILABLE
_SAID = {
    "counted": "Your vote is counted. This is the next pair.",
    "again": "That pair had your answer already; the first one counts. This is the next pair.",
}
_KEPT = {"Cache-Control": "private, max-age=3600", "X-Content-Type-Options": "nosniff"}
_Found = TypeVar("_Found")


def routes(
    service: VotingService,
    sign_in: Authentication,
    sets: Mapping[str, PromptSet],
    pages: Sequence[Page],
) -> list[Route]:
    """The routes of the page; `sets`: the prompt sets, for their titles."""
    page = VotePage(service, sign_in, sets, pages)
    return [
        Route(PATH, page.start, methods=["GET"]),
        Route(f"{PATH}/{{prompt_set}}", page.ballot, methods=["GET"]),
        Route(f"{PATH}/{{prompt_set}}", page.answer, methods=["POST"]),
        Route(f"{PATH}/{{prompt_set}}/{{ballot}}/{{side}}", page.picture, methods=["GET"]),
    ]


class VotePage:
    """What each address answers."""

    def __init__(
        self,
        service: VotingService,
        sign_in: Authentication,
        sets: Mapping[str, PromptSet],
        pages: Sequence[Page],
    ) -> None:
        self._service, self._sign_in, self._sets, self._pages = service, sign_in, sets, pages

    async def start(self, request: Request) -> Response:
        """The open polls."""
        return await self._in_words(request, lambda: self._polls(request))

    async def ballot(self, request: Request) -> Response:
        """The next ballot of the visitor."""
        return await self._in_words(request, lambda: self._ballot(request))

    async def answer(self, request: Request) -> Response:
        """Count an answer, and lead to the next ballot."""
        try:
            content = await body_of(request, MOST_BYTES)
        except TimeoutError:
            content = b""
        return await self._in_words(request, lambda: self._answer(request, content))

    async def picture(self, request: Request) -> Response:
        """A picture of a ballot, for whom it was issued to."""
        try:
            return await run_in_threadpool(lambda: self._picture(request))
        except AssayError as error:
            return Response(error.code, _STATUS.get(error.code, _UNREAD))

    async def _in_words(self, request: Request, answer: Callable[[], Response]) -> Response:
        try:
            return await run_in_threadpool(answer)
        except AssayError as error:
            return self._notice(request, error)

    def _polls(self, request: Request) -> Response:
        account = self._reader(request)
        polls = [
            {
                "prompt_set": one.prompt_set,
                "title": self._title(one),
                "models": len(one.models),
                "counted": self._service.counted(account, one.prompt_set) if account else 0,
            }
            for one in self._service.polls()
        ]
        title = "Vote on models" if polls else "There is nothing to vote on now"
        return self._page(
            request,
            "polls.html",
            title=title,
            polls=polls,
            **self._welcome(request, account),
        )

    def _ballot(
        self, request: Request, refused: AssayError | None = None, account: Account | None = None
    ) -> Response:
        who = account or self._reader(request)
        poll = self._service.poll(request.path_params["prompt_set"])
        if who is None:
            welcome = self._welcome(request, None)
            return self._page(
                request, "polls.html", HTTPStatus.FORBIDDEN,
                title=f"Vote on {self._title(poll)}", polls=(), **welcome | {"back": True},
            )  # fmt: skip
        ballots = self._service.ballots(who, poll)
        if not ballots:
            closed = "This vote is closed." if not poll.is_open else "No pair is left for you now."
            return self._page(
                request, "polls.html", title=self._title(poll), polls=(),
                **self._welcome(request, who) | {"said": f"{closed} Thank you.", "back": True},
            )  # fmt: skip
        own, *following = ballots
        said = str(refused) if refused else _SAID.get(request.query_params.get("done", ""), "")
        return self._page(
            request,
            "ballot.html",
            _STATUS.get(refused.code, _UNREAD) if refused else HTTPStatus.OK,
            title=self._title(poll),
            prompt_set=poll.prompt_set,
            ballot_id=own.ballot_id,
            prompt=self._service.prompt(own, poll),
            images=_addresses(poll, own),
            ahead=[one for ballot in following for one in _addresses(poll, ballot).values()],
            counted=self._service.counted(who, poll.prompt_set),
            answers=ANSWERS,
            said=said,
            refused=refused is not None,
        )

    def _answer(self, request: Request, content: bytes) -> Response:
        account = self._sign_in.account(visit_of(request.scope))
        if account is None:
            raise not_signed_in(self._sign_in)
        prompt_set = request.path_params["prompt_set"]
        try:
            ballot_id, choice = answer_of(content)
            receipt = self._service.answer(account, prompt_set, ballot_id, choice)
        except AssayError as error:
            if error.code in {"no_poll", "banned_voter"}:
                raise
            return self._ballot(request, error, account)
        done = "counted" if receipt.counted else "again"
        to = f"{quote(prompt_set, safe='')}?{urlencode({'done': done})}"
        return RedirectResponse(to, HTTPStatus.SEE_OTHER)

    def _picture(self, request: Request) -> Response:
        account, path = self._reader(request), request.path_params
        if account is None:
            raise not_signed_in(self._sign_in)
        sides: dict[str, Side] = {"left": "left", "right": "right"}
        side = sides.get(path["side"])
        found = None
        if side is not None:
            found = self._service.picture(account, path["prompt_set"], path["ballot"], side)
        if found is None:
            return Response("no_image", HTTPStatus.NOT_FOUND)
        return Response(found, media_type=MEDIA_TYPE, headers=_KEPT)

    def _reader(self, request: Request) -> Account | None:
        """Who looks: also one whom another site's link or the sign-in led here, for looking changes nothing."""
        visit = visit_of(request.scope)
        headers = {
            name: value
            for name, value in visit.headers.items()
            if name not in {"origin", "sec-fetch-site"}
        }
        return self._sign_in.account(Visit(visit.peer, headers, visit.username))

    def _welcome(self, request: Request, account: Account | None) -> dict[str, Any]:
        """How to sign in, for a guest."""
        hub = self._sign_in.way is AuthenticationMethod.HUB
        back = urlencode({"_target_url": request.url.path})
        return {
            "invitation": "" if account else self._sign_in.invitation,
            "sign_in": f"./login/huggingface?{back}" if hub and account is None else "",
            "said": "",
            "refused": False,
            "back": False,
        }

    def _notice(self, request: Request, error: AssayError) -> Response:
        signed_out = error.code == "not_signed_in"
        said = {"said": "" if signed_out else str(error), "refused": True, "back": True}
        account = None if signed_out else self._reader(request)
        return self._page(
            request, "polls.html", _STATUS.get(error.code, _UNREAD), title="Not possible now",
            polls=(), **self._welcome(request, account) | said,
        )  # fmt: skip

    def _title(self, poll: Poll) -> str:
        known = self._sets.get(poll.prompt_set)
        return known.card.title if known else poll.prompt_set

    def _page(
        self, request: Request, template: str, status: int = HTTPStatus.OK, **values: object
    ) -> Response:
        nonce = secrets.token_urlsafe(16)
        shared = document_values(
            self._pages,
            "models",
            request.url.path,
            nonce=nonce,
            scripts=(vote_script().address,),
        )
        page = render(f"votes/{template}", **shared, **values)
        return HTMLResponse(page, status, headers=_headers(nonce))


def answer_of(content: bytes) -> tuple[str, Choice]:
    """Ballot and choice of a form.

    Raises:
        SubmitterError: `bad_answer`.
    """
    try:
        fields = dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=4))
        return fields["ballot"], Choice(fields["choice"])
    except (KeyError, ValueError) as error:  # among them text that is no UTF-8
        said = "left, right, equal or both_bad"
        raise SubmitterError(
            "bad_answer", "The answer could not be read.", f"Choose one of {said}."
        ) from error


def _addresses(poll: Poll, ballot: Ballot) -> dict[str, str]:
    """Addresses of both pictures, which tell nothing of their models."""
    of = f".{PATH}/{poll.prompt_set}/{ballot.ballot_id}"
    return {"left": f"{of}/left", "right": f"{of}/right"}


def _headers(nonce: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": f"default-src 'self'; script-src 'self' 'nonce-{nonce}'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; form-action 'self'; base-uri 'self'; "
        "frame-ancestors 'self' https://huggingface.co",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
