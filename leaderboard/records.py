"""The records the store keeps, one frozen model each. Every record carries its version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from benchmarks.rows import Row
from benchmarks.schema import Method
from leaderboard.states import FINISHED, IN_BATCH, IN_WORK, TO_JUDGE, State
from leaderboard.trust import TrustReport

RETRY_AFTER = timedelta(seconds=15)
"""Rest after a first fault of the world; twice as long after each further one."""
LONGEST_REST = timedelta(minutes=30)
"""What may be tried ten times thus outlives an outage of an hour."""
BUILTIN = "builtin:"
"""Before the name of a built-in metric, where a submission is named."""
Flops = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kind(StrEnum):
    """What was submitted."""

    METRIC = "metric"
    SCORES = "scores"
    GENERATIONS = "generations"


class Receipt(_Record):
    """What the author's own dry run was made of.

    Anyone can write one: it explains differences, and proves nothing.
    """

    schema_version: Literal[1] = 1
    content_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    versions: dict[str, str]
    """Packages the scores may depend on, Python and Assay included."""
    isolation: tuple[str, ...]
    """Layers that held while it ran."""
    benchmark: str
    """Of the pairs that were scored."""
    pairs: int
    scores_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the scores, rounded to six significant digits, in the order of their pair ids."""
    checked_at: AwareDatetime


class Submission(_Record):
    """What a submitter sent, as it was validated. Never changes after it is received."""

    schema_version: Literal[1] = 1
    submission_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{7,63}$")
    kind: Kind
    name: str
    """Name of the metric, or of the scores file."""
    version: str = ""
    metrics: tuple[str, ...]
    """The entries it makes on the boards: one for code or for each of its outputs, one per column of
    a scores file."""
    benchmarks: tuple[str, ...]
    """Registry names of the benchmarks it is to be run on."""
    metric_benchmarks: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Metric to the benchmarks that it is on, of a module with several outputs; empty: each is on all."""
    submitter: str
    description: str = ""
    authors: tuple[str, ...] = ()
    licence: str = ""
    links: dict[str, str] = Field(default_factory=dict)
    lower_is_better: tuple[str, ...] = ()
    trained_on: tuple[str, ...] = ()
    account: str = ""
    """Key of the account that sent it (`leaderboard.accounts`) and owns it; empty in records older
    than accounts, which only operators may change."""
    private: bool = False
    """Whether it stays with its author until they publish it. The public record of a private
    submission names neither metric nor author; the whole one is in the private repository."""
    same_content_as: tuple[str, ...] = ()
    """Earlier submissions by others with the very same content: a flag, not a verdict."""
    receipt: Receipt | None = None
    """Of the author's own `check`, if they sent it along."""
    method: Method = "score"
    """Whether a metric scores images, or compares two images of a prompt."""
    flops_per_pair: dict[str, Flops] = Field(default_factory=dict)
    """Metric to the floating-point operations of one pair, as its author declares them: nobody has
    measured it. Absent where nothing is declared."""
    models: tuple[str, ...] = ()
    """Models of the Hub the module needs, as `owner/name@commit`."""
    template: str = ""
    """Kind of the template of `init` whose code this is, unchanged; empty for a metric with code of
    its own, and in older records. A template is never recommended, and judges no models."""
    source: str = ""
    """Where a submission was taken from, as `hub:owner/name@commit`, or `builtin:ROW@DIGEST` of a
    built-in metric (`builtin`); empty for an upload."""
    content_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    archive: str
    """Path of the upload in the private repository."""
    entry_point: str = ""
    weights: str = ""
    environment: str = ""
    """Packages it is run with, as `name@SHA-256` of their lock; empty: those of Assay itself."""
    released_with: str = ""
    """Citation of the paper whose authors released these scores, which Assay publishes for them;
    empty for whatever somebody sent."""
    model_card: ModelCard | None = None
    """Of generations: how they were made."""
    images: ImagesSeen | None = None
    """Of generations: what was found in them."""
    received_at: AwareDatetime

    @property
    def outputs(self) -> int:
        """Scores that its code gives for a pair."""
        return len(self.metrics) if self.kind is Kind.METRIC else 1

    def metrics_on(self, benchmark: str) -> tuple[str, ...]:
        """The entries it makes on the board of a benchmark."""
        on = self.metric_benchmarks
        return tuple(m for m in self.metrics if not on or benchmark in on.get(m, ()))

    @property
    def builtin(self) -> str:
        """Row of the built-in metric that it is, which runs in the worker; empty of all others."""
        if self.kind is not Kind.METRIC or not self.source.startswith(BUILTIN):
            return ""
        return self.source.removeprefix(BUILTIN).partition("@")[0]

    @property
    def boxed(self) -> bool:
        """Whether a sandbox is needed: by code that was sent, and by images, which such code scores."""
        return self.kind is not Kind.SCORES and not self.builtin


