"""The page of one metric: its rows, its data, what it copies, and what it says of who is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from pydantic import ValidationError

from benchmarks.registry import load_registry
from benchmarks.released import verification
from benchmarks.released.verification import Verification, Weights
from benchmarks.statistics.content_effect import ChangeVerdict
from benchmarks.statistics.prompt_effect import Verdict
from leaderboard.ledger.ledger import Ledger
from leaderboard.models.board_types import Judge
from leaderboard.models.choosing import NoGain, OtherGain, Reason
from leaderboard.publication.entries import MOVED, Entry, entries_of
from leaderboard.publication.results import public_result
from leaderboard.ranking import cells
from leaderboard.records import Event, FindingExample, Findings, OrderFigures, Submission
from leaderboard.service.address import root_of
from leaderboard.states import State
from leaderboard.text import MISSING
from leaderboard.trust import CHANGES, TITLES, AreaFigures, ContentControl, PromptControl
from leaderboard.views.boards import FLOPS as FLOPS_COLUMN
from leaderboard.views.boards import columns_of, values_of
from leaderboard.views.citation import CitedAt, benchmark_bibtex, latex
from leaderboard.views.controls import (
    CHANGE_WORDS,
    change_rows,
    content_sentence,
    prompt_figures,
    prompt_sentence,
)
from leaderboard.views.hub_results import HubResults, dataset_of, metric_hub_results
from leaderboard.views.metric import (
    MetricOnBoards,
    MetricQuery,
    Unknown,
    metric_page,
    on_boards,
    profile,
    resolve,
)
from leaderboard.views.skills import gigaflops_text
from leaderboard.web.best_of_n import best_of_n_html
from leaderboard.web.page import Context
from leaderboard.web.pages.metric_page import below_html, metric_html, people_html
from tests.kit import boards as synthetic
from tests.kit.html import Node, harmless, named, read
from tests.kit.store import memory_store
from tests.leaderboard.api.asking import asking, asking_of
from tests.leaderboard.views import example_fixture, model_track
from tests.leaderboard.views.test_best_of_n import models_gain
from tests.leaderboard.web import skills_fixture

GOLDEN = Path(__file__).with_name("golden")
SIGLIP, WITHDRAWN = "made-up-0002/SigLIP-2", "made-up-0040/Withdrawn-1"
PRIVATE = "private-0123456789"
STRANGER = (
    f"made-up-{list(skills_fixture.WORTH).index(skills_fixture.NASTY):04d}/{skills_fixture.NASTY}"
)


def _events(*path: State) -> list[Event]:
    off = {State.WITHDRAWN, State.HIDDEN}
    whole = (State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED,
             State.JUDGING, *path)  # fmt: skip
    return [
        synthetic.event(state, at=skills_fixture.NOW + timedelta(seconds=k), by="ada",
              reason="Because of a mistake." if state in off else "")
        for k, state in enumerate(whole)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def context() -> Context:
    store = skills_fixture.fill(memory_store())
    ledger = Ledger(store)
    for place, name, path in (
        (2, "SigLIP-2", [State.PUBLISHED]), (list(skills_fixture.WORTH).index(skills_fixture.NASTY), skills_fixture.NASTY, [State.PUBLISHED]),
        (40, "Withdrawn-1", [State.PUBLISHED, State.WITHDRAWN]),
        (41, "Rude name", [State.PUBLISHED, State.HIDDEN]),
    ):  # fmt: skip
        boards = ("croc",) if place >= 40 else tuple(skills_fixture.SKILLS)
        ledger.receive(skills_fixture.submission(place, name, boards), b"upload", _events(*path))
    secret = skills_fixture.submission(42, "Secret-name", ("croc",))
    secret = secret.model_copy(update={"private": True, "submission_id": PRIVATE})
    ledger.receive(secret, b"upload", _events()[:2])
    return synthetic.site_of(store, cards_=skills_fixture.cards())


def section(html: Callable[..., str], context: Context, entry_id: str) -> str:
    """A section below the page of a metric."""
    found = shown(context, entry_id)
    return html(context, found, on_boards(found, context.reader.view()), "")


def html_of(context: Context, entry_id: str = SIGLIP, search: str = "") -> str:
    html = metric_html(context, MetricQuery(entry_id, search))
    harmless(html)
    return html


def page_of(context: Context, entry_id: str = SIGLIP, search: str = "") -> Node:
    return read(html_of(context, entry_id, search))


def shown(context: Context, entry_id: str = SIGLIP) -> MetricOnBoards:
    found = resolve(MetricQuery(entry_id), context.reader.view(), context.reader.statuses())
    assert isinstance(found, MetricOnBoards)
    return found


# Results and data.


def test_every_published_row_is_on_the_page(context: Context) -> None:
    view = context.reader.view()
    boards = on_boards(shown(context, "made-up-0002"), view)  # Its one entry is found.
    assert [one.card.name for one in boards] == list(skills_fixture.SKILLS)
    for one in boards:
        direct = {
            cell
            for selector in one.board.every_selector()
            for skill in (None, *one.board.skills())
            for cell in one.board.cells(selector, skill)
            if cell.entry_id == SIGLIP
        }
        assert set(one.cells) == direct and len(direct) == 1 + len(
            skills_fixture.SKILLS[one.card.name]
        )
        assert one.headline in one.cells


def test_the_page_shows_trust_cost_records_and_provenance(context: Context) -> None:
    page = page_of(context)
    named(page)
    for words in ("every check", "Peak memory", "Apache-2.0", "0123abcd", "assay 1; numpy 2",
                  "Pairs/s", "own network namespace"):  # fmt: skip
        assert words in page, words
    assert "https://example.org/code" in page.links()
    assert "<img src=x" in page_of(context, STRANGER).text


def test_the_data_are_all_rows_of_the_page_those_of_other_submissions_too(context: Context) -> None:
    for entry_id in (SIGLIP, STRANGER):
        assert page_of(context, entry_id).links("./v1/entries/", "a[download]") == [
            f"./v1/entries/{quote(entry_id)}?elsewhere=1&format={kind}"
            for kind in ("csv", "parquet", "json", "markdown", "latex")
        ]
    assert not page_of(context, WITHDRAWN).all("a[download]")
    rng = np.random.default_rng(3)
    runs = [
        synthetic.published(synthetic.submission(place, "Twice", (name,)), name, 2, rng)
        for place, name in ((9, "ratings"), (13, "graphs"))
    ]
    api = asking(synthetic.publish(memory_store(), runs, synthetic.cards()), synthetic.cards())
    view = api.source.reader.view()
    one = resolve(MetricQuery("made-up-0009/Twice"), view, ())
    assert isinstance(one, MetricOnBoards)
    address = metric_page(one, view)["data"].removeprefix(".")
    names = ("measure", "variant", "split", "facet", "skill", "value", "ci_low", "entry_id")
    assert [(row["benchmark"], *(row[n] for n in names)) for row in api.rows(address)] == [
        (board.card.name, *(getattr(cell, n) for n in names))
        for board in on_boards(one, view)
        for cell in board.cells
    ]
    assert {row["entry_id"] for row in api.rows(address)} == {
        "made-up-0009/Twice",
        "made-up-0013/Twice",
    }
    own = {(row["entry_id"], row["benchmark"]) for row in api.rows(address.partition("?")[0])}
    assert own == {("made-up-0009/Twice", "ratings")}
    assert api.refused(address.replace("=1", "=2"), 400) == "bad_query"


def test_the_profile_is_rescaled_beside_median_and_best(context: Context) -> None:
    view = context.reader.view()
    rows = profile(on_boards(shown(context), view), view)
    titles = [row.skill for row in rows]  # Those of one name stand together.
    assert titles[:5] == ["Counting"] * 5 and titles == sorted(titles, key=titles.index)
    row = next(r for r in rows if (r.skill, r.on.name) == ("Counting", "gecko"))
    board = view.boards["gecko"]
    cells = board.cells(board.selectors("count")[0], "count")
    values = sorted((cell.value or 0.0) / 0.8 for cell in cells)
    assert row.best == pytest.approx(values[-1])
    assert row.median == pytest.approx((values[3] + values[4]) / 2)
    assert row.own.value == pytest.approx((row.cell.value or 0.0) / 0.8)


# FLOPs that authors declare: never as measured.


def test_an_entry_has_the_flops_its_submission_declares_of_its_metric(context: Context) -> None:
    view = context.reader.view()
    assert {
        e.metric: e.flops_per_pair for e in view.entries.values() if e.flops_per_pair
    } == skills_fixture.FLOPS
    run = skills_fixture.runs_of()[0]
    two = run.submission.model_copy(update={"metrics": ("a", "b"), "flops_per_pair": {"b": 7e9}})
    found = entries_of(two, [run.result]).values()
    assert [entry.flops_per_pair for entry in found] == [None, 7e9]
    kept = next(iter(view.entries.values())).model_dump(mode="json")
    del kept["flops_per_pair"]  # As it was written before there were any.
    assert Entry.model_validate(kept).flops_per_pair is None
    for flops in (0.0, -1.0, float("inf"), float("nan")):
        for model, own in ((Submission, {**run.submission.model_dump(), "flops_per_pair": {"m": flops}}),
                           (Entry, {**kept, "flops_per_pair": flops})):  # fmt: skip
            with pytest.raises(ValidationError, match="flops_per_pair"):
                model.model_validate(own)
    board = view.boards["croc"]
    (column,) = columns_of(board, [FLOPS_COLUMN])
    costs = values_of(board, column, view.entries).costs
    assert "declared" in column.title and "not measured" in column.meaning
    assert {view.entries[name].metric: value for name, value in costs.items()} == pytest.approx(
        {name: flops / 1e9 for name, flops in skills_fixture.FLOPS.items()}
    )


@pytest.mark.parametrize(
    ("metric", "said"),
    [("CLIPScore", "16.0 GFLOPs, declared"), ("PickScore", "not declared"),
     ("Closed-API", "800,000 GFLOPs")],  # It was not run, but its authors say what it took.
)  # fmt: skip
def test_the_page_says_declared_or_not_declared(context: Context, metric: str, said: str) -> None:
    entries = context.reader.view().entries
    (entry_id,) = (e for e, one in entries.items() if one.metric == metric)
    assert said in page_of(context, entry_id)
    assert [gigaflops_text(value).split()[0] for value in (1e-9, 0.5)] == ["1.0e-09", "0.50"]


def ran(row: str, digest: str, commit: str) -> Findings:
    weights = f"openai/clip@{commit}"
    made_with = {"row": f"{row}@{digest}", "code": "f" * 64, "checkpoint_model": weights}
    return Findings(pairs=480, scored=480, environment=made_with)


VERIFIED = Verification(
    scorer="clipscore-ts2", row_sha256="a" * 64, code_sha256="f" * 64, benchmark="ts2", revision="1", table="ts2/scores",
    column="clipscore", on=date(2026, 11, 1), device="cpu", dtype="float32", pairs=2840, unscored=0,
    plcc=0.999, largest=0.02, tolerance=0.015, share=0.998, wanted_share=0.95, agrees=True,
    weights={"model": Weights(id="openai/clip", commit="b" * 40)}, packages={"torch": "2"},
)  # fmt: skip


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("row", "digest", "commit", "said"),
    [("clipscore-ts2", "a", "b", "Verified against its authors' scores: 99.8 % of 2,840 pairs"),
     ("clipscore-ts2", "c", "b", "Verified for an earlier version"),
     ("clipscore-ts2", "a", "c", "Verified for an earlier version"),
     ("alignscore", "a", "b", "Not yet verified against its authors' scores (alignscore of ts2)"),
     ("pickscore", "a", "b", "No released per-image scores known")],
)  # fmt: skip
def test_a_built_in_metric_is_shown_with_whether_it_agrees_with_its_authors_scores(
    monkeypatch: pytest.MonkeyPatch, row: str, digest: str, commit: str, said: str
) -> None:
    monkeypatch.setattr(verification, "verifications", lambda: {"clipscore-ts2": VERIFIED})
    assert said in controlled(findings=ran(row, digest * 64, commit * 40))


# Controls and cost.

CONTROLLED = "CLIPScore"
FINDINGS = Findings(
    pairs=480, scored=477, unscored={"image_unreadable": 3},
    counts={"image_unreadable": 1, "text_truncated": 2},
    examples=tuple(
        FindingExample(code="image_unreadable", item="image", item_id=f"{n}-{synthetic.NASTY}",
                       message="The image cannot be read.", scored=False)
        for n in range(9)
    ),
)  # fmt: skip


def controlled(**update: object) -> Node:
    """The page of a metric whose run had other results."""
    runs = [
        replace(run, result=run.result.model_copy(update=update))
        if run.submission.name == CONTROLLED else run
        for run in synthetic.runs_of()
    ]  # fmt: skip
    site = synthetic.site_of(
        synthetic.publish(memory_store(), runs, synthetic.cards()), cards_=synthetic.cards()
    )
    entries = site.reader.view().entries
    return page_of(site, next(name for name, one in entries.items() if one.metric == CONTROLLED))


def controls(turns: bool = False, **update: object) -> Node:
    """The controls of a metric whose report of trust is another."""
    report = synthetic.trust("ratings", turns=turns).model_copy(update=update)
    return controlled(trust=report).one("#controls")


def test_a_failed_check_is_open_with_its_pair_and_a_report_of_no_pair_is_no_passed_check() -> None:
    page = controlled(trust=synthetic.trust("ratings", fails=True), findings=FINDINGS)
    part = page.one("#controls")
    assert "not ranked" in part and part.all("details[open]")
    (row,) = (r for r in part.all("tr") if "reverse order" in r)
    assert all(words in row for words in ("differs", "0.400 → 0.610", "162% of sd"))
    assert "3 of 480" in part and "1 × image unreadable, 2 × text truncated" in part
    # Five examples of nine, on each of its benchmarks.
    assert part.text.count("The image cannot be read.") == 5 * part.text.count("3 of 480")
    assert "26.0" in page.one("#cost").texts("td")  # 12.5 s for 480 pairs
    part = controls(n_pairs=0, n_images=0)
    assert "nothing could" in part and "every check" not in part and not part.all("details[open]")


@pytest.mark.parametrize("cleared", ["", f"A floor. {synthetic.NASTY}"])
def test_a_suspected_lookup_is_open_with_its_check_until_it_is_cleared_and_then_says_why(
    cleared: str,
) -> None:
    part = controls(turns=True, cleared=cleared)
    tags = part.texts(".as-tag")
    assert any("not ranked" in one and "lookup" in one for one in tags) is not bool(cleared)
    assert ("cleared" in tags) is ("A floor." in part) is bool(cleared)
    assert ("passed every other check" in tags) is bool(cleared)
    assert bool(part.all("details[open]")) is not bool(cleared)
    assert tags.count("differs") == 1 and tags.count("same") == len(TITLES) - 1


@pytest.mark.slow
def test_what_was_cleared_and_turns_on_no_grey_level_now_is_not_said_to() -> None:
    tags = controls(cleared="A floor.").texts(".as-tag")
    assert "passed every check" in tags and "cleared" not in tags


@pytest.mark.parametrize("verdict", ["blind", "undecided", "uses_the_prompt"])
def test_controls_say_whether_the_score_is_about_the_prompt_with_their_figures(
    verdict: Verdict,
) -> None:
    control = synthetic.prompt_control(verdict)
    part = controls(prompt=control)
    assert prompt_sentence(control) in part
    figures = [value for _, value in prompt_figures(control)]
    assert len(figures) == 6 and all(one in part.texts("dd") for one in figures)
    assert any("24 of 576 scores missing, 3 of 24" in one for one in figures)
    assert ("blind to the prompt" in part.texts(".as-tag")) is (verdict == "blind")


def test_a_metric_that_compares_says_how_far_the_order_decides() -> None:
    orders = OrderFigures(comparisons=120, alike=0.92, alike_low=0.876, first=0.52, one_order=3)
    compares = FINDINGS.model_copy(update={"orders": orders})
    part = controlled(findings=compares).one("#controls")
    assert any(r.texts("td") == ["120", "92%", "88%", "52%", "3"] for r in part.all("tbody tr"))
    none = orders.model_copy(update={"comparisons": 0, "alike": None, "alike_low": None})
    part = controlled(findings=FINDINGS.model_copy(update={"orders": none})).one("#controls")
    assert any(row.texts("td") == ["0", "–", "–", "52%", "3"] for row in part.all("tbody tr"))


@pytest.mark.parametrize("verdict", ["moved", "undecided", "steady"])
def test_controls_say_which_changes_that_leave_the_content_move_the_score(
    verdict: ChangeVerdict,
) -> None:
    control = synthetic.content_control(verdict)
    part = controls(content=control)
    assert content_sentence(control) in part
    assert (CHANGES["saturation"] in content_sentence(control)) is (verdict == "moved")
    rows = change_rows(control)
    assert [one.done for one in rows] == list(CHANGES.values())
    shown = [row for row in part.all("tbody tr") if row.texts("td")[-1] in CHANGES.values()]
    assert [row.texts("td")[2] for row in shown] == [CHANGE_WORDS[one.verdict] for one in rows]
    assert all("23 of 24" in row for row in shown)
    hollow = [len(row.all(".as-hollow")) for row in shown]
    assert sum(hollow) == len(CHANGES) - (verdict == "moved")
    assert (MOVED in part.texts(".as-tag")) is (verdict == "moved")


def test_changes_that_could_not_be_scored_say_so_and_have_no_figures() -> None:
    blank = {"verdict": "undecided", "value": None, "low": None, "high": None, "n_images": 0}
    control = synthetic.content_control("undecided")
    changes = tuple(one.model_copy(update=blank) for one in control.changes)
    none = control.model_copy(update={"why_not": "few", "changes": changes})
    part = controls(content=none)
    assert content_sentence(none).endswith("since few.") and content_sentence(none) in part
    assert {(one.effect, one.interval) for one in change_rows(none)} == {(MISSING, MISSING)}


def test_of_withheld_answers_the_verdicts_of_the_controls_are_published_and_no_figure() -> None:
    control = synthetic.prompt_control("blind")
    report = synthetic.trust("ratings").model_copy(
        update={"prompt": control, "content": synthetic.content_control("moved")}
    )
    result = synthetic.runs_of(1)[0].result.model_copy(update={"trust": report})
    withheld = public_result(result).trust
    assert withheld is not None and withheld.prompt == PromptControl(verdict="blind")
    assert withheld.prompt is not None and prompt_figures(withheld.prompt) == []
    assert withheld.content == ContentControl(verdict="moved")
    assert change_rows(withheld.content) == []
    assert content_sentence(withheld.content).endswith(".")


def test_a_control_without_figures_says_why_and_counts_what_was_asked() -> None:
    area = {"raw": None, "centred": None, "n_missing": 576}
    few = synthetic.prompt_control("undecided").model_copy(update={"why_not": "few", **area})
    assert prompt_sentence(few).endswith("since few.")
    assert [title for title, _ in prompt_figures(few)] == ["Scored"]
    known = few.model_copy(update={"centred": AreaFigures(value=0.5, low=0.4, high=0.6)})
    within = known.model_copy(
        update={"within": known.centred, "image_share": None, "empty_change": None}
    )
    figures = dict(prompt_figures(within))
    assert len(figures) == 7 and MISSING in figures.values()
    assert f"image alone {MISSING}" in figures["Variance explained"]


# The verdict, and scores against people.


def test_a_verdict_says_where_chance_is_beaten_only_before_correction(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    just_below = {}
    for one in on_boards(shown(context), context.reader.view()):
        assert one.headline is not None and one.headline.ci_low is not None
        just_below[one.card.name] = one.headline.ci_low - 1e-6
    monkeypatch.setattr(cells, "chance_of", lambda card, _: just_below[card.name])
    page = page_of(context)
    assert page.one("h1").text.count("corrected for all") == 2
    # As the table has no mark there, which is of one metric alone.
    assert "as-ns" not in page.all("td.as-v")[0]["class"]


def test_the_scatter_shows_every_prompt_with_a_score_and_leads_to_other_benchmarks() -> None:
    store = example_fixture.filled()
    site = synthetic.site_of(store)
    view = site.reader.view()
    entry_id = next(iter(view.entries))
    html = section(people_html, site, entry_id)
    harmless(html)
    assert read(html).all("svg circle")
    bare = synthetic.site_of(example_fixture.filled(with_cases=False))
    assert not read(section(people_html, bare, entry_id)).all("svg")
    assert html in below_html(site, MetricQuery(entry_id))
    assert below_html(site, MetricQuery("nobody")) == ""


# Gone and unknown.


def test_a_withdrawn_metric_says_what_became_of_it_and_a_hidden_one_is_not_named(
    context: Context,
) -> None:
    page = page_of(context, WITHDRAWN)
    assert all(words in page for words in ("Withdrawn-1", "withdrawn", "a mistake."))
    hidden = html_of(context, "made-up-0041/Rude name")
    assert "hidden" in read(hidden) and "Rude name" not in hidden


def test_a_private_submission_is_as_if_it_did_not_exist(context: Context) -> None:
    statuses = context.reader.statuses()
    assert PRIVATE in [s.submission.submission_id for s in statuses]
    for metric in ("", "/Secret-name", "/"):
        found = resolve(MetricQuery(PRIVATE + metric), context.reader.view(), statuses)
        assert isinstance(found, Unknown)
    there, nowhere = (html_of(context, f"{one}/Secret-name").replace(one, "")
                      for one in (PRIVATE, "private-0123456788"))  # fmt: skip
    assert there == nowhere


def test_an_unknown_id_offers_a_search_and_names_that_fit(context: Context) -> None:
    page = page_of(context, "no-such-thing/SigLIP")
    assert page.all("[role=search]") and f"./metric?id={SIGLIP}" in page.links()
    assert "No metric" in page_of(context, "", "zzzz")
    assert "<b>x" in page_of(context, "<b>x").text


# What is copied.


def for_the_hub(context: Context, entry_id: str, site: str = "") -> HubResults:
    one = shown(context, entry_id)
    boards = on_boards(one, context.reader.view())
    headlines = [(b.card, b.headline) for b in boards if b.headline]
    return metric_hub_results(one.entry, headlines, CitedAt(site=site))


def test_the_metadata_for_the_hub_is_the_golden_file(context: Context) -> None:
    ready = for_the_hub(context, SIGLIP, "https://example.org/")
    assert ready.content == (GOLDEN / "eval_results.yaml").read_text(encoding="utf-8")
    assert list(ready.left_out) == ["Demo"]
    assert ready.path == f".eval_results/assay-{SIGLIP.replace('/', '-')}.yaml"
    assert ready.path in html_of(context, SIGLIP)
    assert dataset_of(skills_fixture.cards()["croc"].model_copy(update={"links": {}})) is None


def test_the_hub_client_reads_the_metadata_back(context: Context) -> None:
    ready = for_the_hub(context, STRANGER)
    entries = parse_eval_result_entries(yaml.safe_load(ready.content))
    assert [entry.dataset_id for entry in entries] == [
        f"someone/{name}" for name in ("croc", "gecko", "evalmuse", "closed")
    ]
    assert all(isinstance(entry.value, float) for entry in entries)
    assert "\u202e" not in ready.content


def test_citations_are_taken_apart_and_no_name_ends_a_field() -> None:
    bibtex = benchmark_bibtex(load_registry()["croc_hum"].card)
    for field in ("author = {Leiter and Asano and Keuper and Eger}", "eprint = {2505.11314}",
                  "title = {{CROC: Evaluating and Training T2I Metrics"):  # fmt: skip
        assert field in bibtex
    for name, benchmark in load_registry().items():
        text = benchmark_bibtex(benchmark.card)
        assert text.count("{") == text.count("}"), name
        assert benchmark.card.simulated or "author = {" in text or "note = {" in text
    assert latex("a}b{\\x%\u202e") == r"a\textbraceright{}b\textbraceleft{}\textbackslash{}x\%"
    # BibTeX counts braces, those with a backslash before them too.
    made = latex("x}, url = {https://example.org/elsewhere}, note = {y")
    depths = np.cumsum([{"{": 1, "}": -1}.get(char, 0) for char in made])
    assert depths.min() >= 0 and depths[-1] == 0


@pytest.mark.parametrize(
    ("headers", "root"),
    [({"host": "board.example.org:80"}, "http://board.example.org:80/"),
     ({"host": "x", "x-forwarded-proto": "https"}, "https://x/"), ({"host": "x/<b>"}, ""),
     ({"host": "x", "x-forwarded-proto": "javascript"}, "")],
)  # fmt: skip
def test_the_address_is_taken_from_plain_headers_only(headers: dict[str, str], root: str) -> None:
    assert root_of(headers) == root


# Is it safe to optimise?


def test_the_page_says_what_choosing_by_a_metric_gains_with_a_curve_and_its_figures() -> None:
    store = example_fixture.filled()
    site = synthetic.site_of(store)
    entry_id = example_fixture.entry_id(example_fixture.NOISY)
    html = section(best_of_n_html, site, entry_id)
    page = read(html)
    harmless(html)
    assert "of a rating point" in html and "1 of 3 raters choosing" in html
    assert "1 rating outside the scale" in html
    assert len(page.all("svg path")) == 4  # two curves, two bands
    assert page.all("table tbody tr")
    (gain,) = asking(store).rows(f"/v1/best-of-n/{entry_id}?")[3:4]
    assert f"{gain['gain']:.2f}" in html
    bare = synthetic.site_of(example_fixture.filled(with_cases=False))
    assert not read(section(best_of_n_html, bare, entry_id)).all("svg")


def test_the_page_says_what_choosing_gains_under_every_other_qualified_metric() -> None:
    store = model_track.filled()
    html = section(best_of_n_html, model_track.context_of(store), model_track.JUDGES[1])
    page = read(html)
    harmless(html)
    rows = asking_of(model_track.source_of(store)).rows(f"/v1/best-of-n/{model_track.JUDGES[1]}")
    n_others = len({row["valued_by"] for row in rows if row["under"] == "other"})
    assert len(page.all("table tbody tr")) == 2 + n_others
    assert len(page.all("svg path")) == 4 + n_others  # theirs without bands


def test_the_page_tells_a_metric_that_scored_other_images_from_one_that_scores_all_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, found = model_track.filled(), models_gain()
    apart, alike = NoGain(Reason.NO_COMMON_SCORES, 40), NoGain(Reason.ALIKE, 0)

    def page_with(*curves: NoGain) -> Node:
        others = tuple(
            OtherGain(Judge(entry_id, entry_id, trusted=True), curve)
            for entry_id, curve in zip(model_track.JUDGES, curves, strict=False)
        )
        gain = replace(found, others=others, mean=None)
        monkeypatch.setattr("leaderboard.web.best_of_n.under_others", lambda *_: (gain,))
        site = model_track.context_of(store)
        return read(section(best_of_n_html, site, model_track.JUDGES[1]))

    own, *rows = page_with(apart, alike).all("table tbody tr")
    assert "alike" not in own.text
    assert ["alike" in row.text for row in rows] == [False, True]
    assert ["40 choices missing" in row.text for row in rows] == [True, False]
    assert not page_with().all("table")
