"""Translation of the Hub client's errors while a store is used.

Nothing here is ever a submitter's fault: a store that fails is the world's doing, and one that
refuses us is ours. On a command line, a store that is not there or not open to us is a slip of
whoever named it, and ends like one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from typing import ClassVar

from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HfUriError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from benchmarks.settings.rotation import refresh, renewal_hint
from benchmarks.sources.client import httpx, parse_ratelimit_headers
from benchmarks.sources.remote import TRANSIENT_STATUS, in_short
from leaderboard.store.hub.layout import store_of
from leaderboard.store.interface import ConflictError, NotFoundError

TOKEN = "HF_TOKEN"  # noqa: S105 (the name of a variable)
_CUT = re.compile("client has been closed|improperly formatted|malformed response", re.IGNORECASE)
"""What the client says of connections that were closed, and of what is no answer of the Hub."""
_SHOWN = 200
_LONGEST_REST_S = 3600.0
_OF_RIGHTS = frozenset({401, 403, 404})


class VersionGoneError(TransientError):
    """The version that was read was squashed away, or the repository made anew."""


class StoreGoneError(TransientError):
    """A store that was there is not there now: deleted, renamed, or hidden from this account.

    Whoever runs waits for it, or for another of its name, and shows what it read last meanwhile.
    """


class NoStoreError(PlatformError):
    """There is no such store, or this account may not use it.

    A worker and the site meet it as any fault of the platform: no submission fails by it. A command
    ends with the code for a wrong name or token, since both are given to it.
    """

    exit_code: ClassVar[int] = SubmitterError.exit_code


class TokenRefusedError(TransientError):
    """The Hub does not take the token any more that it took before: it was revoked or ran out.

    Or it may do less than it did before.

    Whoever runs keeps what is finished, and goes on when there is another one.
    """


class OvertakenError(Exception):
    """The branch is not at the expected parent any more (412)."""


REFUSALS = (StoreGoneError, TokenRefusedError)
"""What the Hub did not even look at, from whoever was let in before."""
FATAL = (ConflictError, VersionGoneError, *REFUSALS)
"""What asking again in a moment does not change."""


@dataclass(frozen=True, slots=True)
class HubRequest:
    """What was being done, for messages."""

    action: str  # to be read after "could not", e.g. `read 'queue.json'`.
    repo: str  # the repository
    path: str = ""  # the file, where it is about one
    writing: bool = False  # whether it needs the right to write


@contextmanager
def translate_errors(
    asked: HubRequest,  # what is being done
    met: Collection[str] = (),  # repositories that answered before
    *,
    wrote: bool = False,  # whether something was written to the store before
) -> Iterator[None]:
    """Turn what the client raises inside the block into the project's errors.

    A repository that answered before is gone, which is no wrong name; nor is a token wrong that
    was good before, or had the rights before.
    """
    try:
        yield
    except AssayError:
        raise
    except HFValidationError as error:
        raise PlatformError("bad_store", f"{asked.repo!r} is no repository's name.") from error
    except (
        HfHubHTTPError,
        httpx.HTTPError,
        OfflineModeIsEnabled,
        EntryNotFoundError,
        RuntimeError,
        ValueError,
    ) as error:
        found = _translated(error, asked)
        if isinstance(found, NoStoreError):
            found = _refused_now(found, error, asked, met, wrote=wrote) or found
        raise found from error


def _refused_now(
    found: NoStoreError, error: Exception, asked: HubRequest, met: Collection[str], *, wrote: bool
) -> TransientError | None:
    """What was possible before and is not now; None where it never was."""
    if met and _is_of_token(error):
        return TokenRefusedError(
            "token_refused",
            f"The Hub does not take the token any more, to {asked.action} in {asked.repo}: it was "
            "revoked, or it ran out. What is finished is kept, and published with the next one.",
            renewal_hint(TOKEN, os.environ),
        )
    if wrote and found.code == "no_store_access":
        return TokenRefusedError(
            "access_lost",
            f"The Hub does not let this token {asked.action} in {asked.repo} ({_first_line(error)}), "
            "though this process has written to the store before. What is finished is kept.",
            "Give it the rights again; it goes on by itself then. "
            f"Or: {renewal_hint(TOKEN, os.environ)}",
        )
    return store_gone(asked.repo) if found.code == "no_store" and asked.repo in met else None


def refused_for(error: AssayError) -> float | None:
    """Seconds for which the Hub wants to be left alone; None where it did not say so (429)."""
    reply = getattr(error.__cause__, "response", None)
    if not isinstance(reply, httpx.Response):
        return None
    if reply.status_code == 429:
        limit = parse_ratelimit_headers(reply.headers)
        if limit is not None and limit.remaining == 0:
            return limit.reset_in_seconds + 1.0
        return _retry_after(reply) or 1.0
    return _retry_after(reply) if reply.status_code in TRANSIENT_STATUS else None


def was_asked(error: AssayError, of_path: str) -> bool:
    """Whether what failed may have been the request of an address with this text in it."""
    cause = error.__cause__
    if isinstance(cause, RuntimeError) and cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, HfHubHTTPError):
        return of_path in cause.response.request.url.path
    if isinstance(cause, httpx.RequestError) and cause._request is not None:
        return of_path in cause.request.url.path
    return True


def _retry_after(reply: httpx.Response) -> float | None:
    asked = reply.headers.get("Retry-After", "").strip()
    known = asked.isascii() and asked.isdecimal()
    return min(float(asked), _LONGEST_REST_S) if known else None


def _translated(error: Exception, asked: HubRequest) -> Exception:
    reply = getattr(error, "response", None)
    status = reply.status_code if isinstance(reply, httpx.Response) else 0
    known = OvertakenError() if status == 412 else _by_class(error, asked)
    if known is not None:
        return known
    if isinstance(error, RepositoryNotFoundError | GatedRepoError) or status in {401, 403}:
        return _no_access(error, asked, status)
    if not isinstance(error, HfHubHTTPError | httpx.HTTPError):
        return _of_the_client(error, asked)
    if status and status not in TRANSIENT_STATUS and status != 409:
        return PlatformError(
            "store_refused",
            f"The Hub refused to {asked.action} in {asked.repo} ({status}: {_first_line(error)}).",
            "Look at the repository's page; nothing was changed.",
        )
    return _unreachable(error, asked, status)


def _by_class(error: Exception, asked: HubRequest) -> AssayError | None:
    if isinstance(error, OfflineModeIsEnabled):
        return PlatformError(
            "offline", f"{asked.repo} cannot be reached: HF_HUB_OFFLINE is set.", "Unset it."
        )
    if isinstance(error, RevisionNotFoundError):
        return VersionGoneError(
            "version_gone",
            f"The version of {asked.repo} that was asked for is not in its history any more.",
            "Read again.",
        )
    return NotFoundError(asked.path) if isinstance(error, EntryNotFoundError) else None


def no_store(repo: str, why: str, access: str = "") -> NoStoreError:
    """There is no store whose repository this would be."""
    store = f"hub:{store_of(repo) or 'OWNER/NAME'}"
    create = f"Create it with `python -m evaluator store create {store}`, or mend its name."
    return NoStoreError(
        "no_store", f"There is no store {store}: {why}", f"{create} {access}".strip()
    )


def store_gone(repo: str) -> StoreGoneError:
    """What was there before is not there now."""
    return StoreGoneError(
        "store_gone",
        f"The Hub does not know {repo} any more, which it knew before: it was deleted or renamed, "
        "or this account sees it no more.",
        "Make it again or mend the rights of HF_TOKEN; whoever waits for it goes on by itself.",
    )


def _no_access(error: Exception, asked: HubRequest, status: int) -> NoStoreError:
    right, scope = ("write to", "repo.write") if asked.writing else ("read", "repo.content.read")
    access = (
        f"Set HF_TOKEN to a token of an account that may {right} {asked.repo} "
        f"(a fine-grained token needs the scope {scope})."
    )
    if isinstance(error, RepositoryNotFoundError):
        why = f"the Hub knows no dataset {asked.repo}, or shows it to its members only."
        return no_store(asked.repo, why, f"Where it is there: {access}")
    return NoStoreError(
        "no_store_access",
        f"The Hub does not let this account {asked.action} in {asked.repo} ({status}).",
        access,
    )


def _unreachable(error: BaseException, asked: HubRequest, status: int) -> TransientError:
    if status == 429:
        return TransientError(
            "store_busy",
            f"The Hub takes no more requests for now; it could not {asked.action} in {asked.repo}.",
            "Try again later; nothing was lost.",
        )
    why = f"it answered {status}" if status else _first_line(error)
    return TransientError(
        "store_unreachable",
        f"The Hub cannot be reached to {asked.action} in {asked.repo} ({why}).",
        "Try again; nothing was lost.",
    )


def misshapen(asked: HubRequest) -> TransientError:
    """An answer that lacks what the Hub's answers have: of a server on the way, or a failing Hub."""
    return TransientError(
        "store_unreachable",
        f"The Hub gave an answer of another shape than its own, to {asked.action} in {asked.repo}.",
        "Try again; nothing was lost.",
    )


