"""Results in the store: published, withheld, held back by their authors, displaced by newer ones.

The origin of a result is what it was made from, by hash: a later snapshot computes only what changed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from benchmarks.errors import PlatformError
from benchmarks.parquet import write_margins, write_stored
from benchmarks.rows import Measured
from benchmarks.schema import Card, ScoreTable
from leaderboard.ledger.editions import Edition
from leaderboard.ledger.private_records import results_folder
from leaderboard.ranking.cells import Cell, kept_from_ranking
from leaderboard.ranking.draws import Draws, draws_files, read_draws
from leaderboard.records import Cost, Findings, Kind, OrderFigures, RunResult, Submission
from leaderboard.store.interface import NotFoundError, Repository, Store
from leaderboard.trust import ContentControl, PromptControl, TrustReport

RANKED_BY = 2
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


def with_clearance(result: RunResult, why: str) -> RunResult:
    """A result of a submission that an operator has cleared of a lookup; as it is if `why` is empty."""
    if not why:
        return result
    return result.with_reports(lambda report: report.model_copy(update={"cleared": why}))


@dataclass(frozen=True)
class Published:
    """One published run, as the snapshot is built from it."""

    submission: Submission  # what was submitted
    result: RunResult  # its rows
    draws: Draws | None = None  # of its rows, in their order; None before they are read

    def distrust(self, metric: str) -> str:
        """Why a metric is kept from ranking; empty where nothing keeps it."""
        report = self.result.trust_of(metric)
        return kept_from_ranking(report.why_not if report else "", self.result.isolation)

    def cells(self) -> tuple[Cell, ...]:
        """Its rows as cells without ranks, in their order."""
        name = self.submission.submission_id
        return tuple(
            Cell.of(f"{name}/{row.metric}", place, row, self.distrust(row.metric))
            for place, row in enumerate(self.result.as_rows())
        )


class ResultFiles(NamedTuple):
    """The files of one run, by path, in each of the two repositories."""

    public: Mapping[str, bytes | Path]
    private: Mapping[str, bytes | Path]

    @property
    def private_copies(self) -> dict[str, bytes | Path]:
        """All of them, as the private repository keeps them while their author holds them back."""
        return {
            f"{results_folder(path.split('/')[1])}{path.split('/')[2]}": content
            for path, content in {**self.public, **self.private}.items()
        }


def result_files(
    result: RunResult, measured: Measured, scores: ScoreTable, *, answers_public: bool
) -> ResultFiles:
    """The files of one run.

    `<benchmark>.json` holds the rows and what is needed to compute them again, `.scores.parquet`
    the score of every pair, `.clusters.parquet` the value of every cluster behind every row, `.margins.parquet` what a metric that
    compares said of every comparison,
    `.resamples.parquet` one column per row with its value in each resample and
    `.influence.parquet` one with what each block of clusters adds to it. Where a benchmark's
    answers are not public, only the rows are: the rest could carry a message, and the answers
    could be solved for.
    """
    stem = f"results/{result.submission_id}/{result.benchmark}"
    rows: dict[str, bytes | Path] = {f"{stem}.json": result.model_dump_json(indent=1).encode()}
    behind: dict[str, bytes | Path] = {
        f"{stem}.scores.parquet": write_stored(
            scores,
            submission_id=result.submission_id,
            benchmark=result.benchmark,
            revision=result.revision,
        ),
        f"{stem}.clusters.parquet": _parquet(measured.clusters),
        **({f"{stem}.margins.parquet": write_margins(scores)} if scores.margins else {}),
        **draws_files(stem, measured.resamples, measured.contributions),
    }
    return ResultFiles({**rows, **behind}, {}) if answers_public else ResultFiles(rows, behind)


def with_draws(
    store: Store, submission: Submission, result: RunResult, cards: Mapping[str, Card]
) -> Published:
    """A run on one of these benchmarks as the snapshot is built from it; a model's has no draws."""
    if submission.kind is Kind.GENERATIONS:
        return Published(submission, result)
    cells = Published(submission, result).cells()
    return Published(submission, result, read_draws(store, cards[result.benchmark], cells))


def read_results(store: Store, submission: Submission) -> tuple[RunResult, ...]:
    """The latest results of a submission, held ones too, in the order of its benchmarks."""
    found = (read_result(store, submission, name) for name in submission.benchmarks)
    return tuple(result for result in found if result is not None)


