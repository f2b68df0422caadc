"""Translation of the Hub client's errors: who is to blame, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    IncompleteSnapshotError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from benchmarks.sources.client import httpx
from benchmarks.sources.remote import TRANSIENT_STATUS, in_short

_AGAIN = "Run the same command again; what was fetched so far is kept."


@dataclass(frozen=True, slots=True)
class Messages:
    """How the one who asked is spoken to."""

    code: str  # of what is missing or refused
    otherwise: str  # what else they can do than get access, as the end of a sentence
    token: bool = True  # whether a token of theirs is sent, so that access can be had by one
    own_disk: bool = True  # whether the disk is theirs, and not the operator's


CHECKPOINT = Messages(
    "checkpoint_missing", "or name a folder that holds it with --checkpoint ROLE=FOLDER"
)


@contextmanager
def in_words(repository: str, revision: str, wording: Messages) -> Iterator[None]:
    """Turn what the client raises into one sentence of the project's."""
    try:
        yield
    except HFValidationError as error:
        raise _missing(wording, f"{repository!r} is no name of a repository ({error})") from error
    except (
        HfHubHTTPError,
        httpx.HTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
    ) as error:
        raise _translated(error, repository, revision, wording) from error
    except (EntryNotFoundError, IncompleteSnapshotError) as error:
        raise _missing(wording, f"{repository} is not whole at {revision} ({error})") from error
    except OSError as error:
        raise _of_disk(error, repository, wording) from error


def _translated(error: Exception, repository: str, revision: str, wording: Messages) -> AssayError:
    """The project's error; the client's own may hide the cause behind "not in the cache"."""
    known = _refused(error, repository, revision, wording)
    if known is not None:
        return known
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled):
        cause = error.__cause__
        if isinstance(cause, HfHubHTTPError | httpx.HTTPError):
            return _translated(cause, repository, revision, wording)
        return _missing(
            wording,
            f"{repository} at {revision} is not, or not whole, on this machine, "
            "and the Hub is not asked (offline)",
            f"Run once with access to the Hub, {wording.otherwise}.",
        )
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    if status and status not in TRANSIENT_STATUS:
        return _missing(wording, f"The Hub answered {status} for {repository} at {revision}")
    why = f"it answered {status}" if status else in_short(error)
    return TransientError(
        "hub_unreachable", f"The Hub cannot be reached for {repository} ({why}).", _AGAIN
    )


def _refused(
    error: Exception, repository: str, revision: str, wording: Messages
) -> SubmitterError | None:
    """What the client has a class for; a gated repository first, for it counts as an unknown one."""
    page = f"https://huggingface.co/{repository}"
    access = "set HF_TOKEN to a token of an account that has access"
    accept = f"Accept them at {page} and {access}, " if wording.token else "Open it to everyone, "
    reach = f"If {page} exists, {access}, " if wording.token else "Open it to everyone, "
    if isinstance(error, GatedRepoError):
        return _missing(
            wording,
            f"{repository} is open only to those who accepted its terms",
            f"{accept}{wording.otherwise}.",
        )
    if isinstance(error, RepositoryNotFoundError):
        return _missing(
            wording,
            f"The Hub knows no repository {repository}, or shows it to its members only",
            f"{reach}{wording.otherwise}.",
        )
    if isinstance(error, RevisionNotFoundError):
        return _missing(
            wording,
            f"{repository} has no revision {revision!r}",
            "If it had, its authors rewrote its history; another commit gives other scores.",
        )
    return None


def _of_disk(error: OSError, repository: str, wording: Messages) -> AssayError:
    blamed = SubmitterError if wording.own_disk else PlatformError
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return blamed(
            "disk_full",
            f"The disk ran full while {repository} was fetched.",
            "Make room and run the same command again; it continues where it stopped.",
        )
    if error.errno in {errno.EACCES, errno.EROFS, errno.EPERM}:
        where = os.fspath(error.filename) if error.filename else "the cache"
        return blamed(
            "cache_not_writable",
            f"{where} cannot be written ({error.strerror}).",
            "Name a folder of your own with HF_HOME.",
        )
    why = in_short(error)
    return TransientError("hub_unreachable", f"Fetching {repository} failed ({why}).", _AGAIN)


def _missing(wording: Messages, what: str, hint: str = "") -> SubmitterError:
    return SubmitterError(wording.code, f"{what}.", hint)
