"""A made-up store whose benchmarks name the same skills differently, for tests of their page.

Run it to look at the pages: `python -m tests.leaderboard.pages.skills.skills_fixture [PORT]`.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.rows import Row
from benchmarks.schema import Card, MeasureInfo, Scale, Selector
from leaderboard.pages.reading import View, view_of
from leaderboard.publication.snapshot import PATH, Published, build_snapshot, snapshot_bytes
from leaderboard.ranking.draws import Draws, draws_files
from leaderboard.ranking.orders import Orders
from leaderboard.records import Cost, Kind, RunResult, Submission
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import trust

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NASTY = "<img src=x onerror=alert(1)>'\"${alert(2)}{{7*7}}\u202egnp.exe"
DRAWS, BLOCKS = 200, 40
SKILLS: dict[str, dict[str, str]] = {
    "croc": {"counting": "Counting", "spacial_relation": "Spatial Relation", "negation": "Negation"},
    "gecko": {"count": "Count", "spatial": "Spatial", "lang_complexity:complexity_negation":
              "Language: complexity, negation", "named_entity": "Named entity"},
    "evalmuse": {"counting": "Counting", "spatial": "Spatial", "a./h.": "Animal or human"},
    "closed": {"counting": "Counting"},
    "demo": {"counting": "Counting"},
}  # fmt: skip
"""Family of each benchmark, which is its name, to its skills."""
SPEED = {"VQAScore": 210.0, "CLIPScore": 2.1, "BLIP2-ITM": 14.0, "PickScore": 2.4, "SigLIP-2": 3.2,
         "ImageReward": 9.0, NASTY: 30.0, "always-half": 0.4}  # fmt: skip
"""Metric to the seconds it takes for a thousand pairs; others are scores files."""
WORTH = {"VQAScore": 0.80, "BLIP2-ITM": 0.66, "SigLIP-2": 0.62, "ImageReward": 0.52, "CLIPScore":
         0.45, "PickScore": 0.40, NASTY: 0.30, "Closed-API": 0.83, "always-half": 0.02}  # fmt: skip
FLOPS = {"VQAScore": 5.1e12, "CLIPScore": 1.6e10, "BLIP2-ITM": 9.86e11, "SigLIP-2": 2.4e10,
         "Closed-API": 8e14}  # fmt: skip
"""Metric to what its author declares for a pair; others say nothing."""
AGAINST = ("gecko", "BLIP2-ITM", 1.2)
"""On this benchmark a metric is worth something quite different."""
LACKS = ("PickScore", "gecko")
FEW = ("croc", "negation")
"""Rests on too few clusters to order anybody by it."""


def cards() -> dict[str, Card]:
    """Five benchmarks; one withholds its answers, one has simulated ratings."""
    return {family: _card(family) for family in SKILLS}


def _card(family: str) -> Card:
    headline = Selector(measure="srcc", variant="assay" if family == "gecko" else "paper")
    measures = {
        "srcc": MeasureInfo(
            title="Spearman ρ", meaning="How far scores and ratings agree.", low=-1.0, high=1.0,
            chance=0.0, source="Paper, Table 3",
        ),
        "element_accuracy": MeasureInfo(
            title="Element accuracy", meaning="Elements told right.", low=0.0, high=1.0
        ),
    }  # fmt: skip
    scale = Scale(chance=0.0, ceiling=0.8, ceiling_is="Agreement of people.", source="Table 3")
    return Card(
        name=family,
        title=family.capitalize(),
        family="croc" if family in {"closed", "demo"} else family,
        summary="How far a metric agrees with people.",
        description="What the data are.",
        revision="2024-12-01",
        simulated=family == "demo",
        answers_public=family != "closed",
        cluster="prompt",
        headline=headline,
        headline_scale=scale,
        measures=measures,
        skills=SKILLS[family],
        links={"data": f"https://huggingface.co/datasets/someone/{family}"},
        citation=(
            "Doe, Roe: On Measuring: A Study. 2024. arXiv:2401.00001" if family == "croc" else ""
        ),
    )


def runs_of() -> list[Published]:
    """A run of every metric on every benchmark, but for one."""
    rng = np.random.default_rng(3)
    found = []
    for place, name in enumerate(WORTH):
        boards = tuple(board for board in SKILLS if (name, board) != LACKS)
        own = submission(place, name, boards)
        found += [_run(own, board, rng) for board in boards]
    return found


def submission(place: int, name: str, boards: tuple[str, ...]) -> Submission:
    """One that made an entry of that name."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    scored = name in SPEED
    return Submission(
        submission_id=f"made-up-{place:04d}",
        kind=Kind.METRIC if scored else Kind.SCORES,
        name=name,
        version=f"1.{place}" if scored else "",
        metrics=(name,),
        benchmarks=boards,
        submitter=NASTY if name == NASTY else "A group",
        account="hub:ada" if place % 2 else "",
        description=f"A made-up metric. {NASTY}" if name == NASTY else "A made-up metric.",
        authors=("Ada", NASTY) if name == NASTY else (),
        licence="Apache-2.0" if scored else "",
        links={"code": "https://example.org/code", "bad": "javascript:alert(1)"} if scored else {},
        trained_on=("croc",) if name == "ImageReward" else (),
        flops_per_pair={name: FLOPS[name]} if name in FLOPS else {},
        content_sha256=digest,
        archive=f"uploads/{digest}.zip",
        received_at=NOW - timedelta(hours=place + 1),
    )