class Event(_Record):
    """One transition of a submission. Its state is a fold over its events."""

    schema_version: Literal[1] = 1
    at: AwareDatetime
    state: State
    by: str
    """Who made it: a submitter, a worker, an operator."""
    reason: str = ""
    """Why; always there for rejected, failed, withdrawn and hidden."""
    hint: str = ""
    code: str = ""
    fault: Literal["", "submitter", "world", "platform"] = ""
    lease_until: AwareDatetime | None = None
    log: str = ""
    """The end of the scorer's own output, where it may be shown."""
    nonce: str = ""
    """Of a claim: random, so that a worker knows its own from an equal one."""
    benchmarks: tuple[str, ...] = ()
    """Of what is queued again for some of its benchmarks only: those; else none."""

    @property
    def to_judge(self) -> bool:
        """Whether it leaves scores to a judge."""
        return self.state is State.SCORED and self.code == TO_JUDGE


class Status(_Record):
    """A submission with the state its events add up to: one line of the queue."""

    submission: Submission
    state: State
    since: AwareDatetime
    by: str
    reason: str = ""
    hint: str = ""
    code: str = ""
    fault: str = ""
    attempts: int = 0
    """How often a worker has claimed it since it was queued, or a judge since it was scored; a
    repeated try goes on counting."""
    lease_until: AwareDatetime | None = None
    on_boards: bool = False
    """Whether its last published results are shown: a rerun does not take them away."""
    scored_at: AwareDatetime | None = None
    """When it was first scored, which is what a quota charges; None where it never was."""
    again_on: tuple[str, ...] = ()
    """The benchmarks it is being run on again, while its other results stay; none: all of them."""
    cleared: str = ""
    """Why an operator has cleared it of the suspicion of a lookup; empty where none has. It holds for
    whatever comes of the submission."""

    @property
    def job(self) -> Submission:
        """The submission with only the benchmarks it is to be run on now."""
        wanted = tuple(name for name in self.submission.benchmarks if name in self.again_on)
        return (
            self.submission.model_copy(update={"benchmarks": wanted}) if wanted else self.submission
        )

    @property
    def unfinished(self) -> bool:
        """Whether it waits for a worker or is being worked on."""
        return self.state not in FINISHED

    @property
    def to_judge(self) -> bool:
        """Whether its scores wait for a judge, and nobody holds it."""
        return self.state is State.SCORED and self.code == TO_JUDGE

    def held_by(self, worker: str) -> bool:
        """Whether this worker has it in work."""
        return self.state in IN_WORK and self.by == worker and not self.to_judge

    @property
    def claimed_alone(self) -> bool:
        """Whether its worker claimed nothing beside it, and so is at it for certain."""
        return self.state in IN_WORK - {State.CLAIMED} and self.code != IN_BATCH

    def due(self, now: datetime) -> bool:
        """Whether it waits for a worker; after a fault of the world it rests for a while."""
        waits = self.state is State.QUEUED or self.to_judge
        return waits and now >= self.since + self._rest()

    def _rest(self) -> timedelta:
        if self.fault != "world" or self.attempts < 1:
            return timedelta(0)
        return min(RETRY_AFTER * (1 << min(self.attempts - 1, 20)), LONGEST_REST)

    def expired(self, now: datetime) -> bool:
        """Whether a worker's lease on it has run out."""
        return self.state in IN_WORK and self.lease_until is not None and self.lease_until < now