def _of_the_client(error: Exception, asked: HubRequest) -> Exception:
    """The client wraps what fails in an upload, and closes its connections under our hands."""
    cause = error.__cause__
    if isinstance(cause, HfHubHTTPError | httpx.HTTPError | RuntimeError | ValueError):
        return _translated(cause, asked)
    # A page where JSON was to come is some server on the way that fails, and so is an address that
    # is none; another thread may have closed the connections all share, before or amid the answer.
    cut = isinstance(error, JSONDecodeError | HfUriError | httpx.StreamError)
    if isinstance(cause, OSError) or cut or _CUT.search(str(error)):
        return _unreachable(cause or error, asked, 0)
    return PlatformError(
        "store_refused", f"The Hub's client could not {asked.action} in {asked.repo}: {error}."
    )


def _first_line(error: BaseException) -> str:
    """The first line of an error, short, without control characters and without signatures."""
    told = getattr(error, "server_message", None) or str(error)
    line = in_short(error, str(told))
    return "".join(c if c.isprintable() else " " for c in line)[:_SHOWN].rstrip(". ")


def refused_with(error: BaseException) -> str | None:
    """What was sent as a token with a request that another one might be let do; None for none.

    The Hub answers 401 to what is no token, 403 to what has not the right, and 404 to what may not
    even see the repository.
    """
    reply = _reply(error)
    if reply is None or reply.status_code not in _OF_RIGHTS:
        return None
    return reply.request.headers.get("authorization")


def _is_of_token(error: BaseException) -> bool:
    """Whether the Hub refused the token itself, and not what was to be done with it.

    Without a token it answers 401 too, for what it shows to members only.
    """
    reply = _reply(error)
    return reply is not None and reply.status_code == 401 and refused_with(error) is not None


def _reply(error: BaseException) -> httpx.Response | None:
    cause: BaseException | None = error
    while cause is not None:
        reply = getattr(cause, "response", None)
        if isinstance(reply, httpx.Response):
            return reply
        cause = cause.__cause__
    return None


def renew_token() -> object:
    """Read the token again where it came from a file."""
    return refresh(TOKEN, os.environ)
