"""Entries of the boards, one for each metric of each published submission; flags and identities.

A flag says what a reader should know before taking an entry for a work of its own. Entries of
several submissions that are one metric have one identity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from benchmarks.schema import Card
from leaderboard.accounts import ASSAY
from leaderboard.ranking.cells import UNSANDBOXED, Cell
from leaderboard.records import (
    Cost,
    Findings,
    Flops,
    Kind,
    OrderFigures,
    Provenance,
    RunResult,
    Submission,
)
from leaderboard.trust import TrustReport

EXAMPLES_SHOWN = 5  # Items named beside the counts of what was found about a run's items


class Entry(BaseModel):
    """One metric of one submission, as the boards show it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry_id: str
    """`<submission_id>/<metric>`."""
    submission_id: str
    metric: str
    version: str = ""
    kind: Kind
    submitter: str
    account: str = ""
    """Key of the account behind the signature; empty where it is older than accounts."""
    description: str = ""
    released_with: str = ""
    """Citation of the paper whose authors released the scores; empty where somebody sent them."""
    trained_on: tuple[str, ...] = ()
    flops_per_pair: Flops | None = None
    """Floating-point operations of one pair as its author declares them, not measured; None where
    they do not."""
    template: str = ""
    """Kind of the template whose code it is, unchanged; empty for a metric with code of its own."""
    isolation: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Benchmark to the layers in force while it was scored."""
    cost: dict[str, Cost] = Field(default_factory=dict)
    """Benchmark to what the run used; absent where no code was run."""
    findings: dict[str, Findings] = Field(default_factory=dict)
    """Benchmark to what was found about its items, with a few by name."""
    trust: dict[str, TrustReport] = Field(default_factory=dict)
    """Benchmark to what the scorer was put through there; absent where no code was run."""
    provenance: dict[str, Provenance] = Field(default_factory=dict)
    """Benchmark to what its figures are computed again from."""
    same_content_as: tuple[str, ...] = ()
    """Earlier submissions by others with the very same content: a flag, not a verdict."""
    same_scores_as: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Benchmark to submissions by others with the very same scores, likewise; absent if none."""
    received_at: AwareDatetime
    published_at: AwareDatetime

    @property
    def blind(self) -> bool:
        """Whether its score was found to be blind to the prompt."""
        return any(report.blind for report in self.trust.values())

    @property
    def moved_by_changes(self) -> bool:
        """Whether a change that leaves the content was found to move its score."""
        return any(report.moved_by_changes for report in self.trust.values())

    @property
    def orders(self) -> dict[str, OrderFigures]:
        """Benchmark to how far the order decides there; empty for a metric that gives scores."""
        return {name: one.orders for name, one in self.findings.items() if one.orders is not None}

    @property
    def orders_alike(self) -> float | None:
        """Share of comparisons on all benchmarks in which both orders agree; None where none are."""
        known = [one for one in self.orders.values() if one.alike is not None]
        n = sum(one.comparisons for one in known)
        return sum(one.comparisons * (one.alike or 0.0) for one in known) / n if n else None

    @property
    def suspected(self) -> bool:
        """Whether a lookup is suspected, and no operator has cleared it."""
        return any(report.suspected for report in self.trust.values())


class StoredEntries(Mapping[str, Entry]):
    """Entries as they are stored, each parsed when it is first asked for."""

    def __init__(self, lines: Mapping[str, bytes]) -> None:
        self._lines = lines
        self._parsed: dict[str, Entry] = {}

    def __getitem__(self, entry_id: str) -> Entry:
        """The entry of an id."""
        if entry_id not in self._parsed:
            self._parsed[entry_id] = Entry.model_validate_json(self._lines[entry_id])
        return self._parsed[entry_id]

    def __iter__(self) -> Iterator[str]:
        """Ids, in the order of the file."""
        return iter(self._lines)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._lines)

    def __contains__(self, entry_id: object) -> bool:
        """Whether there is one of that id; none is parsed for it."""
        return entry_id in self._lines

    def __eq__(self, other: object) -> bool:
        """Whether the other has equal entries under the same ids."""
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def lines(self) -> Mapping[str, bytes]:
        """Entry id to the entry as JSON."""
        return self._lines


def stored(entries: Mapping[str, Entry]) -> StoredEntries:
    """Entries as they are stored; what is in that form already is not parsed for it."""
    if isinstance(entries, StoredEntries):
        return entries
    return StoredEntries({name: e.model_dump_json().encode() for name, e in entries.items()})


def entries_of(submission: Submission, results: Sequence[RunResult]) -> dict[str, Entry]:
    """The entries of a submission, by id."""
    found: dict[str, Entry] = {}
    for metric in submission.metrics:
        own = [one for one in results if metric in submission.metrics_on(one.benchmark)]
        if own:
            entry = _entry(submission, metric, own)
            found[entry.entry_id] = entry
    return found


def _entry(submission: Submission, metric: str, results: Sequence[RunResult]) -> Entry:
    findings = {r.benchmark: r.findings_of(metric) for r in results}
    trust = {r.benchmark: r.trust_of(metric) for r in results}
    return Entry(
        entry_id=f"{submission.submission_id}/{metric}",
        submission_id=submission.submission_id,
        metric=metric,
        version=submission.version,
        kind=submission.kind,
        submitter=submission.submitter,
        account=submission.account,
        description=submission.description,
        released_with=submission.released_with,
        trained_on=submission.trained_on,
        flops_per_pair=submission.flops_per_pair.get(metric),
        template=submission.template,
        isolation={r.benchmark: r.isolation for r in results},
        cost={r.benchmark: r.cost for r in results if r.cost is not None},
        findings={name: _in_short(one) for name, one in findings.items() if one},
        trust={name: one for name, one in trust.items() if one is not None},
        provenance={r.benchmark: r.provenance for r in results},
        same_content_as=submission.same_content_as,
        same_scores_as={r.benchmark: same for r in results if (same := r.same_as(metric))},
        received_at=submission.received_at,
        published_at=max(r.judged_at for r in results),
    )


