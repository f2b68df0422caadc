"""A made-up store for tests of the pages, with everything a board can hold.

Run it to look at the pages: `python tests/leaderboard/pages/synthetic.py [PORT]`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.rows import Row
from benchmarks.schema import Card, MeasureInfo, Selector
from leaderboard.desk import Accepted, Advance, Examination, Gate, SaidOfImages, Tell
from leaderboard.governance.accounts import Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import (
    PATH,
    Published,
    Snapshot,
    build_snapshot,
    snapshot_bytes,
)
from leaderboard.ranking.draws import Draws, draws_files
from leaderboard.records import Cost, Event, Kind, RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import Pulse
from leaderboard.store.memory import memory_store
from leaderboard.trust import TITLES, Check, CheckName, Example, TrustReport

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NASTY = "<img src=x onerror=alert(1)>'\"${alert(2)}{{7*7}}\u202egnp.exe\x1b[31m"
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
_DRAWS = 200
_BLOCKS = 40
_GRAPHS = 60


def _info(title: str, **more: object) -> MeasureInfo:
    return MeasureInfo.model_validate(
        {
            "title": title,
            "meaning": f"{title} between the metric's scores and the people's ratings.",
            "low": -1.0,
            "high": 1.0,
            "chance": 0.0,
            "source": "Paper, section 4, equation 2",
            **more,
        }
    )


def cards() -> dict[str, Card]:
    """Four benchmarks; nothing was published on the last."""
    rated = {
        "srcc": _info("Spearman ρ"),
        "plcc": _info("Pearson r"),
        "accuracy": _info("Pairwise accuracy", low=0.0, chance=0.5),
    }
    graded = {"rank": _info("Rank order"), "delta": _info("Error gap", low=None, high=None)}
    loss = {"rmse": _info("RMSE", low=0.0, high=None, chance=None, higher_is_better=False)}
    return {
        "ratings": _card("ratings", "Ratings", rated, Selector(measure="srcc", variant="paper"),
                         simulated=True, skills=SKILLS),
        "graphs": _card("graphs", "Error graphs", graded,
                        Selector(measure="rank", variant="paper", split="all")),
        "tiny": _card("tiny", "Tiny", loss, Selector(measure="rmse")),
        "unused": _card("unused", "Unused", rated, Selector(measure="srcc", variant="paper")),
    }  # fmt: skip


def _card(
    name: str,
    title: str,
    measures: dict[str, MeasureInfo],
    headline: Selector,
    *,
    simulated: bool = False,
    skills: dict[str, str] | None = None,
) -> Card:
    return Card(
        name=name,
        title=title,
        family=name,
        summary=f"{title}: how far a metric agrees with people on generated images.",
        description="What the data are.\n\nWhat the board is based on.",
        revision="2024-12-01",
        simulated=simulated,
        cluster="prompt pair",
        headline=headline,
        measures=measures,
        skills=skills or {},
        licence="CC BY 4.0",
        links={"Paper": "https://example.org/paper"},
    )


def submission(place: int, name: str, benchmarks: tuple[str, ...]) -> Submission:
    """A submission; every fourth is a scores file."""
    digest = hashlib.sha256(f"{place}".encode()).hexdigest()
    return Submission(
        submission_id=f"made-up-{place:04d}",
        kind=Kind.SCORES if place % 4 == 1 else Kind.METRIC,
        name=name,
        version="" if place % 4 == 1 else f"1.{place}",
        metrics=(name,),
        benchmarks=benchmarks,
        submitter=NASTY if name == NASTY else "A group",
        description="A made-up metric.",
        trained_on=("ratings",) if place == 3 else (),
        account=ACCOUNTS.get(place, ""),
        same_content_as=("made-up-0000",) if place == COPIED else (),
        content_sha256=digest,
        archive=f"uploads/{digest}.zip",
        received_at=NOW - timedelta(hours=place + 1),
    )


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
    rows: list[Row] = []
    draws: list[np.ndarray] = []
    shares: list[np.ndarray] = []
    for selector, skill, clusters in _slices(benchmark):
        centre = 0.72 - 0.045 * place + (0.1 * rng.standard_normal() if skill else 0.0)
        sample = centre + 0.05 * rng.standard_normal(_DRAWS)
        undefined = own.name == "always-half" and selector.measure in {"srcc", "plcc", "rank"}
        low, high = (float(q) for q in np.quantile(sample, [0.025, 0.975]))
        rows.append(
            Row(
                benchmark=benchmark,
                revision="2024-12-01",
                metric=own.name,
                measure=selector.measure,
                value=float("nan") if undefined else float(centre),
                split=selector.split,
                skill=skill,
                variant=selector.variant,
                facet=selector.facet,
                n_items=clusters * 4,
                n_clusters=clusters,
                n_missing=12 if place == 5 else 0,
                ci_low=float("nan") if undefined else low,
                ci_high=float("nan") if undefined else high,
                note="All scores are equal, so no correlation is defined." if undefined else "",
            )
        )
        draws.append(np.full(_DRAWS, np.nan) if undefined else sample)
        noise = 0.05 * rng.standard_normal(_BLOCKS) / np.sqrt(_BLOCKS)
        shares.append(
            np.full(_BLOCKS, np.nan if undefined else centre / _BLOCKS) + noise - noise.mean()
        )
    scored = own.kind is Kind.METRIC
    layers = (
        ("own network namespace", "read-only root") if place else ("not isolated: bundled code",)
    )
    flagged = own.submission_id == f"made-up-{SAME:04d}"
    if own.submission_id == f"made-up-{UNSANDBOXED:04d}":
        layers = ("unsandboxed",)
    return Published(
        own,
        RunResult(
            submission_id=own.submission_id,
            benchmark=benchmark,
            revision="2024-12-01",
            rows=tuple(row.to_json() for row in rows),
            resampling_seed=7,
            n_resamples=_DRAWS,
            isolation=layers if scored else ("scores as submitted, not re-run",),
            versions={},
            cost=Cost(pairs=480, images=480, seconds=12.5 + place, pairs_per_s=480 / (12.5 + place))
            if scored
            else None,
            trust=trust(benchmark) if scored else None,
            same_scores_as=("made-up-0002",) if flagged and benchmark == "ratings" else (),
            judged_at=NOW - timedelta(minutes=37 * place + 5),
        ),
        Draws(np.stack(draws), np.stack(shares)),
    )


def trust(benchmark: str, *, fails: bool = False) -> TrustReport:
    """A report of a scorer whose scores depend, or do not depend, on the order."""

    def check(name: CheckName) -> Check:
        moved = 0.21 if fails and name == "order" else 0.004 if name == "one_pixel" else 0.0
        return Check(
            name=name,
            n_pairs=24,
            mean=moved / 3,
            largest=moved,
            passed=None if name == "one_pixel" else moved == 0.0,
            example=Example(pair_id=NASTY, before=0.4, after=0.4 + moved) if moved else None,
        )

    return TrustReport(
        benchmark=benchmark,
        n_pairs=24,
        n_images=12,
        spread=0.13,
        limit=0.01,
        environment={"device": "cpu", "precision": "float32", "module": NASTY},
        checks=tuple(check(name) for name in TITLES),
    )


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
    if run.result.benchmark != "graphs":
        return {}
    # Graphs are hard or easy for all metrics; what is left is each metric's own.
    hard = np.random.default_rng(5).standard_normal(_GRAPHS)
    own = np.random.default_rng([5, int(run.submission.submission_id[-4:])])
    parts = [
        pd.DataFrame(
            {
                "row": place,
                "cluster": [f"graph-{k:03d}" for k in range(_GRAPHS)],
                "value": np.clip(
                    row["value"] + 0.2 * hard + 0.15 * own.standard_normal(_GRAPHS), -1, 1
                ),
            }
        )
        for place, row in enumerate(run.result.rows)
        if row["measure"] == "rank" and row["value"] is not None
    ]
    if not parts:
        return {}
    return {f"{stem}.clusters.parquet": pd.concat(parts).to_parquet(index=False)}


def snapshot(entries: int = len(METRICS)) -> Snapshot:
    """A snapshot with that many metrics."""
    return build_snapshot(runs_of(entries), cards(), NOW)


def fill(store: Store, entries: int = len(METRICS)) -> Store:
    """Publish the snapshot and put a queue with every kind of outcome into the store."""
    runs = runs_of(entries)
    files = {PATH: snapshot_bytes(build_snapshot(runs, cards(), NOW))}
    for run in runs:
        assert run.draws is not None
        stem = f"results/{run.submission.submission_id}/{run.result.benchmark}"
        files |= draws_files(stem, run.draws.resamples, run.draws.contributions)
        files |= clusters_file(stem, run)
    store.public.commit(files, parent=store.public.head(), message="publish")
    ledger = Ledger(store)
    paths = (
        [State.RECEIVED, State.QUEUED],
        [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING],
        [State.RECEIVED, State.REJECTED],
        [State.RECEIVED, State.QUEUED, State.CLAIMED, State.FAILED],
        [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING,
         State.PUBLISHED],
    )  # fmt: skip
    for place, path in enumerate(paths):
        own = submission(
            place, METRICS[10] if place == 3 else METRICS[place], ("ratings", "graphs")
        )
        ledger.receive(own, b"upload", [_event(state, k) for k, state in enumerate(path)])
    store.live.beat(
        Pulse(worker="worker-1", at=NOW, isolation_ok=True,
              isolation="own namespaces, read-only root", submission_id="made-up-0001",
              stage="scoring Ratings", done=310, total=960, rate_per_s=38.4, eta_s=17.0)
    )  # fmt: skip
    return store


def _event(state: State, place: int) -> Event:
    bad = state in {State.REJECTED, State.FAILED}
    return Event(
        at=NOW - timedelta(minutes=40 - place),
        state=state,
        by="worker-1",
        reason=f"The scorer stopped on pair 12: {NASTY}" if bad else "",
        hint="Catch the error in `score` and return None for that pair." if bad else "",
        code="scorer_failed" if bad else "",
        fault="submitter" if bad else "",
        lease_until=NOW + timedelta(hours=1) if state is State.CLAIMED else None,
        log=f"Traceback (most recent call last):\n  {NASTY}" if bad else "",
    )


class StubDesk:
    """A desk that takes everything, or refuses code; with a store, it queues what it takes."""

    def __init__(self, gate: Gate | None = None, store: Store | None = None) -> None:
        self._gate = gate or Gate(ok=True)
        self._store = store
        self.taken: list[str] = []
        self.sent: list[dict[str, object]] = []
        self.found = Examination((), name="mine", version="1.0", benchmarks=("ratings",), files=2)
        self.notes: tuple[str, ...] = ()
        self.recognised = False

    def gate(self) -> Gate:
        return self._gate

    def score_benchmarks(self) -> tuple[str, ...]:
        return ("ratings", "graphs")

    def examine_metric(self, path: Path) -> Examination:
        self.taken.append(f"examined {path.name}")
        return self.found

    def submit_metric(
        self,
        path: Path,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        receipt: bytes | None = None,
        source: str = "",
    ) -> Accepted:
        self.sent.append(
            {"account": account, "submitter": submitter, "receipt": receipt, "source": source}
        )
        return self._take(path, submission(0, path.stem, ("ratings",)), account, private)

    def examine_repository(self, source: str) -> Examination:
        self.taken.append(f"examined {source}")
        return self.found

    def submit_repository(
        self,
        source: str,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        receipt: bytes | None = None,
    ) -> Accepted:
        taken_from = f"hub:{source.partition('@')[0]}@{'0' * 40}"
        self.sent.append(
            {"account": account, "submitter": submitter, "receipt": receipt, "source": taken_from}
        )
        name = source.partition("@")[0].rpartition("/")[2]
        own = submission(0, name, ("ratings",)).model_copy(update={"source": taken_from})
        return self._take(Path(source), own, account, private)

    def submit_scores(
        self,
        path: Path,
        *,
        benchmark: str,
        account: Account,
        submitter: str = "",
        name: str = "",
        version: str = "",
        description: str = "",
        lower_is_better: tuple[str, ...] = (),
        private: bool = False,
    ) -> Accepted:
        if path.suffix != ".csv":
            raise SubmitterError("bad_file", f"{path.name} is not a table.", "Send a CSV file.")
        self.sent.append({"account": account, "submitter": submitter, "version": version})
        return self._take(path, submission(1, name or path.stem, (benchmark,)), account, private)

    def prompt_set_names(self) -> tuple[str, ...]:
        return ("demo_prompts",)

    def examine_generations(
        self, where: Path | str, said: SaidOfImages | None = None, tell: Tell | None = None
    ) -> Examination:
        self.taken.append(f"examined {where if isinstance(where, str) else where.name}")
        self.sent.append({"said": said})
        if tell is not None:
            tell(Advance(1, 2, 1.0))
        return self.found

    def submit_generations(
        self,
        where: Path | str,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        source: str = "",
        said: SaidOfImages | None = None,
        tell: Tell | None = None,
    ) -> Accepted:
        path = Path(where)
        self.sent.append({"account": account, "submitter": submitter, "said": said})
        own = submission(0, path.stem, ("demo_prompts",))
        own = own.model_copy(update={"kind": Kind.GENERATIONS})
        return self._take(path, own, account, private)

    def _take(self, path: Path, own: Submission, account: Account, private: bool) -> Accepted:
        self.taken.append(path.name)
        number = len(self.taken)
        own = own.model_copy(
            update={"account": account.key, "private": private, "submitter": account.name}
        )
        if self._store is None:
            return Accepted(_status(own), self.recognised, self.notes)
        ident = f"private-{number:010x}" if private else f"sent-{number:06d}"
        own = own.model_copy(update={"submission_id": ident, "received_at": NOW})
        events = [_by(State.RECEIVED, account.key), _by(State.QUEUED, account.key)]
        return Accepted(Ledger(self._store).receive(own, b"upload", events), False, self.notes)


def _by(state: State, by: str) -> Event:
    return Event(at=NOW, state=state, by=by)


def _status(own: Submission) -> Status:
    return Status(submission=own, state=State.QUEUED, since=NOW, by="desk")


def main() -> None:
    """Serve the made-up store."""
    from leaderboard.api.routes import routes
    from leaderboard.api.source import Source
    from leaderboard.governance.signing_in import SignIn, Way
    from leaderboard.pages.reading import Reader
    from leaderboard.pages.site import create_app, launch_options
    from tests.leaderboard.pages.mine.own_submissions import give
    from tests.leaderboard.pages.queue.running_submission import run_one

    port = int(sys.argv[1]) if len(sys.argv) > 1 else 7861
    local = SignIn(Way.LOCAL, local="ada")
    ada = Account(origin=Origin.LOCAL, name="ada")
    store = run_one(give(fill(memory_store()), ada), ada)
    shown = cards()
    source = Source(Reader(store, shown, clock=lambda: NOW), store, shown, lambda: NOW)
    app = create_app(
        store, StubDesk(store=store), shown, clock=lambda: NOW, sign_in=local, source=source
    )
    options = launch_options(local, routes(source), source)
    app.launch(server_name="127.0.0.1", server_port=port, **options)


if __name__ == "__main__":
    main()