class Cost(_Record):
    """What a run used, all its starts together; 0 where a figure is not known."""

    pairs: int
    images: int
    seconds: float
    """Time spent in the scorer."""
    pairs_per_s: float
    peak_memory_bytes: int = 0
    calls: int = 0
    """Calls of the scorer."""
    images_decoded: int = 0
    images_encoded: int = 0
    """Rows that went through the image encoder of a metric that has one."""
    texts_encoded: int = 0
    """Rows that went through the text encoder of a metric that has one."""
    usd: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Price of the replies that the scores rest on, of a metric that is paid for; a reply that was
    kept counts what it cost when it was bought, so that a rerun has the same price."""

    @property
    def usd_per_1000_pairs(self) -> float | None:
        """Price in USD of 1,000 pairs; None of a metric that is not paid for."""
        return 1000 * self.usd / self.pairs if self.usd and self.pairs else None


class FindingExample(_Record):
    """One item of a benchmark that something was found about."""

    code: str
    item: Literal["image", "text", "pair"]
    item_id: str
    message: str
    scored: bool
    """Whether there is a score all the same."""


class OrderFigures(_Record):
    """Whether a metric that compares two images says the same with their places exchanged."""

    comparisons: int
    """In which an image was preferred, in one order at least."""
    alike: float | None = None
    """Share of them in which both orders prefer the same image."""
    alike_low: float | None = None
    """Lower limit of that share, one-sided, 95 % (Wilson), as if comparisons were independent."""
    first: float | None = None
    """Share of all answers that prefer the image that came first; ties count half."""
    one_order: int = 0
    """Comparisons that were answered in one order only."""


class Findings(_Record):
    """What a reader must know of the items of a run, beside its scores."""

    pairs: int
    """That were asked for."""
    scored: int
    """Of them, with a score."""
    unscored: dict[str, int] = Field(default_factory=dict)
    """Code of a finding to the number of pairs that have no score for that reason."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Code of a finding to the number of images, texts or pairs it was made about."""
    examples: tuple[FindingExample, ...] = ()
    """Some of them by name; none where a benchmark's answers are not public."""
    environment: dict[str, str] = Field(default_factory=dict)
    """What the scores were made with: engine, device, precision, versions."""
    orders: OrderFigures | None = None
    """Of a metric that compares."""


class OutputReport(_Record):
    """What was found of one of several outputs of a scoring module."""

    findings: Findings | None = None
    """What is to be known of its items; None where nothing was found out."""
    trust: TrustReport | None = None
    """What the output was put through; None where it was not."""

    def with_report(self, change: Callable[[TrustReport], TrustReport]) -> OutputReport:
        """The same with its report changed."""
        return self.model_copy(update={"trust": self.trust and change(self.trust)})


class Provenance(_Record):
    """What the intervals, ranks and p-values of a run are computed again from."""

    seed: int
    n_resamples: int
    plan: str
    """Hash of the resampling plan."""
    versions: str
    """Of the packages the figures depend on."""


class JudgeRun(_Record):
    """One metric that scored the images of a text-to-image model."""

    submission_id: str
    """Of the metric."""
    metric: str
    version: str = ""
    lower_is_better: bool = False
    isolation: tuple[str, ...] = ()
    """Layers in force while it scored."""
    cost: Cost | None = None
    unscored: dict[str, int] = Field(default_factory=dict)
    """Code of a finding to the number of images without a score for that reason."""
    contract: int | None = None
    """Version of what it was given for a pair."""
    reused: int = 0
    """Scores that were taken from another set with the very same image of the same prompt."""
    perturbed: int = 0
    """Images that were scored again after the one-pixel change of Re-Thinking."""
    mean_change: float | None = None
    """Mean absolute change of their scores, in units of the score."""
    max_change: float | None = None
    failed: str = ""
    """Why it gave no scores; empty where it gave them."""
    scored_at: AwareDatetime


