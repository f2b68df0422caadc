"""Near-duplicates of another model's earlier images: a flag, never a verdict.

Of every submission three numbers are kept for each image (`hashes/<submission>.parquet` in the
private repository). Two images of one prompt are the same where their perceptual hashes hardly
differ; of whatever prompts, where their pixels are equal.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import PlatformError
from evaluator.submission.generations.checking import Hashes, Key, Wanted
from evaluator.submission.generations.images import ALIKE, NAME
from leaderboard.ledger.private_records import HASHES
from leaderboard.records import SharedImages

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


def hashes_file(hashes: Hashes, wanted: Wanted) -> bytes:
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
    hashes: Hashes, wanted: Wanted, others: Iterable[KeptHashes]
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
            examples = tuple(_keys(hashes.places[same][:_EXAMPLES], wanted))
            found.append(
                SharedImages(
                    submission_id=other.submission_id,
                    n_images=int(same.sum()),
                    examples=examples,
                )
            )
    return tuple(sorted(found, key=lambda one: (-one.n_images, one.submission_id)))


def _keys(places: Numbers, wanted: Wanted) -> Iterable[Key]:
    return (wanted.key(int(place)) for place in places)


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
