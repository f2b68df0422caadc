"""A made-up store for tests of the pages, with everything a board can hold; parts of others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem, one_error
from benchmarks.rows import Row
from benchmarks.schema import Card, MeasureInfo, Selector
from benchmarks.statistics.content_effect import ChangeVerdict
from benchmarks.statistics.prompt_effect import Verdict
from leaderboard.accounts import Account
from leaderboard.api.source import Source
from leaderboard.governance.authentication import Authentication, AuthenticationMethod
from leaderboard.governance.rights import require_operator
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import Ban, bans_file
from leaderboard.publication.publisher import build_snapshot
from leaderboard.publication.reader import Reader, View, view_of
from leaderboard.publication.results import Published
from leaderboard.publication.snapshot import PATH, Snapshot, snapshot_bytes
from leaderboard.ranking.draws import Draws, draws_files
from leaderboard.ranking.orders import Orders
from leaderboard.records import Cost, Event, Kind, RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store, transact
from leaderboard.store.live.interface import Heartbeat
from leaderboard.submission_service import (
    BuiltinForm,
    CheckProgress,
    ManifestOverrides,
    SandboxAvailability,
    ScoresForm,
    SubmissionReceipt,
    Tell,
    ValidationReport,
)
from leaderboard.trust import (
    CHANGES,
    TITLES,
    AreaFigures,
    ChangeFigures,
    Check,
    CheckName,
    ContentControl,
    Example,
    PromptControl,
    TrustReport,
)
from leaderboard.views.boards import BoardQuery, Choice, resolve
from leaderboard.web.page import Context
from tests.kit.store import memory_store

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
REVISION = "2024-12-01"
NASTY = "<img src=x onerror=alert(1)>'\"${alert(2)}{{7*7}}\u202egnp.exe\x1b[31m"
NASTY_NAME = NASTY.partition("\x1b")[0]
ACCOUNTS = {4: "hub:somebody", 7: "hub:a.group", 10: "hub:nasty", 5: "assay:assay"}
"""Place of a metric to the account that sent it; the others are older than accounts."""
UNSANDBOXED, COPIED, SAME = 11, 4, 7
"""Places of metrics that ran without isolation, with another's content, with another's scores."""
METRICS = (
    "CLIPScore", "BLIP2-ITM", "VQAScore", "PickScore", "HPSv2", "ImageReward", "ALIGNScore",
    "SigLIP-2", "TIFA", "DSG", NASTY, "always-half",
)  # fmt: skip
SKILLS = {"counting": "Counting", "spatial": "Spatial relations", "text": "Text in images",
          "colour": "Colour", "style": "Style"}  # fmt: skip
DRAWS, BLOCKS = 200, 40
_GRAPHS = 60
_WHOLE_WAY = (State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED,
              State.JUDGING, State.PUBLISHED)  # fmt: skip


# Parts of any made-up store.


def card_of(
    name: str, title: str, measures: dict[str, MeasureInfo], headline: Selector, **more: Any
) -> Card:
    """A card with everything that tests do not look at filled in."""
    given = {
        "family": name, "summary": "How far a metric agrees with people on generated images.",
        "description": "What the data are.", "revision": REVISION, "cluster": "prompt", **more,
    }  # fmt: skip
    return Card(name=name, title=title, measures=measures, headline=headline, **given)


def submission(place: int, name: str, benchmarks: tuple[str, ...], **more: object) -> Submission:
    """A submission; every fourth is a scores file."""
    digest = hashlib.sha256(f"{place}".encode()).hexdigest()
    given = {
        "submission_id": f"made-up-{place:04d}",
        "kind": Kind.SCORES if place % 4 == 1 else Kind.METRIC,
        "name": name, "version": "" if place % 4 == 1 else f"1.{place}", "metrics": (name,),
        "benchmarks": benchmarks, "submitter": NASTY if name == NASTY else "A group",
        "description": "A made-up metric.", "trained_on": ("ratings",) if place == 3 else (),
        "account": ACCOUNTS.get(place, ""),
        "same_content_as": ("made-up-0000",) if place == COPIED else (),
        "content_sha256": digest, "archive": f"uploads/{digest}.zip",
        "received_at": NOW - timedelta(hours=place + 1),
    }  # fmt: skip
    return Submission.model_validate({**given, **more})


class Measured(NamedTuple):
    """A value with its resamples and what each block contributes to it."""

    row: Row
    draws: np.ndarray
    shares: np.ndarray


def measured(
    own: Submission, board: str, selector: Selector, centre: float, rng: np.random.Generator, *,
    clusters: int = 40, spread: float = 0.05, defined: bool = True, **more: Any,
) -> Measured:  # fmt: skip
    """A plausible value of a metric; one that is not defined has none, nor draws."""
    sample = centre + spread * rng.standard_normal(DRAWS)
    noise = spread * rng.standard_normal(BLOCKS) / np.sqrt(BLOCKS)
    shares = centre / BLOCKS + noise - noise.mean()
    low, high = (float(q) for q in np.quantile(sample, [0.025, 0.975]))
    nan = float("nan")
    row = Row(
        benchmark=board, revision=REVISION, metric=own.name, measure=selector.measure,
        value=float(centre) if defined else nan, split=selector.split, variant=selector.variant,
        facet=selector.facet, n_items=clusters * 4, n_clusters=clusters,
        ci_low=low if defined else nan, ci_high=high if defined else nan,
        note="" if defined else "All scores are equal, so no correlation is defined.", **more,
    )  # fmt: skip
    if not defined:
        sample, shares = np.full(DRAWS, nan), np.full(BLOCKS, nan)
    return Measured(row, sample, shares)


def run_of(own: Submission, board: str, values: Sequence[Measured], **more: Any) -> Published:
    """A run with these values."""
    given = {
        "isolation": ("own network namespace",), "versions": {},
        "judged_at": NOW - timedelta(minutes=5), **more,
    }  # fmt: skip
    result = RunResult(
        submission_id=own.submission_id, benchmark=board, revision=REVISION,
        rows=tuple(one.row.to_json() for one in values), resampling_seed=7, n_resamples=DRAWS,
        **given,
    )  # fmt: skip
    draws = Draws(np.stack([one.draws for one in values]), np.stack([one.shares for one in values]))
    return Published(own, result, draws)


def keep(store: Store, files: Mapping[str, bytes | None]) -> None:
    """Put files into the public part of a store."""
    transact(store.public, lambda: dict(files), "made up")


def publish(
    store: Store, runs: Sequence[Published], cards: Mapping[str, Card], closed: Iterable[str] = ()
) -> Store:
    """Publish runs with their draws; those of closed benchmarks are kept private."""
    files: dict[str, bytes] = {PATH: snapshot_bytes(build_snapshot(runs, dict(cards), NOW))}
    kept: dict[str, bytes] = {}
    for run in runs:
        if run.draws is None:
            continue
        stem = f"results/{run.submission.submission_id}/{run.result.benchmark}"
        part = kept if run.result.benchmark in closed else files
        part |= draws_files(stem, run.draws.resamples, run.draws.contributions)
        part |= clusters_file(stem, run)
    store.public.commit(files, parent=store.public.head(), message="publish")
    if kept:
        store.private.commit(kept, parent=store.private.head(), message="publish")
    return store


def view_over(store: Store, cards: Mapping[str, Card], runs: Sequence[Published]) -> View:
    """What pages see of runs whose draws a store has."""
    return view_of(build_snapshot(runs, dict(cards), NOW), cards, Orders(store))


def site_of(
    store: Store | None = None, desk: StubDesk | None = None, cards_: Mapping[str, Card] | None = None,
    way: Authentication | None = None, **more: Any,
) -> Context:  # fmt: skip
    """A site without a server: of the made-up store, unless told otherwise."""
    store = fill(memory_store()) if store is None else store
    shown = cards() if cards_ is None else dict(cards_)
    return Context(
        Reader(store, shown, clock=lambda: NOW), store, shown, lambda: NOW,
        desk=desk or StubDesk(), sign_in=way or Authentication(AuthenticationMethod.HUB), **more,
    )  # fmt: skip


def source_over(store: Store, cards_: Mapping[str, Card] | None = None, **more: Any) -> Source:
    """What programs read of a store."""
    shown = cards() if cards_ is None else dict(cards_)
    return Source(Reader(store, shown, clock=lambda: NOW), store, shown, lambda: NOW, **more)


def ban(store: Store, account: Account) -> None:
    own = Ban(account=account.key, reason=f"Copied others. {NASTY}", by="hub:root", at=NOW)
    keep(store, bans_file({account.key: own}))


def pulse(seconds_ago: float = 0.0, **more: object) -> Heartbeat:
    given = {"worker": "w", "isolation_ok": True, "isolation": "namespaces"}
    return Heartbeat.model_validate({**given, "at": NOW - timedelta(seconds=seconds_ago), **more})


def event(state: State, minutes_ago: float = 0.0, **more: object) -> Event:
    """An event; that of a failure has its reason, a hint and a log, each with hostile words."""
    given: dict[str, object] = {"at": NOW - timedelta(minutes=minutes_ago), "by": "worker-1"}
    if state in {State.REJECTED, State.FAILED}:
        given |= {
            "reason": f"The scorer stopped on pair 12: {NASTY}", "code": "scorer_failed",
            "hint": "Catch the error in `score` and return None for that pair.",
            "fault": "submitter", "log": f"Traceback (most recent call last):\n  {NASTY}",
        }  # fmt: skip
    if state is State.CLAIMED:
        given["lease_until"] = NOW + timedelta(hours=1)
    return Event.model_validate({"state": state, **given, **more})


def way_to(*last: State, **more: object) -> list[Event]:
    """Events of a submission up to its last ones."""
    path = _WHOLE_WAY[:6] if last and last[0] is not State.QUEUED else _WHOLE_WAY[:1]
    return [event(state, 40 - k, **more) for k, state in enumerate((*path, *last))]


# The store with everything that a board can hold.


def cards() -> dict[str, Card]:
    """Four benchmarks; nothing was published on the last."""

    def info(title: str, **more: Any) -> MeasureInfo:
        given = {"low": -1.0, "high": 1.0, "chance": 0.0, **more}
        meaning = f"{title} between the metric's scores and the people's ratings."
        source = "Paper, section 4, equation 2"
        return MeasureInfo(title=title, meaning=meaning, source=source, **given)

    def card(
        name: str, title: str, measures: dict[str, MeasureInfo], **more: Any
    ) -> tuple[str, Card]:
        return name, card_of(
            name, title, measures, cluster="prompt pair", licence="CC BY 4.0",
            summary=f"{title}: how far a metric agrees with people on generated images.",
            description="What the data are.\n\nWhat the board is based on.",
            links={"Paper": "https://example.org/paper"}, **more,
        )  # fmt: skip

    rated = {"srcc": info("Spearman ρ"), "plcc": info("Pearson r"),
             "accuracy": info("Pairwise accuracy", low=0.0, chance=0.5)}  # fmt: skip
    graded = {"rank": info("Rank order"), "delta": info("Error gap", low=None, high=None)}
    loss = {"rmse": info("RMSE", low=0.0, high=None, chance=None, higher_is_better=False)}
    whole = Selector(measure="srcc", variant="paper")
    of_graphs = Selector(measure="rank", variant="paper", split="all")
    return dict((
        card("ratings", "Ratings", rated, headline=whole, simulated=True, skills=SKILLS),
        card("graphs", "Error graphs", graded, headline=of_graphs),
        card("tiny", "Tiny", loss, headline=Selector(measure="rmse")),
        card("unused", "Unused", rated, headline=whole),
    ))  # fmt: skip


def _slices(benchmark: str) -> Iterator[tuple[Selector, str | None, int]]:
    """What is measured: selector, skill, clusters. Skills have another variant than the whole."""
    if benchmark == "ratings":
        for measure in ("srcc", "plcc", "accuracy"):
            yield Selector(measure=measure, variant="paper"), None, 120
        for place, skill in enumerate(SKILLS):
            yield Selector(measure="srcc", variant="assay"), skill, 6 if place == 4 else 40
            yield Selector(measure="accuracy", variant="assay"), skill, 40
    elif benchmark == "graphs":
        for split in ("all", "synth", "nat"):
            for variant in ("paper", "equation"):
                yield Selector(measure="rank", variant=variant, split=split), None, 60
            yield Selector(measure="delta", variant="paper", split=split), None, 60
    else:
        yield Selector(measure="rmse"), None, 5


def published(own: Submission, benchmark: str, place: int, rng: np.random.Generator) -> Published:
    """One run with plausible values."""
    values = []
    for selector, skill, clusters in _slices(benchmark):
        centre = 0.72 - 0.045 * place + (0.1 * rng.standard_normal() if skill else 0.0)
        undefined = own.name == "always-half" and selector.measure in {"srcc", "plcc", "rank"}
        values.append(
            measured(own, benchmark, selector, centre, rng, clusters=clusters, skill=skill,
                     defined=not undefined, n_missing=12 if place == 5 else 0)
        )  # fmt: skip
    scored = own.kind is Kind.METRIC
    layers = ["own network namespace", "read-only root"]
    if own.submission_id == f"made-up-{UNSANDBOXED:04d}":
        layers = ["unsandboxed"]
    elif not place:
        layers = ["not isolated: bundled code"]
    seconds = 12.5 + place
    same = own.submission_id == f"made-up-{SAME:04d}" and benchmark == "ratings"
    return run_of(
        own, benchmark, values, judged_at=NOW - timedelta(minutes=37 * place + 5),
        isolation=tuple(layers) if scored else ("scores as submitted, not re-run",),
        cost=Cost(pairs=480, images=480, seconds=seconds, pairs_per_s=480 / seconds)
        if scored else None,
        trust=trust(benchmark) if scored else None,
        same_scores_as=("made-up-0002",) if same else (),
    )  # fmt: skip


def trust(benchmark: str, *, fails: bool = False, turns: bool = False) -> TrustReport:
    """A report of a scorer whose scores depend on the order, turn on one grey level, or neither."""

    def check(name: CheckName) -> Check:
        moved = 0.21 if fails and name == "order" else 0.0
        moved = (0.6 if turns else 0.004) if name == "one_pixel" else moved
        example = Example(pair_id=NASTY, before=0.4, after=0.4 + moved) if moved else None
        passed = moved < 0.01
        return Check(
            name=name, n_pairs=24, mean=moved / 3, largest=moved, passed=passed, example=example
        )

    return TrustReport(
        benchmark=benchmark, n_pairs=24, n_images=12, spread=0.13, limit=0.01,
        environment={"device": "cpu", "precision": "float32", "module": NASTY},
        checks=tuple(check(name) for name in TITLES),
    )  # fmt: skip


def prompt_control(verdict: Verdict) -> PromptControl:
    """A control of 24 prompts and images with that verdict."""
    value = {"blind": 0.49, "undecided": 0.56, "uses_the_prompt": 0.81}[verdict]
    area = AreaFigures(value=value, low=value - 0.08, high=value + 0.08)
    return PromptControl(
        verdict=verdict, n_prompts=24, n_images=23, n_cells=576, n_missing=24, prompt_share=0.07,
        image_share=0.61, both_share=0.32, match=value - 0.5, match_se=0.02, raw=area, centred=area,
        empty_change=-0.125, n_empty=24, n_empty_missing=3,
    )  # fmt: skip


def content_control(verdict: ChangeVerdict) -> ContentControl:
    """A control of 24 images, one of whose changes has that verdict and the others move nothing."""
    moved = {"moved": (0.9, 0.6, 1.2), "undecided": (0.3, -0.1, 0.7), "steady": (0.0, -0.1, 0.1)}
    changes = tuple(
        ChangeFigures(
            name=name, verdict=said, value=moved[said][0], low=moved[said][1], high=moved[said][2],
            n_images=23, n_missing=1,
        )
        for name in CHANGES
        for said in (verdict if name == "saturation" else "steady",)
    )  # fmt: skip
    return ContentControl(verdict=verdict, spread=0.2, changes=changes)


def runs_of(entries: int = len(METRICS)) -> list[Published]:
    """The runs of that many metrics; later ones are not on every board."""
    rng = np.random.default_rng(11)
    runs: list[Published] = []
    for place in range(entries):
        name = METRICS[place] if place < len(METRICS) else f"metric-{place}"
        boards = ("ratings", "graphs", "tiny")[: 3 - place % 3]
        own = submission(place, name, boards)
        runs += [published(own, board, place % 12, rng) for board in boards]
    return runs


def clusters_file(stem: str, run: Published) -> dict[str, bytes]:
    """The values on single graphs of a run on `graphs`; other measures are no means over them."""
    if run.result.benchmark != "graphs" or "rank" not in {r["measure"] for r in run.result.rows}:
        return {}
    # Graphs are hard or easy for all metrics; what is left is each metric's own.
    hard = np.random.default_rng(5).standard_normal(_GRAPHS)
    own = np.random.default_rng([5, int(run.submission.submission_id[-4:])])
    parts = []
    for place, row in enumerate(run.result.rows):
        if row["measure"] == "rank" and row["value"] is not None:
            value = row["value"] + 0.2 * hard + 0.15 * own.standard_normal(_GRAPHS)
            names = [f"graph-{k:03d}" for k in range(_GRAPHS)]
            parts.append(
                pd.DataFrame({"row": place, "cluster": names, "value": np.clip(value, -1, 1)})
            )
    if not parts:
        return {}
    return {f"{stem}.clusters.parquet": pd.concat(parts).to_parquet(index=False)}


def snapshot(entries: int = len(METRICS)) -> Snapshot:
    """A snapshot with that many metrics."""
    return build_snapshot(runs_of(entries), cards(), NOW)


@cache
def _published_files(entries: int) -> Mapping[str, bytes]:
    """What is published of that many metrics, made once for all stores."""
    public = publish(memory_store(), runs_of(entries), cards()).public
    return {path: public.read(path) for path in public.list()}


def fill(store: Store, entries: int = len(METRICS)) -> Store:
    """Publish the snapshot and put a queue with every kind of outcome into the store."""
    keep(store, _published_files(entries))
    ledger = Ledger(store)
    paths = (_WHOLE_WAY[:2], _WHOLE_WAY[:4], (State.RECEIVED, State.REJECTED),
             (*_WHOLE_WAY[:3], State.FAILED), _WHOLE_WAY)  # fmt: skip
    for place, path in enumerate(paths):
        name = METRICS[10] if place == 3 else METRICS[place]
        own = submission(place, name, ("ratings", "graphs"))
        ledger.receive(own, b"upload", [event(state, 40 - k) for k, state in enumerate(path)])
    store.live.beat(
        pulse(worker="worker-1", isolation="own namespaces, read-only root",
              submission_id="made-up-0001", stage="scoring Ratings", done=310, total=960,
              rate_per_s=38.4, eta_s=17.0)
    )  # fmt: skip
    return store


def view(entries: int = len(METRICS)) -> View:
    """What pages see of it."""
    return view_over(fill(memory_store(), entries), cards(), runs_of(entries))


def chosen(
    view: View, benchmark: str = "ratings", skill: str = "", measure: str = "", **more: Any
) -> Choice:
    """What a query chooses of its boards."""
    return resolve(BoardQuery(benchmark, skill, measure, **more), view.boards)


def entry_of(view: View, metric: str) -> str:
    """The id of the entry of a metric."""
    return next(e for e, entry in view.entries.items() if entry.metric == metric)


class StubDesk:
    """A desk that takes everything, or refuses code; with a store, it queues what it takes."""

    def __init__(self, gate: SandboxAvailability | None = None, store: Store | None = None) -> None:
        self._gate = gate or SandboxAvailability(ok=True)
        self._store = store
        self.taken: list[str] = []
        self.sent: list[dict[str, object]] = []
        self.found = ValidationReport(
            (), name="mine", version="1.0", benchmarks=("ratings",), files=2
        )
        self.wrong: tuple[Problem, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.recognised = False

    def sandbox_availability(self) -> SandboxAvailability:
        return self._gate

    def score_benchmarks(self) -> tuple[str, ...]:
        return ("ratings", "graphs")

    def prompt_set_names(self) -> tuple[str, ...]:
        return ("demo_prompts",)

    def builtin_names(self) -> tuple[str, ...]:
        return ("clipscore-hessel", "pickscore")

    def machine_names(self) -> tuple[str, ...]:
        return ("l4",)

    def examine_builtin(
        self, wanted: BuiltinForm, account: Account | None = None
    ) -> ValidationReport:
        require_operator(account, "submit a built-in metric")
        return self._examine(wanted.name)

    def submit_builtin(self, wanted: BuiltinForm, *, account: Account) -> SubmissionReceipt:
        require_operator(account, "submit a built-in metric")
        if self.found.problems:
            raise one_error(self.found.problems)
        self.sent.append({"account": account, "wanted": wanted})
        own = submission(0, wanted.name, ("ratings",), source=f"builtin:{wanted.name}@{'0' * 64}")
        return self._take(Path(wanted.name), own, account, False)

    def signature_problems(self, signature: str, account: Account) -> tuple[Problem, ...]:
        return self.wrong if signature else ()

    def examine_metric(self, path: Path, account: Account | None = None) -> ValidationReport:
        return self._examine(path.name)

    def examine_scores(
        self, path: Path, form: ScoresForm, account: Account | None = None
    ) -> ValidationReport:
        return self._examine(path.name, form=form)

    def examine_repository(self, source: str, account: Account | None = None) -> ValidationReport:
        return self._examine(source)

    def examine_generations(
        self, where: Path | str, said: ManifestOverrides | None = None, tell: Tell | None = None,
        account: Account | None = None,
    ) -> ValidationReport:  # fmt: skip
        if tell is not None:
            tell(CheckProgress(1, 2, 1.0))
        return self._examine(where if isinstance(where, str) else where.name, said=said)

    def _examine(self, named: str, **sent: object) -> ValidationReport:
        self.taken.append(f"examined {named}")
        self.sent += [sent] if sent else []
        return self.found

    def submit_metric(
        self, path: Path, *, account: Account, submitter: str = "", private: bool = False,
        receipt: bytes | None = None, source: str = "",
    ) -> SubmissionReceipt:  # fmt: skip
        self.sent.append(
            {"account": account, "submitter": submitter, "receipt": receipt, "source": source}
        )
        return self._take(path, submission(0, path.stem, ("ratings",)), account, private)

    def submit_repository(
        self, source: str, *, account: Account, submitter: str = "", private: bool = False,
        receipt: bytes | None = None,
    ) -> SubmissionReceipt:  # fmt: skip
        named = source.partition("@")[0]
        taken_from = f"hub:{named}@{'0' * 40}"
        self.sent.append(
            {"account": account, "submitter": submitter, "receipt": receipt, "source": taken_from}
        )
        own = submission(0, named.rpartition("/")[2], ("ratings",), source=taken_from)
        return self._take(Path(source), own, account, private)

    def submit_scores(
        self, path: Path, form: ScoresForm, *, account: Account, submitter: str = "",
        private: bool = False,
    ) -> SubmissionReceipt:  # fmt: skip
        if path.suffix != ".csv":
            raise SubmitterError("bad_file", f"{path.name} is not a table.", "Send a CSV file.")
        self.sent.append({"account": account, "submitter": submitter, "version": form.version})
        own = submission(1, form.name or path.stem, (form.benchmark,))
        return self._take(path, own, account, private)

    def submit_generations(
        self, where: Path | str, *, account: Account, submitter: str = "", private: bool = False,
        said: ManifestOverrides | None = None, **_: Any,
    ) -> SubmissionReceipt:  # fmt: skip
        path = Path(where)
        self.sent.append({"account": account, "submitter": submitter, "said": said})
        own = submission(0, path.stem, ("demo_prompts",), kind=Kind.GENERATIONS)
        return self._take(path, own, account, private)

    def _take(
        self, path: Path, own: Submission, account: Account, private: bool
    ) -> SubmissionReceipt:
        self.taken.append(path.name)
        number = len(self.taken)
        whose = {"account": account.key, "private": private, "submitter": account.name}
        own = own.model_copy(update=whose)
        if self._store is None:
            status = Status(submission=own, state=State.QUEUED, since=NOW, by="desk")
            return SubmissionReceipt(status, self.recognised, self.notes)
        ident = f"private-{number:010x}" if private else f"sent-{number:06d}"
        own = own.model_copy(update={"submission_id": ident, "received_at": NOW})
        events = [event(state, by=account.key) for state in (State.RECEIVED, State.QUEUED)]
        return SubmissionReceipt(
            Ledger(self._store).receive(own, b"upload", events), False, self.notes
        )
