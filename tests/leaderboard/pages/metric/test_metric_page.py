"""The page of one metric: what it shows, what it copies, and what it says of those that are gone."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from benchmarks.schema import Card
from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.metric.citation import benchmark_bibtex, latex
from leaderboard.pages.metric.hub_results import dataset_of, hub_results
from leaderboard.pages.metric.metric_page import shown_page
from leaderboard.pages.metric.query import Gone, MetricQuery, Shown, Unknown, resolve
from leaderboard.pages.metric.results import on_boards, profile
from leaderboard.pages.page import Context
from leaderboard.pages.reading import Reader
from leaderboard.pages.shown.copying import root_of
from leaderboard.pages.shown.downloads import metric_data
from leaderboard.publication.snapshot import PATH, build_snapshot, snapshot_bytes
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.memory import memory_store
from tests.leaderboard.api.asking import asking
from tests.leaderboard.pages import synthetic
from tests.leaderboard.pages.skills.skills_fixture import (
    NASTY,
    NOW,
    SKILLS,
    WORTH,
    cards,
    fill,
    submission,
)
from tests.leaderboard.pages.synthetic import StubDesk

GOLDEN = Path(__file__).with_name("golden")
SIGLIP = "made-up-0002/SigLIP-2"
PRIVATE = "private-0123456789"
NASTY_PLACE = list(WORTH).index(NASTY)


@pytest.fixture(scope="module")
def context() -> Context:
    store = fill(memory_store())
    ledger = Ledger(store)
    for place, name in ((2, "SigLIP-2"), (NASTY_PLACE, NASTY)):
        own = submission(place, name, tuple(SKILLS))
        ledger.receive(own, b"upload", _events(State.PUBLISHED))
    gone = submission(40, "Withdrawn-1", ("croc",))
    ledger.receive(gone, b"upload", _events(State.PUBLISHED, State.WITHDRAWN))
    hidden = submission(41, "Rude name", ("croc",))
    ledger.receive(hidden, b"upload", _events(State.PUBLISHED, State.HIDDEN))
    secret = submission(42, "Secret-name", ("croc",)).model_copy(
        update={"private": True, "submission_id": PRIVATE}
    )
    ledger.receive(secret, b"upload", _events(State.QUEUED)[:2])
    return Context(Reader(store, cards()), store.live, StubDesk(), cards(), lambda: NOW, store)


def _events(*last: State) -> list[Event]:
    path = (State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED,
            State.JUDGING, *last)  # fmt: skip
    return [
        Event(
            at=NOW + timedelta(seconds=place),
            state=state,
            by="ada",
            reason="Because of a mistake." if state in {State.WITHDRAWN, State.HIDDEN} else "",
        )
        for place, state in enumerate(path)
    ]


def page_of(context: Context, entry_id: str = "", search: str = "", root: str = "") -> str:
    return shown_page(context, MetricQuery(entry_id, search), root)


def found(context: Context, entry_id: str) -> Shown | Gone | Unknown:
    return resolve(MetricQuery(entry_id), context.reader.view(), context.reader.statuses())


def shown(context: Context, entry_id: str = SIGLIP) -> Shown:
    one = found(context, entry_id)
    assert isinstance(one, Shown)
    return one


# Results --------------------------------------------------------------------------------------


def test_every_published_row_is_on_the_page(context: Context) -> None:
    view = context.reader.view()
    boards = on_boards(shown(context), view)
    assert [one.card.name for one in boards] == list(SKILLS)
    for one in boards:
        assert len(one.cells) == 1 + len(SKILLS[one.card.name])
        assert {cell.entry_id for cell in one.cells} == {SIGLIP}
        assert one.headline is not None and one.headline in one.cells
        direct = [
            cell
            for selector in one.board.every_selector()
            for skill in (None, *one.board.skills())
            for cell in one.board.cells(selector, skill)
            if cell.entry_id == SIGLIP
        ]
        assert set(direct) == set(one.cells)


def test_the_page_links_its_results_as_data_in_every_format(context: Context) -> None:
    nasty = next(entry for entry in context.reader.view().entries if entry.endswith(NASTY))
    for entry_id in (SIGLIP, nasty):
        links = re.findall(
            r'<a class="as-button" download href="([^"]+)"', page_of(context, entry_id)
        )
        assert [unescape(one) for one in links] == [
            f"./v1/entries/{quote(entry_id)}?elsewhere=1&format={kind}"
            for kind in ("csv", "parquet", "json")
        ]
    assert "download href" not in page_of(context, "made-up-0040/Withdrawn-1")


def test_the_data_are_all_rows_of_the_page_those_of_other_submissions_too() -> None:
    store, rng = memory_store(), np.random.default_rng(3)
    runs = [
        synthetic.published(synthetic.submission(place, "Twice", (name,)), name, 2, rng)
        for place, name in ((9, "ratings"), (13, "graphs"))
    ]
    built = build_snapshot(runs, synthetic.cards(), NOW)
    store.public.commit({PATH: snapshot_bytes(built)}, parent=store.public.head(), message="made")
    api = asking(store, synthetic.cards())
    view = api.source.reader.view()
    one = resolve(MetricQuery("made-up-0009/Twice"), view, ())
    assert isinstance(one, Shown)
    address = metric_data(one.entry.entry_id).removeprefix(".")
    names = ("measure", "variant", "split", "facet", "skill", "value", "ci_low", "entry_id")
    assert [(row["benchmark"], *(row[n] for n in names)) for row in api.table(address)["rows"]] == [
        (board.card.name, *(getattr(cell, n) for n in names))
        for board in on_boards(one, view)
        for cell in board.cells
    ]
    whose = [row["entry_id"] for row in api.table(address)["rows"]]
    assert dict.fromkeys(whose) == dict.fromkeys(["made-up-0009/Twice", "made-up-0013/Twice"])
    own = api.table(address.partition("?")[0])["rows"]
    assert {(row["entry_id"], row["benchmark"], row["kind"]) for row in own} == {
        ("made-up-0009/Twice", "ratings", "scores")
    }
    assert api.refused(address.replace("=1", "=2"), 400) == "bad_query"


def test_the_profile_is_rescaled_beside_median_and_best(context: Context) -> None:
    view = context.reader.view()
    rows = profile(on_boards(shown(context), view), view)
    row = next(r for r in rows if (r.skill, r.on.name) == ("Counting", "gecko"))
    board = view.boards["gecko"]
    values = sorted(cell.value / 0.8 for cell in board.cells(board.selectors("count")[0], "count"))  # type: ignore[operator]
    assert row.best == pytest.approx(values[-1])
    assert row.median == pytest.approx((values[3] + values[4]) / 2)
    assert row.cell.value is not None
    assert row.own.value == pytest.approx(row.cell.value / 0.8)


def test_skills_of_one_name_stand_together_in_the_profile(context: Context) -> None:
    view = context.reader.view()
    titles = [row.skill for row in profile(on_boards(shown(context), view), view)]
    assert titles[:5] == ["Counting"] * 5
    assert titles == sorted(titles, key=titles.index)


def test_the_page_shows_trust_cost_records_and_provenance(context: Context) -> None:
    html = page_of(context, SIGLIP)
    for part in ("passed every check", "Peak memory", "Apache-2.0", "https://example.org/code",
                 "0123abcd", "assay 1; numpy 2", "Pairs/s", "own network namespace"):  # fmt: skip
        assert part in html, part
    assert "javascript:" not in html


def test_nothing_submitted_is_markup(context: Context) -> None:
    html = page_of(context, f"made-up-{NASTY_PLACE:04d}/{NASTY}")
    assert "&lt;img src=x" in html
    assert "<img" not in html
    assert "{{7*7}}" not in html and "${alert(2)}" not in html
    assert "\u202e" not in html


# Gone and unknown -----------------------------------------------------------------------------


def test_a_withdrawn_metric_says_what_became_of_it(context: Context) -> None:
    html = page_of(context, "made-up-0040/Withdrawn-1")
    assert "Withdrawn-1</bdi> is not on the boards" in html
    assert "withdrawn" in html and "Because of a mistake." in html


def test_a_hidden_metric_is_not_named(context: Context) -> None:
    html = page_of(context, "made-up-0041/Rude name")
    assert "This metric is not on the boards" in html
    assert "hidden" in html
    assert "Rude name" not in html


def test_a_private_submission_is_as_if_it_did_not_exist(context: Context) -> None:
    assert PRIVATE in [s.submission.submission_id for s in context.reader.statuses()]
    for metric in ("", "/Secret-name", "/"):
        assert isinstance(found(context, PRIVATE + metric), Unknown)
    there = page_of(context, f"{PRIVATE}/Secret-name")
    nowhere = page_of(context, f"{PRIVATE[:-1]}8/Secret-name")
    assert there.replace(PRIVATE, "") == nowhere.replace(f"{PRIVATE[:-1]}8", "")


def test_an_unknown_id_offers_a_search_and_names_that_fit(context: Context) -> None:
    html = page_of(context, "no-such-thing/SigLIP")
    assert "There is no such metric" in html
    assert 'role="search"' in html
    assert "./metric?id=made-up-0002/SigLIP-2" in html
    assert "No metric fits these words." in page_of(context, search="zzzz")
    assert "&lt;b&gt;" in page_of(context, "<b>") and "<b>x" not in page_of(context, "<b>x")


def test_a_submission_with_one_entry_is_found_without_its_metric(context: Context) -> None:
    assert shown(context, "made-up-0002").entry.entry_id == SIGLIP


# What is copied -------------------------------------------------------------------------------


def test_the_metadata_for_the_hub_is_the_golden_file(context: Context) -> None:
    one = shown(context)
    boards = on_boards(one, context.reader.view())
    cells = [(b.card, b.headline) for b in boards if b.headline]
    ready = hub_results(one.entry, cells, "https://example.org/metric?id=x")
    assert ready.content == (GOLDEN / "eval_results.yaml").read_text(encoding="utf-8")
    assert ready.left_out == {"Demo": "its ratings are simulated"}


def test_the_hub_client_reads_the_metadata_back(context: Context) -> None:
    html_name = f"made-up-{NASTY_PLACE:04d}/{NASTY}"
    one = shown(context, html_name)
    boards = on_boards(one, context.reader.view())
    ready = hub_results(one.entry, [(b.card, b.headline) for b in boards if b.headline])
    entries = parse_eval_result_entries(yaml.safe_load(ready.content))
    assert [entry.dataset_id for entry in entries] == [
        "someone/croc", "someone/gecko", "someone/evalmuse", "someone/closed"
    ]  # fmt: skip
    assert all(isinstance(entry.value, float) for entry in entries)
    assert "\u202e" not in ready.content


def test_a_benchmark_without_a_dataset_is_left_out_with_the_reason() -> None:
    assert dataset_of(cards()["croc"].model_copy(update={"links": {}})) is None


def test_citations_of_the_real_cards_are_taken_apart() -> None:
    from benchmarks.registry import load_registry

    card: Card = load_registry()["croc_hum"].card
    bibtex = benchmark_bibtex(card)
    assert "author = {Leiter and Asano and Keuper and Eger}" in bibtex
    assert "title = {{CROC: Evaluating and Training T2I Metrics" in bibtex
    assert "eprint = {2505.11314}" in bibtex
    for name, benchmark in load_registry().items():
        text = benchmark_bibtex(benchmark.card)
        assert text.count("{") == text.count("}"), name
        assert benchmark.card.simulated or "author = {" in text or "note = {" in text


def test_bibtex_takes_a_name_for_nothing_but_text() -> None:
    assert latex("a}b{\\x%\u202e") == r"a\textbraceright{}b\textbraceleft{}\textbackslash{}x\%"


def test_no_name_ends_a_field_of_bibtex() -> None:
    # BibTeX counts braces, those with a backslash before them too.
    made = latex("x}, url = {https://example.org/elsewhere}, note = {y")
    depth = 0
    for char in made:
        depth += {"{": 1, "}": -1}.get(char, 0)
        assert depth >= 0
    assert depth == 0


def test_the_address_is_taken_from_plain_headers_only() -> None:
    assert root_of({"host": "board.example.org:80"}) == "http://board.example.org:80/"
    assert root_of({"host": "x", "x-forwarded-proto": "https"}) == "https://x/"
    assert root_of({"host": "x/<b>"}) == ""
    assert root_of({"host": "x", "x-forwarded-proto": "javascript"}) == ""