def _in_short(findings: Findings) -> Findings:
    """With few enough examples for a file that every page reads; the result has more."""
    return findings.model_copy(update={"examples": findings.examples[:EXAMPLES_SHOWN]})


RELEASED, AS_SUBMITTED = "released by the authors", "scores as submitted, not re-run"
SAME_CONTENT, SAME_SCORES = "same content", "same scores"
TEMPLATE, BLIND = "template", "blind to the prompt"
MOVED, LOOKUP = "moved by more than content", "lookup suspected"
MEANINGS = {
    SAME_CONTENT: "the very same files as in an earlier submission by somebody else; both stand.",
    SAME_SCORES: "the very same scores as in a submission by somebody else, to six digits.",
    TEMPLATE: "a template of Assay’s, unchanged; it is not recommended and judges no models.",
    BLIND: "it does not tell an image’s right prompt from others; its values stand, and it judges no "
    "alignment of models.",
    MOVED: "a change of images or prompts that leaves the content moves its score, its page says which; "
    "its values and its rank stand.",
    LOOKUP: "one grey level, which nobody sees, turns its scores; it has no rank until an operator clears it.",
    UNSANDBOXED: "the operator ran code of their own without isolation; it gets no rank.",
}
"""Flag to what it says."""


def origin(entry: Entry) -> str:
    """Where scores come from that were not made here, in words; empty where Assay ran the metric."""
    if entry.released_with:
        return RELEASED
    return AS_SUBMITTED if entry.kind is Kind.SCORES else ""


def flags_of(
    entries: Iterable[Entry], benchmarks: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Flag to the submissions it is about; none where it is about no other."""
    content: list[str] = []
    scores: list[str] = []
    loose = template = blind = moved = suspected = False
    for entry in entries:
        template = template or bool(entry.template)
        blind = blind or entry.blind
        moved = moved or entry.moved_by_changes
        suspected = suspected or entry.suspected
        content += entry.same_content_as
        for name, others in entry.same_scores_as.items():
            scores += others if benchmarks is None or name in benchmarks else ()
        loose = loose or any(
            UNSANDBOXED in layers
            for name, layers in entry.isolation.items()
            if benchmarks is None or name in benchmarks
        )
    found = {SAME_CONTENT: tuple(dict.fromkeys(content)), SAME_SCORES: tuple(dict.fromkeys(scores))}
    shown = {label: others for label, others in found.items() if others}
    bare = (
        (LOOKUP, suspected), (TEMPLATE, template), (BLIND, blind), (MOVED, moved), (UNSANDBOXED, loose),
    )  # fmt: skip
    return {**shown, **{label: () for label, holds in bare if holds}}


def is_trained_on(entry: Entry, card: Card) -> bool:
    """Whether the author declared this benchmark, or the one it is modelled on."""
    return bool({name.casefold() for name in entry.trained_on} & {card.name, card.family})


def shown_account(key: str) -> str:
    """The account as it is shown; empty for what is older than accounts, and for Assay's own."""
    return "" if key == ASSAY.key else key


def signature_text(entry: Entry) -> str:
    """As plain text: `A group (hub:ada)`; not escaped."""
    key = shown_account(entry.account)
    return f"{entry.submitter} ({key})" if key else entry.submitter


class Identity(NamedTuple):
    """What makes entries of several submissions one metric.

    A scores file is for one benchmark, so one metric comes in as many submissions; nobody else's
    submission of the same name is mixed with it.
    """

    submitter: str
    metric: str
    version: str
    kind: Kind
    account: str = ""
    """As it is shown: a signature alone makes nobody the author of somebody's metric."""

    @classmethod
    def of(cls, entry: Entry) -> Identity:
        """The metric an entry belongs to."""
        account = shown_account(entry.account)
        return cls(entry.submitter, entry.metric, entry.version, entry.kind, account)


def entries_of_each(entries: Iterable[Entry]) -> dict[Identity, tuple[Entry, ...]]:
    """All published entries of every metric."""
    found: dict[Identity, list[Entry]] = {}
    for entry in entries:
        found.setdefault(Identity.of(entry), []).append(entry)
    return {who: tuple(own) for who, own in found.items()}


def latest_entries(entries: Iterable[Entry]) -> dict[Identity, Entry]:
    """The latest published entry of every metric."""
    latest: dict[Identity, Entry] = {}
    for entry in entries:
        who = Identity.of(entry)
        if who not in latest or latest[who].published_at < entry.published_at:
            latest[who] = entry
    return latest


def latest_cells(cells: Iterable[Cell], entries: Mapping[str, Entry]) -> dict[Identity, Cell]:
    """The cells of one slice by metric; of several of one metric the latest published."""
    by_age = sorted(cells, key=lambda cell: entries[cell.entry_id].published_at)
    return {Identity.of(entries[cell.entry_id]): cell for cell in by_age}


class RankCount(NamedTuple):
    """How many have a rank in one ranking; as text what a rank is of: `19`, or `20 entries`."""

    metrics: int  # each by its latest published entry
    entries: int  # more where a metric was sent several times: each entry has a rank of its own

    def __str__(self) -> str:
        return f"{self.entries:,}" + (" entries" if self.entries != self.metrics else "")


def count_ranked(cells: Sequence[Cell], entries: Mapping[str, Entry]) -> RankCount:
    """How many of the cells of one slice have a rank."""
    latest = latest_cells(cells, entries).values()
    return RankCount(*(sum(cell.rank is not None for cell in of) for of in (latest, cells)))
