"""Reads a submitted file of scores and masks; it comes from a stranger."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse_track2.answers import MaskedScores
from benchmarks.evalmuse_track2.arrays import read_npz
from benchmarks.evalmuse_track2.masks import MaskFileError, resized
from benchmarks.evalmuse_track2.pickled import read_pickle
from benchmarks.score_columns import some

_HINT = (
    "Send a .npz file with the arrays images, scores and masks, or the organisers' output.pkl; "
    "benchmarks/evalmuse_track2/FORMAT.md describes both."
)
_ZIP, _PICKLE = (b"PK\x03\x04", b"PK\x05\x06"), tuple(bytes((0x80, n)) for n in range(8))
_SUFFIXES = (".npz", ".pkl", ".pickle", ".zip")


def parse_masks(
    content: bytes, name: str, images: Sequence[str], metric: str
) -> MaskedScores | None:
    """The scores and masks of a file, or None where it is an ordinary scores file.

    Args:
        content: the file.
        name: its name, for messages.
        images: every image the file must hold.
        metric: name of the metric.

    Raises:
        SubmitterError: `unreadable_scores`, `unknown_pairs`, `missing_pairs` or `no_scores`.
    """
    if content.startswith(_ZIP):
        read = read_npz
    elif content.startswith(_PICKLE):
        read = read_pickle
    elif name.lower().endswith(_SUFFIXES):
        raise SubmitterError(
            "unreadable_scores",
            f"{name} is neither a .npz file nor a binary pickle (protocol 3, 4 or 5).",
            _HINT,
        )
    else:
        return None
    try:
        records = read(content, len(images), resized)
    except MaskFileError as error:
        raise SubmitterError("unreadable_scores", f"{name} {error}.", _HINT) from error
    _check_images(name, list(records.scores), images)
    overall = pd.DataFrame({metric: records.scores}, dtype="float64").loc[list(images)]
    if all(map(math.isnan, overall[metric])):
        raise SubmitterError(
            "no_scores",
            f"{name} gives no image a score.",
            "Give each image a number that grows with its quality.",
        )
    overall.index.name = "pair_id"
    return MaskedScores(overall, masks={metric: records.masks})


def _check_images(name: str, found: Sequence[str], expected: Sequence[str]) -> None:
    known, given = set(expected), set(found)
    unknown = [repr(image[:60]) for image in found if image not in known]
    if unknown:
        raise SubmitterError(
            "unknown_pairs",
            f"{name} has {len(unknown)} images that evalmuse_track2 does not have: "
            f"{some(unknown)}.",
            f"Images of evalmuse_track2 are named like {expected[0]!r}.",
        )
    missing = [repr(image) for image in expected if image not in given]
    if missing:
        raise SubmitterError(
            "missing_pairs",
            f"{name} lacks {len(missing)} of the {len(expected)} images of evalmuse_track2: "
            f"{some(missing)}.",
            "Add each with a mask (all zeros where nothing is distorted) and a score.",
        )
