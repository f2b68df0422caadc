"""The first page: the best of the index, who leads each board, and what the ledger says of late."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from benchmarks.released.bundle import FOLDER
from benchmarks.schema import Benchmark
from benchmarks.scores import read_scores
from benchmarks.tifa160.protocol import Tifa160
from benchmarks.ts2.protocol import Ts2
from leaderboard.ledger.chronicle import FIRST, Line
from leaderboard.ledger.history import ANNOUNCED
from leaderboard.models.reading import ModelReader
from leaderboard.pages.overview.boards_first import MOST_BOARDS, board_section, boards_first
from leaderboard.pages.overview.index_first import MOST_ROWS, index_first
from leaderboard.pages.overview.lately import lately
from leaderboard.pages.overview.leaders import tier_badge
from leaderboard.pages.overview.models_led import NO_MODELS, model_cards
from leaderboard.pages.overview.overview_page import opening, overview
from leaderboard.pages.overview.standings import leader_cards, matrix
from leaderboard.publication.boards import Board
from leaderboard.publication.index import index_base
from leaderboard.publication.model_entries import PATH, ModelTrack, track_bytes
from leaderboard.publication.reader import BoardIndex, View, view_of
from leaderboard.publication.snapshot import Published, build_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.orders import Orders
from leaderboard.records import RunResult
from leaderboard.store.memory import memory_store
from leaderboard.text import number
from leaderboard.views.standings import standings
from tests.leaderboard.models.made_up_models import World, prompt_set, prompts_of, trusting
from tests.leaderboard.pages import synthetic
from tests.leaderboard.pages.index.index_fixture import cards as index_cards
from tests.leaderboard.pages.index.index_fixture import index_view_of
from tests.leaderboard.pages.parsed import Node, harmless, named, read
from tests.leaderboard.pages.synthetic import NASTY, NOW, cards, keep, submission

REAL_RUN, SIMULATED_RUN = {"a": ("graphs",)}, {"b": ("demo",)}
VQA = "vqa/vqa"


@pytest.fixture(scope="module")
def indexed() -> View:
    return index_view_of()


@pytest.fixture(scope="module")
def boards() -> View:
    return synthetic.view()


@pytest.fixture(scope="module")
def empty() -> View:
    return view_of(None, cards(), Orders(memory_store()))


def cell(tier: int | None = None, rank: int | None = 1, **more: Any) -> Cell:
    given = {
        "entry_id": "e", "measure": "srcc", "value": 0.5, "n_items": 9, "n_clusters": 9,
        "n_missing": 0, "note": "", "rank": rank, "rank_low": rank, "rank_high": rank, "tier": tier,
        **dict.fromkeys(("variant", "split", "facet", "skill", "ci_low", "ci_high")), **more,
    }  # fmt: skip
    return Cell.model_validate(given)


# Which boards are compared: those of real data with each other, simulated ones apart.


@pytest.mark.parametrize(
    ("metrics", "simulated", "found"),
    [({**REAL_RUN, **SIMULATED_RUN}, False, "a"), ({**REAL_RUN, **SIMULATED_RUN}, True, "b"),
     (REAL_RUN, False, "a"), (SIMULATED_RUN, False, "b"), (SIMULATED_RUN, True, "b")],
)  # fmt: skip
def test_a_group_is_of_one_kind_and_the_real_one_where_both_have_results(
    metrics: dict[str, tuple[str, ...]], simulated: bool, found: str
) -> None:
    whole = index_view_of(metrics)
    group = whole.group(simulated=simulated)
    assert {board.card.simulated for board in group.boards.values()} == {found == "b"}
    assert {entry.metric for entry in group.entries.values()} == {found}
    # The same object for the same view, so that what is made of it is kept.
    assert group is whole.group(simulated=simulated) and whole.group() is whole.group().group()
    assert whole.has_both is (len(metrics) == 2)


def test_the_page_is_built_with_simulated_boards_apart_and_without_any(
    indexed: View, empty: View
) -> None:
    nothing = view_of(None, index_cards(), Orders(memory_store())).group()
    assert nothing.boards and not any(one.card.simulated for one in nothing.boards.values())
    html = overview(indexed, NOW)
    above, _, below = html.partition('id="try-it-yourself"')
    assert "All metrics" in above and "only simulated" not in above and "Demo ·" not in above
    assert "Demo ·" in below and "Contrast pairs" not in below
    harmless(html, index_first(index_base(indexed)), opening(indexed))
    assert overview(empty, NOW) and index_first(index_base(empty)) == ""
    assert "./skills" not in opening(empty) and lately(empty, (), (), NOW) == ""


# The best of the index.


def test_the_best_of_the_index_are_those_of_the_index_page(indexed: View) -> None:
    base = index_base(indexed)
    weights = {name: board.weight for name, board in base.boards.items()}
    ranked = [one.standing for one in base.standings(weights) if one.standing.rank is not None]
    page = read(index_first(base))
    rows = page.one("table").all("tbody tr")
    assert len(rows) == min(MOST_ROWS, len(ranked)) > 3
    for row, one in zip(rows, ranked, strict=False):
        rank = one.rank
        assert rank is not None
        assert [row.one("b").text, row.one(".as-range").text] == [
            number(one.index.value),
            str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}",
        ]
        assert number(one.index.low) in row and number(one.index.high) in row
    assert f"{len(ranked)} metrics" in page and "./index" in page.links()
    assert page.names[0] == "VQAScore"
    assert not {"HPSv2", "TIFA", "only simulated"} & set(page.names)  # They lack a benchmark.


# All boards together.


def test_metrics_with_every_benchmark_of_the_index_come_first_the_best_on_top(
    indexed: View,
) -> None:
    rows = standings(indexed.group())
    has = [len(row.index.boards) if row.index else 0 for row in rows]
    assert has == sorted(has, reverse=True)
    assert "only simulated" not in {row.entry.metric for row in rows}
    values = [row.index.value for row in rows if row.index and len(row.index.boards) == 5]
    assert values == sorted(values, reverse=True) and len(values) > 3
    # A board outside the index moves nobody: VQAScore alone is on one.
    assert rows[0].entry.metric == "VQAScore" and "unscaled" in rows[0].cells
    page = read(matrix(indexed.group()))
    named(page)
    first, lacking = page.row("VQAScore"), page.row("HPSv2")
    assert first.one(".as-m-index").text.startswith("0.") and "4 of 5" in lacking
    assert "./index" in page.links() and first.texts(".as-m-tier") == ["T1"] * 7


def test_without_an_index_metrics_on_the_same_boards_stand_together_best_mean_place_first(
    boards: View,
) -> None:
    none = read(matrix(index_view_of({"a": ("unscaled",), "b": ("unscaled",)})))
    assert not none.all(".as-m-index") and "mean place" in none
    every = standings(boards)
    rows = [row for row in every if row.relative is not None]
    assert every[: len(rows)] == rows and len(rows) < len(every)  # The unranked come last.
    groups = [frozenset(row.cells) for row in rows]
    assert sum(one != other for one, other in pairwise(groups)) == len(set(groups)) - 1
    for one, other in pairwise(rows):
        if one.cells.keys() == other.cells.keys():
            assert (one.relative or 0) <= (other.relative or 0)
    assert rows[0].entry.metric == "CLIPScore"
    lacking = read(matrix(boards)).row("VQAScore")
    assert lacking.told.count("not run") == 2 * lacking.told.count("1 of 3") == 2


# Who leads.


def leaders(view: View) -> list[Node]:
    return read(leader_cards(view)).all("article")


def test_cards_flag_simulated_ratings_and_name_no_leader_without_an_order(
    boards: View, indexed: View
) -> None:
    harmless(leader_cards(boards))
    first, _, few = leaders(boards)
    assert "simulated" in first and "first as well" in first
    assert "(5; at least 8" in few and not few.links("./metric")
    assert "./boards?benchmark=unused" in read(leader_cards(boards)).links()
    with_tests = ["tier 1" in card for card in leaders(indexed.group())]
    assert with_tests == [True] * 6 + [False]


@pytest.mark.parametrize(
    ("lows", "template", "leader"),
    [((-0.1, -0.1), "", None), ((0.0, 0.0), "", None), ((None, None), "", None),
     ((-0.1, 0.1, 0.05), "", 1), ((0.1,), "plain", None), ((0.1,), "", 0)],
)  # fmt: skip
def test_the_first_that_beats_chance_and_is_no_template_leads(
    boards: View, lows: tuple[float | None, ...], template: str, leader: int | None
) -> None:
    names = list(boards.entries)[: len(lows)]
    cells = tuple(
        cell(rank=place, entry_id=name, measure="rank", variant="paper", split="all",
             value=0.3 - 0.01 * place, ci_low=low, ci_high=None if low is None else 0.5)
        for place, (name, low) in enumerate(zip(names, lows, strict=True), 1)
    )  # fmt: skip
    index = BoardIndex(Board(card=boards.boards["graphs"].card, cells=cells))
    entries = {n: boards.entries[n].model_copy(update={"template": template}) for n in names}
    html = leader_cards(View(entries, {"graphs": index}, boards.orders))
    led = [] if leader is None else [f"./metric?id={names[leader]}"]
    assert read(html).links("./metric") == led
    assert ("above chance" in html) is (leader is None) and ("template" in html) is bool(template)


@pytest.mark.parametrize(
    ("tiers", "said"),
    [((1, 2, 2), "tier 1 alone"), ((1, 1, 2), "1 other"), ((1, 1, 1, None), "2 others"),
     ((1,), ""), ((None, None), ""), ((1, None), "")],
)  # fmt: skip
def test_a_card_says_whether_the_leader_is_significantly_ahead(
    tiers: tuple[int | None, ...], said: str
) -> None:
    badge = read(tier_badge([cell(tier) for tier in tiers])).text
    assert badge.endswith(said) and bool(badge) is bool(said)


def world(n: int, *trusted: str, **means: float) -> World:
    made = World(prompt_set(prompts_of(n)), trusting(*trusted))
    for name, mean in means.items():
        noise = np.random.default_rng(int(100 * mean)).standard_normal((2, n))
        made.add(name, {VQA: mean + 0.2 * noise})
    return made


def test_a_card_of_models_names_who_leads_and_who_judges() -> None:
    made = world(200, VQA, low=0.3, high=0.7)
    (card,) = read(model_cards(made.view, made.reader).real).all("article")
    for words in ("high", "rank 1 of 2", "judged by vqa"):
        assert words in card
    assert ">low" not in model_cards(made.view, made.reader).real
    (name,) = (name for name in made.entries if name.startswith("high"))
    entry = made.entries[name].model_copy(update={"model": "<script>alert(1)"})
    keep(made.store, {PATH: track_bytes(ModelTrack({**made.entries, name: entry}))})
    html = model_cards(made.view, made.reader).real
    harmless(html)
    assert "<script>alert(1)" in read(html)


def test_where_models_cannot_be_ordered_the_card_says_why_and_names_no_leader() -> None:
    made = world(200, low=0.3, high=0.7)
    assert "No metric" in (html := model_cards(made.view, made.reader).real) and ">high" not in html
    none = world(20, VQA)
    assert model_cards(none.view, none.reader) == NO_MODELS == model_cards(none.view, None)

    def absent(_: object) -> list[SetPrompt]:
        raise SubmitterError("data_missing", "The prompts are not here.")

    one = world(200, VQA, high=0.7)
    known = PromptSet(one.known.card, absent)  # Where the prompts are not here they are counted.
    html = model_cards(one.view, ModelReader(one.store, {known.name: known}, None)).real
    assert "1 model" in html and ">high" not in html


# Boards shown whole.


def released(benchmark: Benchmark, path: Path) -> View:
    """The board of a released scores file."""
    answers = benchmark.answers(None)
    table = read_scores(path, benchmark, answers)
    measured = benchmark.evaluate(table, answers, n_resamples=60)
    own = submission(0, "released", (benchmark.name,), metrics=table.metrics)
    result = RunResult(
        submission_id=own.submission_id, benchmark=benchmark.name,
        revision=benchmark.card.revision, rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=1, n_resamples=60, isolation=("scores as submitted",), versions={},
        judged_at=NOW,
    )  # fmt: skip
    run = Published(own, result, Draws(measured.resamples, measured.contributions))
    snapshot = build_snapshot([run], {benchmark.name: benchmark.card}, NOW)
    return view_of(snapshot, {benchmark.name: benchmark.card}, Orders(memory_store()))


def test_the_boards_with_the_most_metrics_come_first(indexed: View) -> None:
    view = indexed.group()
    names = boards_first(view)
    ranked = {
        name: sum(cell.rank is not None for cell in board.cells(board.card.headline, None))
        for name, board in view.boards.items()
    }
    most = sorted(ranked.values(), reverse=True)[:MOST_BOARDS]
    assert [ranked[name] for name in names] == most
    assert boards_first(index_view_of({"a": ("graphs",)})) == ()  # One metric is no ranking.


@pytest.mark.parametrize(
    ("benchmark", "metrics", "beside"),
    [(Ts2(), 19, ["Synth", "Nat", "Real"]), (Tifa160(), 10, ["mean of 2 TIFA ratings"])],
    ids=["ts2", "tifa160"],
)
def test_a_released_board_is_shown_in_tiers_with_its_other_splits_or_golds(
    benchmark: Benchmark, metrics: int, beside: list[str]
) -> None:
    view = released(benchmark, FOLDER / benchmark.name / "scores.parquet")
    page = read(board_section(view, benchmark.name))
    assert [head.rpartition(" ")[0] for head in page.texts("th.as-c-more")] == beside
    assert len(page.one("table").names) == metrics
    tiers = [label for label in page.groups if label.startswith("Tier")]
    assert tiers == [f"Tier {k}" for k in range(1, len(tiers) + 1)] and len(tiers) > 1
    assert f"./boards?benchmark={benchmark.name}" in page.links()


# What the ledger says.


def line(n: int, action: str, subject: str, reason: str = "", minutes: int = 0) -> Line:
    return Line(
        n=n, at=NOW - timedelta(minutes=minutes), by="olga", action=action, subject=subject,
        reason=reason, record=FIRST, before=FIRST,
    )  # fmt: skip


def said(view: View, *lines: Line, earlier: tuple[str, ...] = (), most: int = 6) -> list[Node]:
    html = lately(view, lines, earlier, NOW, most)
    harmless(html)
    return read(html).all("li")


def test_what_was_taken_off_is_said_with_its_reason_the_newest_first(empty: View) -> None:
    hidden, withdrawn = said(
        empty, line(1, "withdrawn", "grey-0123456789", minutes=5),
        line(2, "hidden", "green-0123456789", f"It is a copy. {NASTY}{'x' * 400}", minutes=1),
    )  # fmt: skip
    assert "green-0123456789 hidden" in hidden and "a copy. <img" in hidden
    assert "x" * 200 not in hidden
    assert "./ledger?subject=green-0123456789" in hidden.links()
    assert "grey-0123456789 withdrawn" in withdrawn
    lines = [line(n, "hidden", f"green-{n:010}", minutes=20 - n) for n in range(1, 11)]
    found = [one.one("code").text for one in said(empty, *lines, most=4)]
    assert found == [f"green-{n:010}" for n in (10, 9, 8, 7)]


def test_a_benchmark_that_was_evaluated_again_leads_to_what_moved_where_that_is_kept(
    boards: View,
) -> None:
    again = line(1, ANNOUNCED, "ratings", "A wrong image was replaced.")
    for earlier, leads in (((), False), (("ratings",), True), (("graphs",), False)):
        first = said(boards, again, earlier=earlier)[0]
        assert "Ratings re-evaluated" in first and "wrong image" in first
        assert bool(first.links("./moved?benchmark=ratings")) is leads
    others = [
        line(1, "queued", "grey-0123456789"), line(2, "ban", "hub:eve", "Sent miners."),
        line(3, "policy", "policy"), line(4, ANNOUNCED, "gone", "It is gone."),
    ]  # fmt: skip
    both = [[one.text for one in said(boards, *of, most=50)] for of in (others, [])]
    assert both[0] == both[1]  # These are left to the ledger.


def test_every_skill_with_results_is_a_link_to_its_metrics(boards: View) -> None:
    links = set(read(overview(boards.group(simulated=True), NOW)).links("./skills?skill="))
    wanted = {f"./skills?skill={name}" for name in ("counting", "spatial", "text", "colour")}
    assert wanted <= links
