"""Model repositories on the Hub and their cache, read through `huggingface_hub`."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from huggingface_hub import HfApi, constants, set_client_factory, snapshot_download
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

from benchmarks.errors import AssayError, SubmitterError, TransientError
from benchmarks.sources.client import hf_request_event_hook, httpx
from benchmarks.sources.faults import TRANSIENT_STATUS
from benchmarks.sources.remote import TIMEOUT

_AGAIN = "Run the same command again; what was fetched so far is kept."
_OWN_FOLDER = "or name a folder that holds it with --checkpoint ROLE=FOLDER"


@dataclass(frozen=True, slots=True)
class ModelHub:
    """Where repositories are, and where what was fetched of them is kept.

    Attributes:
        cache: folder in the layout of the Hub's client.
        pins: file with the commits that were taken.
        endpoint: address; None: that of the environment.
        token: of the reader; None: that of the environment or of a login.
    """

    cache: Path
    pins: Path
    endpoint: str | None = None
    token: str | None = None

    @classmethod
    def of_environment(cls) -> ModelHub:
        """As the Hub's own variables say (`HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`, `HF_TOKEN`)."""
        return cls(Path(constants.HF_HUB_CACHE), Path(constants.HF_HOME) / "assay_checkpoints.json")

    def snapshot(
        self,
        repository: str,
        revision: str,
        patterns: Sequence[str],
        *,
        ignored: Sequence[str] = (),
        offline: bool = False,
    ) -> Path:
        """The folder of a commit, named for it, with the files that match; fetched if need be.

        Raises:
            SubmitterError: `checkpoint_missing`, `disk_full`.
            TransientError: `hub_unreachable`.
        """
        _limit_waiting()
        with _told(repository, revision):
            place = snapshot_download(
                repository,
                revision=revision,
                cache_dir=self.cache,
                allow_patterns=list(patterns),
                ignore_patterns=list(ignored),
                local_files_only=offline,
                endpoint=self.endpoint,
                token=self.token,
            )
        return Path(place)

    def present(
        self,
        repository: str,
        revision: str,
        patterns: Sequence[str],
        *,
        ignored: Sequence[str] = (),
    ) -> Path | None:
        """The folder of a commit in the cache with every file that matches; None: not there."""
        try:
            place = self.snapshot(repository, revision, patterns, ignored=ignored, offline=True)
        except SubmitterError:
            return None
        return place if any(any(place.glob(f"**/{pattern}")) for pattern in patterns) else None

    def file_names(self, repository: str, commit: str, *, offline: bool = False) -> list[str]:
        """What a commit holds; offline, what of it is in the cache.

        Raises:
            SubmitterError: `checkpoint_missing`.
            TransientError: `hub_unreachable`.
        """
        if offline:
            folder = f"models--{repository.replace('/', '--')}"
            place = self.cache / folder / "snapshots" / commit
            return [each.relative_to(place).as_posix() for each in place.rglob("*")]
        _limit_waiting()
        with _told(repository, commit):
            api = HfApi(endpoint=self.endpoint, token=self.token)
            return list(api.list_repo_files(repository, revision=commit))


@contextmanager
def _told(repository: str, revision: str) -> Iterator[None]:
    """Turn what the client raises into one sentence of the project's.

    Raises:
        SubmitterError: asking again will not help until something is changed.
        TransientError: the network or the server; asking again may help.
    """
    try:
        yield
    except HFValidationError as error:
        raise _missing(f"{repository!r} is no name of a repository ({error})") from error
    except (
        HfHubHTTPError,
        httpx.HTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
    ) as error:
        raise _translated(error, repository, revision) from error
    except (EntryNotFoundError, IncompleteSnapshotError) as error:
        raise _missing(f"{repository} is not whole at {revision} ({error})") from error
    except OSError as error:
        raise _of_disk(error, repository) from error


def _translated(error: Exception, repository: str, revision: str) -> AssayError:
    """The project's error; the client's own may hide the cause behind "not in the cache"."""
    known = _refused(error, repository, revision)
    if known is not None:
        return known
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled):
        cause = error.__cause__
        if isinstance(cause, HfHubHTTPError | httpx.HTTPError):
            return _translated(cause, repository, revision)
        return _missing(
            f"{repository} at {revision} is not, or not whole, on this machine, "
            "and the Hub is not asked (offline)",
            f"Run once with access to the Hub, {_OWN_FOLDER}.",
        )
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    if status and status not in TRANSIENT_STATUS:
        return _missing(f"the Hub answered {status} for {repository} at {revision}")
    why = f"it answered {status}" if status else str(error).split("\n")[0] or type(error).__name__
    return TransientError(
        "hub_unreachable", f"The Hub cannot be reached for {repository} ({why}).", _AGAIN
    )


def _refused(error: Exception, repository: str, revision: str) -> SubmitterError | None:
    """What the client has a class for; a gated repository first, for it counts as an unknown one."""
    page = f"https://huggingface.co/{repository}"
    access = "set HF_TOKEN to a token of an account that has access"
    if isinstance(error, GatedRepoError):
        return _missing(
            f"{repository} is open only to those who accepted its terms",
            f"Accept them at {page} and {access}, {_OWN_FOLDER}.",
        )
    if isinstance(error, RepositoryNotFoundError):
        return _missing(
            f"the Hub knows no model {repository}, or shows it to its members only",
            f"If {page} exists, {access}, {_OWN_FOLDER}.",
        )
    if isinstance(error, RevisionNotFoundError):
        return _missing(
            f"{repository} has no revision {revision!r}",
            "If it had, its authors rewrote its history; another commit gives other scores.",
        )
    return None


def _of_disk(error: OSError, repository: str) -> AssayError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return SubmitterError(
            "disk_full",
            f"The disk ran full while {repository} was fetched.",
            "Make room and run the same command again; it continues where it stopped.",
        )
    if error.errno in {errno.EACCES, errno.EROFS, errno.EPERM}:
        where = os.fspath(error.filename) if error.filename else "the cache"
        return SubmitterError(
            "cache_not_writable",
            f"{where} cannot be written ({error.strerror}).",
            "Name a folder of your own with HF_HOME.",
        )
    why = str(error).split("\n")[0]
    return TransientError("hub_unreachable", f"Fetching {repository} failed ({why}).", _AGAIN)


def _missing(what: str, hint: str = "") -> SubmitterError:
    return SubmitterError("checkpoint_missing", f"{what}.", hint)


@lru_cache(maxsize=1)
def _limit_waiting() -> None:
    """Give the client's calls a timeout; several have none, so a silent Hub would hang them."""
    set_client_factory(
        lambda: httpx.Client(
            event_hooks={"request": [hf_request_event_hook]}, follow_redirects=True, timeout=TIMEOUT
        )
    )
