"""What the client of the Hub raises, said in one sentence and in the project's own classes."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from benchmarks.errors import AssayError, SubmitterError, TransientError
from benchmarks.sources.client import httpx, parse_ratelimit_headers

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_SIGNED = re.compile(r"(https?://[^\s?'\"]+)\?[^\s'\"]*")
"""An address with a query: where large files lie, that opens them to anybody."""
_LONGEST_PAUSE_S = 300.0
_AGAIN = "Run the same command again; what was fetched so far is kept."
_WITH_ACCESS = "set HF_TOKEN to a token of an account that has access"


@contextmanager
def told_clearly(what: str, repo: str = "", commit: str = "") -> Iterator[None]:
    """Turn any error of the client inside the block into one of the project's.

    Args:
        what: what was asked for, e.g. `nllg/croc_hum/croc_hum.tar.gz`.
        repo: dataset repository on the Hub, where it is one.
        commit: revision that was asked for.

    Raises:
        SubmitterError: asking again will not help until something is changed.
        TransientError: the network or the server; asking again may help.
    """
    try:
        yield
    except AssayError:
        raise
    except (HfHubHTTPError, httpx.HTTPError, OfflineModeIsEnabled, EntryNotFoundError) as error:
        raise _translated(error, what, repo, commit) from error


def _translated(error: Exception, what: str, repo: str, commit: str) -> AssayError:
    known = _by_class(error, what, repo, commit)
    if known is not None:
        return known
    if isinstance(error, httpx.HTTPStatusError | HfHubHTTPError):
        page = f"https://huggingface.co/datasets/{repo}" if repo else ""
        return _by_status(error.response.status_code, what, page)
    if isinstance(error, httpx.TimeoutException):
        return TransientError("no_answer", f"No answer in time while fetching {what}.", _AGAIN)
    return TransientError(
        "no_network", f"The connection failed while fetching {what} ({in_short(error)}).", _AGAIN
    )


def _by_class(error: Exception, what: str, repo: str, commit: str) -> SubmitterError | None:
    """The error for what the client has a class of its own for; None for the rest.

    A gated repository comes first, because the client counts it among the unknown ones.
    """
    page = f"https://huggingface.co/datasets/{repo}"
    texts: dict[type[Exception], tuple[str, str, str]] = {
        OfflineModeIsEnabled: (
            "offline",
            f"{what} cannot be fetched: HF_HUB_OFFLINE is set.",
            "Unset it.",
        ),
        GatedRepoError: (
            "gated_repository",
            f"{repo} is open only to those who accepted its terms.",
            f"Accept them at {page}, then {_WITH_ACCESS}.",
        ),
        RepositoryNotFoundError: (
            "unknown_repository",
            f"The Hub knows no dataset {repo}, or shows it to its members only.",
            f"If {page} exists, {_WITH_ACCESS}.",
        ),
        DisabledRepoError: ("disabled_repository", f"The Hub has closed {repo}.", f"See {page}."),
        RevisionNotFoundError: (
            "unknown_revision",
            f"{repo} has no revision {commit!r}.",
            "If it had, its authors rewrote it: compare the card and pins.json with their history.",
        ),
        EntryNotFoundError: (
            "not_in_repository",
            f"{what} does not exist at revision {commit or 'main'}.",
            "Its authors may have renamed it; the benchmark's card names the expected file.",
        ),
    }
    return next(
        (SubmitterError(*text) for kind, text in texts.items() if isinstance(error, kind)), None
    )


def _by_status(status: int, what: str, page: str) -> AssayError:
    if status in TRANSIENT_STATUS:
        return TransientError(
            "server_unavailable", f"The server answered {status} for {what}.", _AGAIN
        )
    if status in {401, 403} and page:
        return SubmitterError(
            "no_access",
            f"The Hub refuses access to {what} ({status}).",
            f"Accept the terms at {page}, if there are any, and {_WITH_ACCESS}.",
        )
    return SubmitterError(
        "download_refused",
        f"The server answered {status} for {what}.",
        "The address may have moved; the benchmark's card names it.",
    )


@contextmanager
def disk_told_clearly(where: object) -> Iterator[None]:
    """Turn an error of the file system inside the block into one sentence.

    Raises:
        SubmitterError: `disk_full`, or `data_not_writable`.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, HfHubHTTPError | OfflineModeIsEnabled):
            raise
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise SubmitterError(
                "disk_full",
                f"The disk ran full while writing {where}.",
                "Make room and run the same command again; it continues where it stopped.",
            ) from error
        raise SubmitterError(
            "data_not_writable",
            f"{where} cannot be written ({error.strerror or error}).",
            "Name another folder with --data.",
        ) from error


def pause_asked_for(error: TransientError) -> float:
    """Seconds for which a busy server wants to be left alone, five minutes at most."""
    reply = getattr(error.__cause__, "response", None)
    if not isinstance(reply, httpx.Response) or reply.status_code not in TRANSIENT_STATUS:
        return 0.0
    limit = parse_ratelimit_headers(reply.headers)
    if reply.status_code == 429 and limit is not None and limit.remaining == 0:
        return min(limit.reset_in_seconds + 1.0, _LONGEST_PAUSE_S)
    asked = reply.headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdigit() else 0.0


def in_short(error: BaseException, told: str = "") -> str:
    """What an error says in its first line, without what opens a file to whoever reads it.

    Args:
        error: whose words they are; its name where it has none.
        told: words of its own for it, in place of its text.
    """
    lines = (line for line in (told or str(error)).splitlines() if line.strip())
    return _SIGNED.sub(r"\1", next(lines, type(error).__name__))