class RunResult(_Record):
    """Everything published about one submission on one benchmark revision."""

    schema_version: Literal[1] = 1
    submission_id: str
    benchmark: str
    revision: str
    protocol: int = 1
    """Version of the benchmark's protocol it was judged with."""
    contract: int | None = None
    """Version of what a scorer is given for a pair, where code was run; None in older results."""
    rows: tuple[dict[str, Any], ...]
    """`Row.to_json` of every measure of every metric."""
    resampling_seed: int
    n_resamples: int
    isolation: tuple[str, ...]
    """Layers in force while the scorer ran; `scores as submitted` where no code was run."""
    versions: dict[str, str]
    """Packages the figures depend on."""
    sources: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each data file the answers were read from, and the commits they came from."""
    cost: Cost | None = None
    findings: Findings | None = None
    """None where no code was run, and in results older than findings."""
    repaired: dict[str, int] = Field(default_factory=dict)
    """Metric to the number of malformed cells mended by the benchmark's documented rule."""
    trust: TrustReport | None = None
    """What the scorer was put through; None where no code was run."""
    outputs: dict[str, OutputReport] = Field(default_factory=dict)
    """Metric to what was found of it, of a module with several outputs, where `findings` and `trust`
    are None; empty of all others."""
    scores_sha256: dict[str, str] = Field(default_factory=dict)
    """Metric to a hash of its scores, rounded to six significant digits, in the order of their pair
    ids; what two entries share here is one metric under two names."""
    same_scores_as: tuple[str, ...] = ()
    """Earlier submissions by others with the very same scores: a flag, not a verdict."""
    metrics_same_as: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Metric to those of `same_scores_as` that have its scores; absent of a metric without any, and
    of all in older results, where each is taken to be."""
    judges: dict[str, JudgeRun] = Field(default_factory=dict)
    """Of generations: entry id (`<submission>/<metric>`) to the run of each metric that scored
    them. Its scores are in the column of that name."""
    pictures: int = 0
    """Of generations: number of files of pictures (`leaderboard.models.pictures`)."""
    judged_at: AwareDatetime

    def findings_of(self, metric: str) -> Findings | None:
        """What must be known of the items of the run of a metric."""
        return self.outputs[metric].findings if metric in self.outputs else self.findings

    def trust_of(self, metric: str) -> TrustReport | None:
        """What a metric was put through."""
        return self.outputs[metric].trust if metric in self.outputs else self.trust

    def same_as(self, metric: str) -> tuple[str, ...]:
        """Submissions by others with the very same scores as a metric's."""
        if not self.metrics_same_as:
            return self.same_scores_as
        return self.metrics_same_as.get(metric, ())

    def with_same_scores(self, found: Mapping[str, tuple[str, ...]]) -> RunResult:
        """The same with what its scores are equal to: metric to submissions by others."""
        every = tuple(dict.fromkeys(name for names in found.values() for name in names))
        update = {"same_scores_as": every, "metrics_same_as": dict(found)}
        return self.model_copy(update=update)

    @property
    def reports(self) -> tuple[TrustReport, ...]:
        """What it was put through, of each of its outputs."""
        every = (self.trust, *(one.trust for one in self.outputs.values()))
        return tuple(one for one in every if one is not None)

    def with_reports(self, change: Callable[[TrustReport], TrustReport]) -> RunResult:
        """The same with its reports changed, those of its outputs too."""
        outputs = {name: one.with_report(change) for name, one in self.outputs.items()}
        trust = None if self.trust is None else change(self.trust)
        return self.model_copy(update={"trust": trust, "outputs": outputs})

    def as_rows(self) -> tuple[Row, ...]:
        """The rows as `Row` objects."""
        return tuple(Row.from_json(record) for record in self.rows)

    @property
    def provenance(self) -> Provenance:
        """As every row states it; results older than the statements name what they have."""
        first = self.rows[0] if self.rows else {}
        return Provenance(
            seed=self.resampling_seed,
            n_resamples=self.n_resamples,
            plan=first.get("plan") or "",
            versions=first.get("versions") or "",
        )


Selection = Literal["first", "best_of"]
"""How the image of a prompt and seed came about: the first one drawn, or the best of several."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelCard(_Frozen):
    """How the images were made, as the model's developer declares it; None and empty: not said."""

    model: str = ""
    """Hub id of the model."""
    revision: str = ""
    """Its commit."""
    parameters: int | None = Field(default=None, ge=1)
    """Number of weights."""
    steps: int | None = Field(default=None, ge=1)
    """Denoising steps."""
    guidance: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Guidance scale."""
    drawn_on: str = Field(default="", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    """Date, as YYYY-MM-DD: a service behind an address changes under one name."""
    released: str = Field(default="", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    """Day of the model's release, as YYYY-MM-DD: a judge may have been validated on older models alone."""
    selection: Selection = "first"
    best_of: int | None = Field(default=None, ge=2)
    """Of how many images the best was taken, where `selection` is `best_of`."""
    selected_by: str = Field(default="", max_length=200)
    """What took the best: a person, or the metric by its name."""


class SharedImages(_Frozen):
    """Images that are, to the eye, those of another submission: a flag, not a verdict."""

    submission_id: str
    n_images: int = Field(ge=1)
    examples: tuple[tuple[str, int], ...] = ()
    """Prompt id and seed of a few, here."""


class ImagesSeen(_Frozen):
    """What the images of a submission are.

    Counts are of (prompt, seed) combinations of its prompt set.
    """

    prompt_set: str
    revision: str
    """Of the prompt set."""
    seeds: tuple[int, ...]
    wanted: int
    present: int
    withheld: dict[str, int] = Field(default_factory=dict)
    """Reason to the number of images its maker withheld, e.g. `nsfw`."""
    n_bytes: int = 0
    sizes: dict[str, int] = Field(default_factory=dict)
    """`512x512` to the number of images of that size."""
    shared: tuple[SharedImages, ...] = ()
