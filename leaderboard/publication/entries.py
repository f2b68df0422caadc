"""Entries of the boards: one for each metric of each published submission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from leaderboard.records import Cost, Findings, Flops, Kind, Provenance, RunResult, Submission
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
    if not results:
        return {}
    entries = (
        Entry(
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
            findings={r.benchmark: _in_short(r.findings) for r in results if r.findings},
            trust={r.benchmark: r.trust for r in results if r.trust is not None},
            provenance={r.benchmark: r.provenance for r in results},
            same_content_as=submission.same_content_as,
            same_scores_as={r.benchmark: r.same_scores_as for r in results if r.same_scores_as},
            received_at=submission.received_at,
            published_at=max(r.judged_at for r in results),
        )
        for metric in submission.metrics
    )
    return {entry.entry_id: entry for entry in entries}


def _in_short(findings: Findings) -> Findings:
    """With few enough examples for a file that every page reads; the result has more."""
    return findings.model_copy(update={"examples": findings.examples[:EXAMPLES_SHOWN]})
