"""Intake of a model's images: fetched, checked, and compared with those of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.problems import one_error, problems_of
from evaluator.generation.manifest import GenerationsManifest
from evaluator.hub.source import PREFIX, Fetched, HubSource, fetched
from evaluator.scoring.progress import Listener, Progress
from evaluator.submission.archives.entries import ArchiveLimits
from evaluator.submission.generations.checking import Hashes, Wanted
from evaluator.submission.generations.shared import (
    KeptHashes,
    hashes_file,
    hashes_path,
    kept_hashes,
    shared_images,
)
from evaluator.submission.generations.sources import GenerationsLimits, opened_source
from evaluator.submission.generations.taking import AcceptedImages, Resolve, take
from evaluator.submission.intake import Identity, owner_of
from leaderboard.accounts import ASSAY
from leaderboard.desk import UNNAMED, Advance, Examination, SaidOfImages, Tell
from leaderboard.records import ImagesSeen, Kind, SharedImages, Status
from leaderboard.states import State
from leaderboard.store.interface import NotFoundError, Repository

_GONE = frozenset({State.FAILED, State.REJECTED, State.WITHDRAWN})
"""Whose images nobody can be said to share."""


@dataclass(frozen=True)
class WholeImages:
    """Images of which nothing is wrong."""

    manifest: GenerationsManifest  # as it is kept
    images: ImagesSeen  # what was found
    content_sha256: str  # of manifest and images
    archive: Path  # that is kept
    wanted: Wanted  # which images they are
    hashes: Hashes  # to know them again

    def hashes_file(self) -> bytes:
        """What is kept beside the archive."""
        return hashes_file(self.hashes, self.wanted)

    def shared(
        self, private: Repository, identity: Identity, statuses: Sequence[Status]
    ) -> tuple[SharedImages, ...]:
        """Whose images these are, to the eye, among those of other models."""
        if identity.account == ASSAY.key:
            return ()
        ids = tuple(self.wanted.texts)
        public: list[KeptHashes] = []
        unnamed: list[KeptHashes] = []
        for status in statuses:
            own = status.submission
            ours = (owner_of(own), own.name) == (identity.account, identity.name)
            if own.kind is not Kind.GENERATIONS or ours or status.state in _GONE:
                continue
            if own.images is None or own.images.prompt_set != identity.benchmark:
                continue
            found = _kept(private, own.submission_id, ids)
            if found is not None:
                hidden = own.private and owner_of(own) != identity.account
                (unnamed if hidden else public).append(found)
        return shared_images(self.hashes, self.wanted, [*public, *_as_one(unnamed)])


@dataclass(frozen=True)
class GenerationsDesk:
    """Checks what comes in as images."""

    resolve: Resolve  # finds the prompts that a manifest names
    # folder for what is fetched and kept meanwhile; the system's own if None
    scratch: Path | None = None
    hub: str | None = None  # address of the Hub; that of the environment if None
    limits: GenerationsLimits = field(default_factory=GenerationsLimits)  # how much may come

    @contextmanager
    def at(self, where: Path | str) -> Iterator[tuple[Path, str]]:
        """Where the images are on this machine, and where they were fetched from; empty: nowhere."""
        if isinstance(where, Path):
            yield where, ""
            return
        with fetched_for_others(where, self.limits, self.scratch, self.hub) as found:
            yield found.folder, found.source

    def examine(self, path: Path, said: SaidOfImages | None, tell: Tell | None) -> Examination:
        """Look at all of it, and keep nothing."""
        try:
            with opened_source(path, self.limits) as source:
                return examination(
                    take(
                        source,
                        self.resolve,
                        said=said,
                        listener=listening(tell),
                        limits=self.limits,
                    )
                )
        except SubmitterError as error:
            return Examination(problems_of(error))

    @contextmanager
    def taken(
        self, path: Path, said: SaidOfImages | None, tell: Tell | None
    ) -> Iterator[WholeImages]:
        """Check all of it, and write what is kept, which is gone afterwards."""
        with TemporaryDirectory(prefix="assay-images-", dir=self.scratch) as place:
            archive = Path(place) / "upload.zip"
            with opened_source(path, self.limits) as source:
                taken = take(
                    source,
                    self.resolve,
                    said=said,
                    target=archive,
                    listener=listening(tell),
                    limits=self.limits,
                )
            if taken.problems:
                raise one_error(taken.problems, taken.counts)
            assert taken.manifest and taken.images and taken.wanted and taken.hashes
            yield WholeImages(
                taken.manifest,
                taken.images,
                taken.content_sha256,
                archive,
                taken.wanted,
                taken.hashes,
            )


def examination(taken: AcceptedImages) -> Examination:
    """What the page and the command line say of it."""
    manifest, images = taken.manifest, taken.images
    return Examination(
        taken.problems,
        manifest.name if manifest else "",
        manifest.version if manifest else "",
        (images.prompt_set,) if images and images.prompt_set else (),
        images.present if images else 0,
        images.n_bytes if images else 0,
        taken.content_sha256,
        taken.counts,
        images,
    )


def sharing_notes(shared: Sequence[SharedImages]) -> tuple[str, ...]:
    """What a sender should know of images that others gave before."""
    return tuple(
        f"{one.n_images} of these images {'are' if one.n_images > 1 else 'is'}, to the eye, "
        f"{'those' if one.n_images > 1 else 'that'} of {one.submission_id}; the boards say so."
        for one in shared
    )


def fetched_for_others(
    named: str, limits: ArchiveLimits, scratch: Path | None, hub: str | None
) -> AbstractContextManager[Fetched]:
    """A repository that somebody else names: whatever a token opens is none of theirs."""
    text = named.strip()
    source = HubSource.parse(
        text if text.startswith(PREFIX) else f"{PREFIX}{text}", token=False, endpoint=hub
    )
    return fetched(
        source, most_files=limits.entries, most_bytes=limits.total_bytes, scratch=scratch
    )


def listening(tell: Tell | None) -> Listener | None:
    """A listener that passes on what pages and commands are told."""
    if tell is None:
        return None

    def listen(now: Progress) -> None:
        tell(Advance(now.done, now.total, now.eta_s))

    return listen


def _kept(private: Repository, submission_id: str, ids: Sequence[str]) -> KeptHashes | None:
    try:
        return kept_hashes(submission_id, private.read(hashes_path(submission_id)), ids)
    except NotFoundError:
        return None  # An operator may have removed them.


def _as_one(found: Sequence[KeptHashes]) -> tuple[KeptHashes, ...]:
    """All private submissions of others, of which nobody is told that they are there."""
    if not found:
        return ()
    prompts, alike, pixels = (
        np.concatenate(parts)
        for parts in zip(*((k.prompts, k.alike, k.pixels) for k in found), strict=True)
    )
    return (KeptHashes(UNNAMED, prompts, alike, pixels),)
