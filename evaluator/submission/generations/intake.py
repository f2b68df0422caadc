"""Intake of a model's images: fetched, checked, and compared with those of others.

Near-duplicates of another model's earlier images are a flag, never a verdict. Of every submission three
numbers are kept for each image (`hashes/<submission>.parquet` in the private repository). Two images of
one prompt are the same where their perceptual hashes hardly differ; of whatever prompts, where their
pixels are equal.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.problems import one_error, problems_of
from evaluator.generation.manifest import GenerationsManifest
from evaluator.hub.source import PREFIX, Fetched, HubSource, fetched
from evaluator.scoring.progress import Listener, Progress
from evaluator.submission.archives.entries import ArchiveLimits
from evaluator.submission.generations.checking import Hashes, RequestedImages
from evaluator.submission.generations.extraction import AcceptedImages, Resolve, take
from evaluator.submission.generations.images import ALIKE, NAME
from evaluator.submission.generations.sources import GenerationsLimits, Source, opened_source
from evaluator.submission.intake import Identity, owner_of
from leaderboard.accounts import ASSAY
from leaderboard.ledger.private_records import HASHES
from leaderboard.records import ImagesSeen, Kind, SharedImages, Status
from leaderboard.states import State
from leaderboard.store.interface import NotFoundError, Repository
from leaderboard.submission_service import (
    UNNAMED,
    CheckProgress,
    ManifestOverrides,
    Tell,
    ValidationReport,
)

LEAST_SHARE = 0.05
LEAST_IMAGES = 3
"""Fewer images that are only alike, or a smaller share of all, come about by chance."""
_EXAMPLES = 8
_CELLS = 1 << 22
"""Comparisons at once."""
_NAME = b"assay.hash"

Words = np.ndarray[tuple[int], np.dtype[np.uint64]]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class KeptHashes:
    """The hashes of one submission."""

    submission_id: str  # whose they are
    prompts: Numbers  # number of the prompt of each image in the set; -1 where the set lacks it now
    alike: Words  # perceptual hash of each
    pixels: Words  # of each


def hashes_path(submission_id: str) -> str:
    """Where the hashes of a submission are kept, in the private repository."""
    return f"{HASHES}{submission_id}.parquet"


def hashes_file(hashes: Hashes, wanted: RequestedImages) -> bytes:
    """The file of hashes: prompt id, seed, hash, pixels."""
    keys = [wanted.key(int(place)) for place in hashes.places]
    table = pa.table(
        {
            "prompt_id": pa.array([prompt for prompt, _ in keys], pa.string()),
            "seed": pa.array([seed for _, seed in keys], pa.uint64()),
            "hash": pa.array(hashes.alike),
            "pixels": pa.array(hashes.pixels),
        }
    ).replace_schema_metadata({_NAME: NAME.encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def kept_hashes(submission_id: str, content: bytes, prompt_ids: Sequence[str]) -> KeptHashes:
    """Read what `hashes_file` wrote."""
    try:
        table = pq.read_table(io.BytesIO(content))
        comparable = (table.schema.metadata or {}).get(_NAME) == NAME.encode()
        ids = table["prompt_id"].combine_chunks().dictionary_encode()
        alike, pixels = (table[name].to_numpy() for name in ("hash", "pixels"))
    except (pa.ArrowException, KeyError, OSError) as error:
        raise PlatformError(
            "record_damaged",
            f"{hashes_path(submission_id)} cannot be read: {str(error)[:200]}",
            "Put back an earlier version of the file.",
        ) from error
    at = {prompt_id: number for number, prompt_id in enumerate(prompt_ids)}
    numbers = np.array([at.get(name, -1) for name in ids.dictionary.to_pylist()], np.int64)
    prompts = numbers[ids.indices.to_numpy()] if len(numbers) else np.zeros(0, np.int64)
    if not comparable:
        prompts = np.full(len(prompts), -1, np.int64)  # Another hash: pixels alone are compared.
    return KeptHashes(submission_id, prompts, alike, pixels)


def shared_images(
    hashes: Hashes, wanted: RequestedImages, others: Iterable[KeptHashes]
) -> tuple[SharedImages, ...]:
    """What a submission shares with others, the most shared first."""
    prompts = hashes.places // max(1, len(wanted.seeds))
    found = []
    for other in others:
        alike = _alike(prompts, hashes.alike, other)
        equal = np.isin(hashes.pixels, other.pixels)
        several = alike.sum() >= max(LEAST_IMAGES, LEAST_SHARE * len(alike))
        same = alike | equal if several else equal
        if same.any():
            examples = tuple(wanted.key(int(place)) for place in hashes.places[same][:_EXAMPLES])
            found.append(
                SharedImages(
                    submission_id=other.submission_id,
                    n_images=int(same.sum()),
                    examples=examples,
                )
            )
    return tuple(sorted(found, key=lambda one: (-one.n_images, one.submission_id)))


def _alike(
    prompts: Numbers, hashes: Words, other: KeptHashes
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which images have one of the same prompt among the other's that is the same to the eye.

    Images of a prompt lie together in `prompts`; all pairs within prompts are laid out flat and
    compared some millions at a time.
    """
    order = np.argsort(other.prompts, kind="stable")
    there, their = other.prompts[order], other.alike[order]
    first = np.searchsorted(there, prompts, "left")
    counts = np.searchsorted(there, prompts, "right") - first
    same = np.zeros(len(prompts), bool)
    ends = np.cumsum(counts)
    start = 0
    while start < len(prompts):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _CELLS, "right")))
        n = counts[start:stop]
        mine = np.repeat(np.arange(start, stop), n)
        steps = np.arange(n.sum()) - np.repeat(ends[start:stop] - n - before, n)
        near = np.bitwise_count(hashes[mine] ^ their[np.repeat(first[start:stop], n) + steps])
        same[mine[near <= ALIKE]] = True
        start = stop
    return same


