"""Origins of a snapshot and its results, by hash: a later snapshot computes only what changed."""

from __future__ import annotations

import hashlib
import math

import pandas as pd
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from benchmarks.schema import Card
from leaderboard.ledger.editions import Edition
from leaderboard.records import RunResult

RANKED_BY = 1
"""Version of the code between results and boards. Raise it where equal results would get another
board (so whenever `editions.CONTRACT` is raised): every board is then ranked anew at the next
publication."""


class RunOrigin(BaseModel):
    """One run that was at hand.

    Attributes:
        revision: of the benchmark it was judged on; it is on the board of that revision alone.
        protocol: version of the protocol, likewise.
        contract: version of what its scorer was given, likewise; None where no code was run.
        sha256: of its result, however its file is laid out.
        scores: the hashes of its scores, in the order of their metrics' names; none where the
            result does not say them, or the origin is older than that.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: str
    protocol: int = 1
    contract: int | None = None
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    scores: tuple[str, ...] = ()

    @property
    def edition(self) -> Edition:
        """All that it was made with."""
        return Edition(revision=self.revision, protocol=self.protocol, contract=self.contract)

    def stands_on(self, card: Card) -> bool:
        """Whether it may stand on the board of a benchmark as it is here and now."""
        return self.edition.fits(Edition.of_card(card))


class Origin(BaseModel):
    """What of one submission a snapshot shows.

    Attributes:
        since: when its last event was; its results are looked at again only after a later one.
        runs: benchmark to its run there, whether or not there is a board of that revision.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    since: AwareDatetime
    runs: dict[str, RunOrigin]


def origin_of(result: RunResult) -> RunOrigin:
    """The origin that a result is."""
    content = result.model_dump_json().encode()
    made, sha256 = Edition.of_result(result), hashlib.sha256(content).hexdigest()
    return RunOrigin(
        revision=made.revision,
        protocol=made.protocol,
        contract=made.contract,
        sha256=sha256,
        scores=tuple(found for _, found in sorted(result.scores_sha256.items())),
    )


SIGNIFICANT_DIGITS = 6  # More would tell apart what only a machine's rounding does


def scores_sha256(series: pd.Series[float]) -> str:
    """Hash scores, rounded to six significant digits, in the order of their pair ids.

    A missing score counts as missing, and -0 as 0. Rounding makes most of what machines do
    differently vanish, not all: a score in the middle between two roundings may fall either way.
    """
    digest = hashlib.sha256()
    scores = {str(pair_id): float(score) for pair_id, score in series.items()}
    for pair_id in sorted(scores):
        name = pair_id.encode()
        digest.update(b"%d:%b:%b\n" % (len(name), name, _rounded(scores[pair_id])))
    return digest.hexdigest()


def _rounded(score: float) -> bytes:
    if math.isnan(score):
        return b"none"
    return f"{score + 0.0:.{SIGNIFICANT_DIGITS - 1}e}".encode()
