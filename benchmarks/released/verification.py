"""Verification of built-in metrics: released scores, agreement with them pair by pair, the record of it.

`references.toml` names the released scores that a built-in metric is compared with, and how;
`verified.toml` holds what was found, by metric.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from benchmarks.arrays import FloatArray
from benchmarks.errors import PlatformError
from benchmarks.released.bundle import ReleasedFile, ReleasedScores, read_manifest
from benchmarks.sources.output import write_whole

REFERENCES = Path(__file__).parent / "references.toml"
RECORDS = Path(__file__).parent / "verified.toml"
_SHOWN_COMMIT = 12


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reference(_Frozen):
    """Released scores of a built-in metric, and how closely it has to agree with them."""

    scorer: str
    """Name of the built-in metric."""
    table: str
    """Below `benchmarks/released/`; it has source, commit and licence."""
    column: str
    figures_of: str = ""
    """The metric whose figures those of the column are, where several are compared with it; empty:
    this one's."""
    needs: tuple[str, ...]
    """Files and folders of the benchmark that a run reads, below a folder of data."""
    questions: str = ""
    """The questions that the authors asked, in words; empty where none are asked."""
    factor: float = 1.0
    """What our score is multiplied by to be on the released scale."""
    low: float | None = None
    """What it is clamped to from below after that; None: it is not."""
    min_max: bool = False
    """Whether the release is scaled to 0..1 by its smallest and largest score; then both are."""
    tolerance: float = Field(gt=0.0)
    """On the released scale."""
    share: float = Field(gt=0.0, le=1.0)
    """Of pairs that are within the tolerance where the metric agrees."""
    why: str
    """Where scale and tolerance come from."""

    @property
    def file(self) -> ReleasedFile:
        """The table of the bundle."""
        return read_manifest().file(self.table)

    @property
    def benchmark(self) -> str:
        """Registry name of the benchmark whose images were scored."""
        return self._scores.benchmark

    @property
    def paper(self) -> str:
        """Key of the paper whose authors released the scores."""
        return self._scores.paper

    @property
    def _scores(self) -> ReleasedScores:
        return next(one for one in read_manifest().scores if one.path == self.table)


class PairDifference(_Frozen):
    """A pair whose two scores differ by more than the tolerance."""

    pair_id: str
    score: float | None
    """Ours as the metric gives it; None where it gives none."""
    ours: float | None
    """On the released scale."""
    released: float
    difference: float | None
    """Ours less the released one, on the released scale."""


class Agreement(_Frozen):
    """How far scores of a metric agree with released ones."""

    pairs: int
    """With both scores."""
    unscored: int
    """That have a released score and none of ours: they count as outside the tolerance."""
    unreleased: int
    """That have a score of ours and none that was released: they do not count."""
    plcc: float | None
    """Pearson's correlation; None where a side is constant."""
    srcc: float | None
    """Spearman's correlation, likewise."""
    largest: float | None
    """Largest absolute difference on the released scale; None without pairs."""
    within: int
    """Pairs within the tolerance."""
    share: float
    """They as a share of the pairs with a released score."""
    agrees: bool
    """Whether the share is at least the wanted one."""


def compare(
    scores: pd.Series, released: pd.Series, reference: Reference
) -> tuple[Agreement, tuple[PairDifference, ...]]:
    """How far scores agree with released ones, and the pairs that differ, in the order of `scores`.

    Args:
        scores: of our metric by pair id; NaN where it gave none.
        released: by pair id; NaN where none was released, and more pairs than were scored do not
            matter.
        reference: the conversion between the two, and the tolerance.
    """
    from benchmarks.statistics.correlation import pearson, spearman  # noqa: PLC0415 (loads SciPy)

    theirs = released.reindex(scores.index).to_numpy(dtype=np.float64)
    raw = scores.to_numpy(dtype=np.float64)
    both = np.isfinite(raw) & np.isfinite(theirs)
    known = np.isfinite(theirs)
    ours = raw * reference.factor
    if reference.low is not None:
        ours = np.where(np.isnan(ours), np.nan, np.maximum(ours, reference.low))
    if reference.min_max:
        ours, theirs = _scaled(ours, both), _scaled(theirs, both)
    difference = ours - theirs
    # A tolerance of two decimals is met by what is off by it, whatever binary fractions make of it.
    within = both & (np.abs(difference) <= reference.tolerance * (1 + 1e-9))
    n = int(both.sum())
    share = float(within.sum() / known.sum()) if known.any() else 0.0
    agreement = Agreement(
        pairs=n,
        unscored=int((known & ~both).sum()),
        unreleased=int((np.isfinite(raw) & ~known).sum()),
        plcc=_or_none(pearson(ours[both], theirs[both])) if n > 1 else None,
        srcc=_or_none(spearman(ours[both], theirs[both])) if n > 1 else None,
        largest=float(np.abs(difference[both]).max()) if n else None,
        within=int(within.sum()),
        share=share,
        agrees=n > 0 and share >= reference.share,
    )
    outside = tuple(
        PairDifference(
            pair_id=str(scores.index[at]),
            score=_or_none(raw[at]),
            ours=_or_none(ours[at]),
            released=float(theirs[at]),
            difference=_or_none(difference[at]),
        )
        for at in np.flatnonzero(known & ~within).tolist()
    )
    return agreement, outside


def _scaled(values: FloatArray, of: np.ndarray) -> FloatArray:
    """Values on a scale whose ends are the smallest and largest of those that are compared."""
    if not of.any():
        return values
    low, high = values[of].min(), values[of].max()
    scaled: FloatArray = (values - low) / ((high - low) or 1.0)
    return scaled


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