def read_result(store: Store, submission: Submission, benchmark: str) -> RunResult | None:
    """The latest result of a submission on a benchmark, held or published; None: there is none."""
    name = submission.submission_id
    path = f"{results_folder(name) if submission.private else f'results/{name}/'}{benchmark}.json"
    repository = store.private if submission.private else store.public
    try:
        return RunResult.model_validate_json(repository.read(path))
    except NotFoundError:
        return None


def held_results(
    store: Store, submission: Submission, cards: Mapping[str, Card]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What held results, old ones too, become when they are published: public and private files."""
    name = submission.submission_id
    public: dict[str, bytes] = {}
    private: dict[str, bytes] = {}
    of_model = submission.kind is Kind.GENERATIONS
    for benchmark in submission.benchmarks:
        if benchmark not in cards and not of_model:
            raise PlatformError(
                "unknown_benchmark",
                f"The results of {name} on {benchmark} cannot be published from here, where that "
                "benchmark is not known.",
                "Publish them from a machine with the same benchmarks as the worker.",
            )
        kept = results_folder(name)
        for path in (
            *store.private.list(f"{kept}{benchmark}."),
            *store.private.list(f"{kept}pictures-{benchmark}-"),
        ):
            file = path.rpartition("/")[2]
            # Prompts have no answers to keep.
            is_public = of_model or cards[benchmark].answers_public or file == f"{benchmark}.json"
            part = public if is_public else private
            part[f"results/{name}/{file}"] = store.private.read(path)
    folder = results_folder(name)
    for path in store.private.list(f"{folder}{AT}"):
        file = path.rpartition("/")[2]
        card = cards.get(file.partition(".")[0])
        is_public = file.endswith(".json") or (card is not None and card.answers_public)
        part = public if is_public else private
        part[f"results/{name}/{path.removeprefix(folder)}"] = store.private.read(path)
    return public, private


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


AT = "at/"
_TAG = re.compile(r"[A-Za-z0-9._~-]{1,160}")


class Displaced(NamedTuple):
    """The files that keep old results, by path, in each of the two repositories."""

    public: dict[str, bytes | None]
    private: dict[str, bytes | None]


class Archived(NamedTuple):
    """One old result of a submission."""

    tag: str
    result: RunResult


def kept_as(old: RunResult, new: RunResult) -> str:
    """The tag under which an old result stays; empty where the new one says the very same.

    Within one edition, as after a rerun, the old one is named by when it was judged.
    """
    before, after = Edition.of_result(old), Edition.of_result(new)
    if before.tag != after.tag:
        return before.tag
    return f"{before.tag}~{old.judged_at:%Y%m%dT%H%M%SZ}" if old.rows != new.rows else ""


def displaced(store: Store, submission: Submission, new: Iterable[RunResult]) -> Displaced:
    """What new results of a submission displace, as files of the commits that bring them."""
    found = Displaced({}, {})
    name = submission.submission_id
    for result in new:
        old = read_result(store, submission, result.benchmark)
        tag = kept_as(old, result) if old is not None else ""
        if not tag:
            continue
        folder = f"results/{name}/"
        if submission.private:
            folder = results_folder(name)
        else:
            found.public.update(_kept_under_tag(store.public, folder, tag, result, again=True))
        # The private side is written first. After a crash between the two it has the new files
        # already, and the old ones in their place: those are not written over.
        found.private.update(_kept_under_tag(store.private, folder, tag, result, again=False))
    return found


def old_tags(store: Store, submission: Submission) -> tuple[str, ...]:
    """The tags under which a submission has old results."""
    repository, folder = _place(store, submission)
    paths = repository.list(f"{folder}{AT}")
    return tuple(dict.fromkeys(path.removeprefix(f"{folder}{AT}").split("/")[0] for path in paths))


def old_places(public: Repository, submission_id: str) -> dict[str, tuple[str, ...]]:
    """Tag to the benchmarks of which a submission has public old results under it."""
    folder, found = f"results/{submission_id}/{AT}", dict[str, list[str]]()
    for path in public.list(folder):
        tag, _, file = path.removeprefix(folder).partition("/")
        if file.endswith(".json"):
            found.setdefault(tag, []).append(file.removesuffix(".json"))
    return {tag: tuple(names) for tag, names in found.items()}


def old_results(store: Store, submission: Submission, revision: str) -> tuple[Archived, ...]:
    """The old results of a submission of a revision, or under exactly this tag."""
    repository, folder = _place(store, submission)
    found = []
    for path in repository.list(f"{folder}{AT}"):
        tag, _, file = path.removeprefix(f"{folder}{AT}").partition("/")
        if file.endswith(".json") and _TAG.fullmatch(tag):
            result = RunResult.model_validate_json(repository.read(path))
            if revision in (tag, result.revision):
                found.append(Archived(tag, result))
    return tuple(found)


def _place(store: Store, submission: Submission) -> tuple[Repository, str]:
    name = submission.submission_id
    if submission.private:
        return store.private, results_folder(name)
    return store.public, f"results/{name}/"


def _kept_under_tag(
    repository: Repository, folder: str, tag: str, new: RunResult, *, again: bool
) -> dict[str, bytes | None]:
    """Copies of the old files of one benchmark below their tag.

    What was kept under the tag of the new result goes: that edition is the current one again.
    """
    benchmark = f"{new.benchmark}."
    back = Edition.of_result(new).tag
    changes: dict[str, bytes | None] = dict.fromkeys(
        repository.list(f"{folder}{AT}{back}/{benchmark}")
    )
    for path in repository.list(f"{folder}{benchmark}"):
        kept = f"{folder}{AT}{tag}/{path.removeprefix(folder)}"
        if again or not repository.has(kept):
            changes[kept] = repository.read(path)
    return changes


DECIMALS = 3
"""Of values and intervals, as boards show them."""
DIGITS = 2
"""Significant ones, of time and memory."""
_SHOWN = ("value", "ci_low", "ci_high")
_NOT_SHOWN = ("percentile_low", "percentile_high")


def public_result(result: RunResult) -> RunResult:
    """The result as it is published where answers are withheld: rounded figures.

    A scorer has read the questions, so every figure of its run can carry some of them out: the fewer
    digits, the less. docs/security.md says how much remains.
    """
    return result.model_copy(
        update={
            "rows": tuple(_row(row) for row in result.rows),
            "cost": result.cost and _cost(result.cost),
            "findings": result.findings and _findings(result.findings),
            "outputs": {
                name: one.model_copy(update={"findings": one.findings and _findings(one.findings)})
                for name, one in result.outputs.items()
            },
            "scores_sha256": {},  # A guess at the scores could be checked against it.
        }
    ).with_reports(_trust)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    shown = {name: row[name] and round(row[name], DECIMALS) for name in _SHOWN}
    return {**row, **shown, **dict.fromkeys(_NOT_SHOWN)}


def _cost(cost: Cost) -> Cost:
    measured = {
        "seconds": _significant(cost.seconds),
        "pairs_per_s": _significant(cost.pairs_per_s),
        "peak_memory_bytes": int(_significant(cost.peak_memory_bytes)),
        "usd": _significant(cost.usd),
    }
    return cost.model_copy(update=measured)


def _findings(findings: Findings) -> Findings:
    return findings.model_copy(
        update={"examples": (), "orders": findings.orders and _orders(findings.orders)}
    )


def _orders(figures: OrderFigures) -> OrderFigures:
    """How often both orders agree, and of about how many comparisons."""
    alike = figures.alike and round(figures.alike, DECIMALS)
    return OrderFigures(comparisons=int(_significant(figures.comparisons)), alike=alike)


def _trust(report: TrustReport) -> TrustReport:
    """Whether each check was passed, the verdicts of the controls, and no figure."""
    nothing = {"mean": math.nan, "largest": math.nan, "n_lost": 0, "example": None}
    # How many comparisons a scorer decides is up to it.
    checks = (
        check.model_copy(update=nothing | ({"n_pairs": 0} if check.name == "places" else {}))
        for check in report.checks
    )
    withheld = {
        "spread": math.nan,
        "precision": None,
        "checks": tuple(checks),
        "prompt": report.prompt and PromptControl(verdict=report.prompt.verdict),
        "content": report.content and ContentControl(verdict=report.content.verdict),
    }
    return report.model_copy(update=withheld)


def _significant(figure: float) -> float:
    if figure == 0.0 or not math.isfinite(figure):
        return figure
    return round(figure, DIGITS - 1 - math.floor(math.log10(abs(figure))))