_GONE = frozenset({State.FAILED, State.REJECTED, State.WITHDRAWN})
"""Whose images nobody can be said to share."""


@dataclass(frozen=True)
class WholeImages:
    """Images of which nothing is wrong."""

    manifest: GenerationsManifest  # as it is kept
    images: ImagesSeen  # what was found
    content_sha256: str  # of manifest and images
    archive: Path  # that is kept
    wanted: RequestedImages  # which images they are
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
class GenerationsIntake:
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

    def examine(
        self, path: Path, said: ManifestOverrides | None, tell: Tell | None
    ) -> ValidationReport:
        """Look at all of it, and keep nothing."""
        try:
            with opened_source(path, self.limits) as source:
                return examination(self._take(source, said, tell))
        except SubmitterError as error:
            return ValidationReport(problems_of(error))

    @contextmanager
    def taken(
        self, path: Path, said: ManifestOverrides | None, tell: Tell | None
    ) -> Iterator[WholeImages]:
        """Check all of it, and write what is kept, which is gone afterwards."""
        with TemporaryDirectory(prefix="assay-images-", dir=self.scratch) as place:
            archive = Path(place) / "upload.zip"
            with opened_source(path, self.limits) as source:
                taken = self._take(source, said, tell, archive)
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

    def _take(
        self,
        source: Source,
        said: ManifestOverrides | None,
        tell: Tell | None,
        target: Path | None = None,
    ) -> AcceptedImages:
        listener, limits = listening(tell), self.limits
        return take(
            source, self.resolve, said=said, target=target, listener=listener, limits=limits
        )


def examination(taken: AcceptedImages) -> ValidationReport:
    """What the page and the command line say of it."""
    manifest, images = taken.manifest, taken.images
    return ValidationReport(
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
        tell(CheckProgress(now.done, now.total, now.eta_s))

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
