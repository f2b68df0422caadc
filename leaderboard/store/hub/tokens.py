"""A token that the Hub took and takes no more: what is said, and whether there is another one now."""

from __future__ import annotations

import os

from benchmarks.errors import TransientError
from benchmarks.settings.rotation import refresh, renewal_hint
from benchmarks.sources.client import httpx

TOKEN = "HF_TOKEN"  # noqa: S105 (the name of a variable)
_OF_RIGHTS = frozenset({401, 403, 404})


class TokenRefusedError(TransientError):
    """The Hub does not take the token any more that it took before: it was revoked or ran out.

    Or it may do less than it did before.

    Whoever runs keeps what is finished, and goes on when there is another one.
    """


def refused_with(error: BaseException) -> str | None:
    """What was sent as a token with a request that another one might be let do; None for none.

    The Hub answers 401 to what is no token, 403 to what has not the right, and 404 to what may not
    even see the repository.
    """
    reply = _reply(error)
    if reply is None or reply.status_code not in _OF_RIGHTS:
        return None
    return reply.request.headers.get("authorization")


def is_of_token(error: BaseException) -> bool:
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


def token_refused(action: str, repo: str) -> TokenRefusedError:
    """What was good for a token before is refused now.

    Args:
        action: to be read after "to", e.g. `read 'queue.json'`.
        repo: the repository.
    """
    return TokenRefusedError(
        "token_refused",
        f"The Hub does not take the token any more, to {action} in {repo}: it was revoked, or it "
        "ran out. What is finished is kept, and published with the next one.",
        renewal_hint(TOKEN, os.environ),
    )


def access_lost(action: str, repo: str, why: str) -> TokenRefusedError:
    """What may do less than it did before.

    Args:
        action: to be read after "to", e.g. `read 'queue.json'`.
        repo: the repository.
        why: as the Hub says.
    """
    return TokenRefusedError(
        "access_lost",
        f"The Hub does not let this token {action} in {repo} ({why}), though this process has "
        "written to the store before. What is finished is kept.",
        f"Give it the rights again; it goes on by itself then. Or: {renewal_hint(TOKEN, os.environ)}",
    )


def renew_token() -> object:
    """Read the token again where it came from a file."""
    return refresh(TOKEN, os.environ)