class Weights(_Frozen):
    """The checkpoint of a role that was run."""

    id: str
    """Repository of the Hub."""
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")


class Verification(_Frozen):
    """What was found when a built-in metric was compared with released scores: whole, by commit."""

    scorer: str
    row_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of what the row computes."""
    code_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the code that computes it."""
    benchmark: str
    revision: str
    """Of the benchmark."""
    table: str
    column: str
    on: date
    device: str
    """As torch names it, with the name of a GPU."""
    dtype: str
    questions_sha256: str = ""
    """Of the question file; empty where no questions are asked."""
    pairs: int
    unscored: int
    plcc: float | None = None
    srcc: float | None = None
    largest: float
    tolerance: float
    share: float
    wanted_share: float
    agrees: bool
    weights: dict[str, Weights]
    """By role of the row's checkpoints."""
    packages: dict[str, str]
    """Versions of what can change a score."""

    @property
    def sentence(self) -> str:
        """What was found, on what, in words."""
        r = "" if self.plcc is None else f", PLCC {self.plcc:.4f}"
        weights = ", ".join(
            f"{one.id}@{one.commit[:_SHOWN_COMMIT]}" for one in self.weights.values()
        )
        return (
            f"{share_text(self.share)} of {self.pairs + self.unscored:,} pairs of {self.benchmark} "
            f"within {self.tolerance:g} of {self.column}{r}, largest difference {self.largest:.3g}; "
            f"{self.on.isoformat()}, {weights or 'no weights'}, {self.dtype} on {self.device}, "
            f"{', '.join(f'{name} {version}' for name, version in self.packages.items())}"
        )


def share_text(share: float) -> str:
    """A share as per cent, never rounded to all."""
    shown = f"{100 * share:.1f}"
    return f"{'> 99.9' if shown == '100.0' and share < 1 else shown.removesuffix('.0')} %"


_Named = TypeVar("_Named", Reference, Verification)


class State(StrEnum):
    """What is known of a built-in metric's agreement with its authors' scores."""

    VERIFIED = "verified"
    DIFFERS = "differs"
    EARLIER = "earlier version"
    NOT_YET = "not yet"
    NONE_KNOWN = "none released"


class VerificationStatus(_Frozen):
    """Whether a built-in metric was verified, with the record behind it."""

    state: State
    text: str
    """In a sentence without its full stop."""
    record: Verification | None = None


def verification_status(
    scorer: str, row_sha256: str, code_sha256: str, revisions: Mapping[str, str]
) -> VerificationStatus:
    """Whether a built-in metric, as it is now, was verified.

    Args:
        scorer: its name.
        row_sha256: of what its row computes now.
        code_sha256: of the code that computes it now.
        revisions: role to commit, where the row names one.
    """
    reference = references().get(scorer)
    if reference is None:
        return VerificationStatus(state=State.NONE_KNOWN, text="no released per-image scores known")
    found = verifications().get(scorer)
    if found is None:
        text = f"not yet verified against its authors' scores ({reference.column} of {reference.benchmark})"
        return VerificationStatus(state=State.NOT_YET, text=text)
    held = {role: one.commit for role, one in found.weights.items()}
    other = any(commit != held.get(role) for role, commit in revisions.items() if commit)
    now = (row_sha256, code_sha256, reference.column)
    if other or (found.row_sha256, found.code_sha256, found.column) != now:
        what = "verified" if found.agrees else "found to differ"
        text = f"{what} for an earlier version, not yet for this one: {found.sentence}"
        return VerificationStatus(state=State.EARLIER, text=text, record=found)
    if not found.agrees:
        text = f"differs from its authors' scores: {found.sentence}"
        return VerificationStatus(state=State.DIFFERS, text=text, record=found)
    text = f"verified against its authors' scores: {found.sentence}"
    return VerificationStatus(state=State.VERIFIED, text=text, record=found)


@cache
def references() -> Mapping[str, Reference]:
    """Released scores by the built-in metric that is compared with them."""
    return _by_scorer(REFERENCES, "reference", Reference)


def verifications() -> Mapping[str, Verification]:
    """What was found so far, by built-in metric."""
    return _by_scorer(RECORDS, "verified", Verification)


def record(found: Verification) -> None:
    """Keep what was found in place of what was found of the same metric before.

    Raises:
        SubmitterError: `cannot_write`.
    """
    kept = {**verifications(), found.scorer: found}
    comment = "".join(
        line for line in RECORDS.read_text("utf-8").splitlines(keepends=True) if line[:1] == "#"
    )
    tables = "".join(f"\n[[verified]]\n{_as_toml(kept[name])}" for name in sorted(kept))
    write_whole(RECORDS, lambda place: place.write_text(comment + tables, encoding="utf-8"))


def _by_scorer(place: Path, table: str, kind: type[_Named]) -> dict[str, _Named]:
    try:
        given = tomllib.loads(place.read_text("utf-8")).get(table, [])
        found: list[_Named] = TypeAdapter(list[kind]).validate_python(given)  # type: ignore[valid-type]
    except (ValidationError, ValueError, OSError) as error:
        raise PlatformError("invalid_verification", f"{place}: {error}") from error
    by_scorer = {one.scorer: one for one in found}
    if len(by_scorer) < len(found):
        raise PlatformError("invalid_verification", f"{place}: a metric is there twice.")
    return by_scorer


def _as_toml(found: Verification) -> str:
    values = found.model_dump(mode="json", exclude_none=True) | {"on": found.on}
    return "".join(f"{name} = {_value(value)}\n" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(k)} = {_value(v)}' for k, v in value.items())} }}"
    return value.isoformat() if isinstance(value, date) else json.dumps(value, ensure_ascii=False)