def _run(own: Submission, board: str, rng: np.random.Generator) -> Published:
    card = cards()[board]
    slices: list[tuple[str, str | None, int]] = [("srcc", None, 120)]
    for key in card.skills:
        measure = "element_accuracy" if (board, key) == ("evalmuse", "spatial") else "srcc"
        slices.append((measure, key, 6 if (board, key) == FEW else 40))
    rows, draws, shares = [], [], []
    worth = AGAINST[2] if (board, own.name) == AGAINST[:2] else WORTH[own.name]
    for measure, skill, clusters in slices:
        centre = 0.8 * worth + 0.03 * rng.standard_normal()
        sample = centre + 0.05 * rng.standard_normal(DRAWS)
        low, high = (float(end) for end in np.quantile(sample, [0.025, 0.975]))
        rows.append(
            Row(
                benchmark=board, revision="2024-12-01", metric=own.name, measure=measure,
                value=float(centre), skill=skill, variant=card.headline.variant,
                n_items=4 * clusters, n_clusters=clusters,
                n_missing=1 if own.name == "CLIPScore" and board == "croc" else 0,
                ci_low=low, ci_high=high, plan="0123abcd", versions="assay 1; numpy 2",
            )
        )  # fmt: skip
        noise = 0.05 * rng.standard_normal(BLOCKS) / np.sqrt(BLOCKS)
        draws.append(sample)
        shares.append(centre / BLOCKS + noise - noise.mean())
    seconds = SPEED.get(own.name)
    cost = None
    if seconds is not None:
        cost = Cost(
            pairs=2000, images=800, seconds=2 * seconds, pairs_per_s=1000 / seconds, calls=63,
            peak_memory_bytes=int((0.4 + seconds / 40) * 2**30),
        )  # fmt: skip
    return Published(
        own,
        RunResult(
            submission_id=own.submission_id, benchmark=board, revision="2024-12-01",
            rows=tuple(row.to_json() for row in rows), resampling_seed=7, n_resamples=DRAWS,
            isolation=("own network namespace",) if seconds else ("scores as submitted",),
            versions={"numpy": "2.4.6"}, cost=cost, trust=trust(board) if seconds else None,
            judged_at=NOW - timedelta(minutes=5),
        ),
        Draws(np.stack(draws), np.stack(shares)),
    )  # fmt: skip


def fill(store: Store) -> Store:
    """Publish everything."""
    runs = runs_of()
    files = {PATH: snapshot_bytes(build_snapshot(runs, cards(), NOW))}
    kept: dict[str, bytes] = {}
    for run in runs:
        assert run.draws is not None
        stem = f"results/{run.submission.submission_id}/{run.result.benchmark}"
        of_run = draws_files(stem, run.draws.resamples, run.draws.contributions)
        (files if run.result.benchmark != "closed" else kept).update(of_run)
    store.public.commit(files, parent=store.public.head(), message="publish")
    store.private.commit(kept, parent=store.private.head(), message="publish")
    return store


def skills_view_of() -> View:
    """What the pages see of it."""
    store = fill(memory_store())
    return view_of(build_snapshot(runs_of(), cards(), NOW), cards(), Orders(store))


def main() -> None:
    """Serve the made-up store."""
    from leaderboard.pages.site import create_app, launch_options
    from tests.leaderboard.pages.synthetic import StubDesk

    port = int(sys.argv[1]) if len(sys.argv) > 1 else 7863
    app = create_app(fill(memory_store()), StubDesk(), cards(), clock=lambda: NOW)
    app.launch(server_name="127.0.0.1", server_port=port, **launch_options())


if __name__ == "__main__":
    main()
