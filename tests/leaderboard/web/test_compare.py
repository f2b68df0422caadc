"""Compare place as pages: verdict, tables, examples, all pairs, skills, and what is not there."""

from __future__ import annotations

import re
from itertools import product
from typing import Any
from urllib.parse import parse_qsl

import pytest

from benchmarks.cases import cases_path, write_cases
from benchmarks.comparison import figures
from benchmarks.parquet import write_stored
from benchmarks.schema import ScoreTable
from leaderboard.api.tables.boards import RankingParameters
from leaderboard.publication.reader import View, view_of
from leaderboard.ranking.orders import Orders
from leaderboard.rendering import environment
from leaderboard.store.interface import Store
from leaderboard.views.addresses import model_pair_address, params_of, query_string
from leaderboard.views.compare import two_compared
from leaderboard.views.compare_query import VIEWS, CompareQuery
from leaderboard.views.comparison import Opponents, comparison_page, opponents
from leaderboard.views.examples import Came
from leaderboard.web.compare import ComparePlace
from tests.kit.boards import NASTY, cards, keep, site_of, snapshot
from tests.kit.html import Node, named, read
from tests.kit.store import memory_store
from tests.leaderboard.views import example_fixture as made_up

FIRST, SECOND, THIRD, FOURTH = map(made_up.entry_id, range(4))
LAST, STRANGER, CONSTANT = map(made_up.entry_id, (9, 10, 11))
FORMATS = ["csv", "parquet", "json", "markdown", "latex"]


@pytest.fixture(scope="module")
def store() -> Store:
    return made_up.filled()


@pytest.fixture(scope="module")
def view(store: Store) -> View:
    return view_of(snapshot(), cards(), Orders(store), "one")


@pytest.fixture(scope="module")
def place(view: View, store: Store) -> ComparePlace:
    return made_up.place_of(view, store)


def sides(*metrics: int | str, **more: str) -> dict[str, str]:
    named_ = (made_up.entry_id(one) if isinstance(one, int) else one for one in metrics)
    return {"benchmark": "ratings", **dict(zip("abcd", named_, strict=False)), **more}


# Every view.


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_has_one_heading_its_tab_and_controls_with_names(
    place: ComparePlace, name: str
) -> None:
    found = made_up.page(place, **sides(made_up.NOISY, made_up.RIGHT, view=name))
    named(found)
    assert len(found.all("h1")) == 1
    tabs = found.all("[role=tablist] a")
    assert len(tabs) == len(VIEWS)
    assert [VIEWS[i] for i, tab in enumerate(tabs) if tab["aria-selected"] == "true"] == [name]
    for control in found.all("select"):
        assert control["name"] and control["id"]
        assert any(control in label.nodes for label in found.all("label"))
    assert len({one["id"] for one in found.nodes if one["id"]}) == sum(
        bool(one["id"]) for one in found.nodes
    )


@pytest.mark.parametrize("name", VIEWS)
def test_the_address_of_what_is_shown_shows_it_again(place: ComparePlace, name: str) -> None:
    shown_ = place.answer(CompareQuery.from_params({"view": name, "benchmark": "ratings"}))
    again = place.answer(CompareQuery.from_params(dict(parse_qsl(shown_.query[1:]))))
    assert again == shown_ and shown_.title
    (models,) = made_up.page(place, of="models").links()  # These are compared under Models.
    assert models == model_pair_address("") and models in made_up.page(place, view=name).links()


def test_names_of_strangers_are_text_in_every_view(place: ComparePlace) -> None:
    for name in VIEWS:
        found = made_up.html(place, **sides(STRANGER, FIRST, made_up.entry_id(4), view=name))
        assert "<img src=x onerror=alert(1)>" in read(found).text
    case = made_up.page(
        place, **sides(made_up.TURNED, view="examples", case="p3")
    )  # A hostile prompt.
    assert "<img src=x" in case.text


# Differences.


def test_the_verdict_and_the_tables_are_the_comparisons_of_the_view(
    view: View, place: ComparePlace
) -> None:
    rows = comparison_page(
        opponents(CompareQuery.from_params(sides(FIRST, LAST)), view).choice, FIRST, LAST, view
    )
    value, low, high = figures(rows.chosen.difference, rows.chosen.ci_low, rows.chosen.ci_high)
    for a, b in ((FIRST, LAST), (LAST, FIRST)):
        said = made_up.page(place, **sides(a, b)).one("h1").text
        assert re.search(r"^CLIPScore is .* DSG by ", said)
        assert f"{value} [{low}, {high}]" in said and "45 pairs" in said
    found = made_up.page(place, **sides(FIRST, LAST))
    assert len(found.one("#measures table").rows) == len(rows.measures)
    assert len(found.one("#skills table").rows) == len(rows.skills)
    for row, mark in zip(rows.skills, found.one("#skills table").all("svg"), strict=True):
        assert bool(mark.all(".as-hollow")) is not row.told_apart


def test_nothing_is_drawn_or_counted_where_nothing_was_tested(store: Store) -> None:
    untested = view_of(snapshot(), cards(), Orders(memory_store()))
    found = made_up.page(made_up.place_of(untested, store), **sides(FIRST, SECOND))
    assert not found.all("line.as-w") and "not tested" in found.one("h1").text
    assert found.all("[role=note]")


def test_clusters_on_which_two_differ_lead_to_their_examples(place: ComparePlace) -> None:
    found = made_up.page(place, benchmark="graphs", a=FIRST, b=SECOND).one("#clusters")
    assert len(found.all(".as-ringed")) == len(found.one("table").rows) == 10
    (link,) = [to for to in found.links("./compare") if "case=" not in to]
    state = CompareQuery.from_params(dict(parse_qsl(query_string(link)[1:])))
    assert (state.view, state.show, state.a, state.b) == (
        "examples",
        "disagreements",
        FIRST,
        SECOND,
    )


@pytest.mark.parametrize("others", [(), (FOURTH,)])
def test_all_that_is_shown_is_linked_as_data_in_every_format(
    view: View, place: ComparePlace, others: tuple[str, ...]
) -> None:
    found = made_up.page(place, **sides(FIRST, STRANGER, *others, skill="counting"))
    links = found.links("./v1/compare", "a[download]")
    assert [one.rpartition("=")[2] for one in links] == FORMATS
    for one in links:
        query = one.partition("?")[2]
        assert CompareQuery.from_params(dict(parse_qsl(query))).a == FIRST
        assert opponents(CompareQuery.from_params(params_of(query)), view).further == others


def test_metrics_are_swapped_and_added_by_links(place: ComparePlace) -> None:
    found = made_up.page(place, **sides(FIRST, SECOND))
    swap, add = found.all(".as-ab-acts a")
    swapped = CompareQuery.from_params(dict(parse_qsl(query_string(swap["href"])[1:])))
    assert (swapped.a, swapped.b) == (SECOND, FIRST)
    added = made_up.page(place, **dict(parse_qsl(query_string(add["href"])[1:])))
    assert len(added.all(".as-sides li")) == 3 and len(added.one("#pairs table").rows) == 3
    names = [one["name"] for one in added.all("select")]
    assert names == ["benchmark", "a", "b", "c", "measure"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (sides(FIRST, THIRD, benchmark="graphs"), ["“VQAScore”", "Error graphs"]),
        (sides(FIRST, FIRST), ["twice"]),
        (sides(FIRST, CONSTANT), ["always-half", "scores are equal"]),
        ({"benchmark": "unused"}, ["No metric"]),
        (sides("nobody/nothing", SECOND), ["nobody/nothing"]),
        (sides(NASTY, SECOND), ["<img"]),
        (sides("x" * 5000, SECOND), ["xxx"]),
        (sides(FIRST, SECOND, measure="nonsense", skill="unheard-of"), ["nonsense", "unheard-of"]),
    ],
)
def test_what_cannot_be_compared_is_said(
    place: ComparePlace, params: dict[str, str], words: list[str]
) -> None:
    found = made_up.page(place, **params)
    assert all(one in found for one in words)
    assert len(found.text) < 5000


# All pairs.


def test_the_matrix_has_every_tested_pair_once_in_each_direction(
    view: View, place: ComparePlace
) -> None:
    found = made_up.page(place, **sides(FIRST, SECOND, view="pairs"))
    cells = [row.all("td") for row in found.one("#matrix table").all("tbody tr")]
    n = len(cells)
    assert n == 10
    turned = {"is-self": "is-self", "is-sig": "is-neg", "is-neg": "is-sig", "is-ns": "is-ns"}
    for i, j in product(range(n), repeat=2):
        assert cells[j][i]["class"] == turned[cells[i][j]["class"]]
        assert (cells[i][j]["class"] == "is-self") is (i == j)
    links = found.one("#matrix table").links("./compare")
    assert len(links) == n * (n - 1) // 2
    state = CompareQuery.from_params(dict(parse_qsl(query_string(links[0])[1:])))
    assert (state.view, state.a, state.b) == ("differences", FIRST, SECOND)
    data = found.links("./v1/boards/ratings/pairs")
    assert [one.rpartition("=")[2] for one in data] == FORMATS
    for link in data:  # Whatever the page asks for, the API answers.
        assert set(params_of(link)) <= set(RankingParameters.names()), link


@pytest.mark.parametrize("name", ["differences", "pairs"])
def test_units_of_several_words_have_their_plural(
    view: View, store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in ("leaderboard.web.compare", "leaderboard.ranking.comparing"):
        monkeypatch.setattr(f"{module}.flipped_unit", lambda *_: "block of prompts")
    found = made_up.page(made_up.place_of(view, store), **sides(FIRST, SECOND, THIRD, view=name))
    assert "blocks of prompts" in found.text and "promptss" not in found.text


def test_agreement_is_a_table_of_taus(place: ComparePlace) -> None:
    table = made_up.page(place, view="pairs", benchmark="graphs", a=FIRST, b=SECOND).one(
        "#agreement table"
    )
    n = len(table.rows)
    assert n == 8 and len(table.all("td.as-blank")) == n
    assert all(re.fullmatch(r"−?[01]\.\d\d", one.text) for one in table.all("td b"))


# Skills.


def test_values_by_skill_stand_beside_their_chart(place: ComparePlace) -> None:
    found = made_up.page(place, **sides(FIRST, SECOND, THIRD, view="skills"))
    table = found.one(".as-skill-values")
    assert [row["Skill"].text for row in table.rows] == list(cards()["ratings"].skills.values())
    assert re.match(r"[−\d.]+ \[", table.rows[0]["VQAScore"].text)
    chart = found.one("svg.as-chart")
    assert len(chart.all("path")) == 3 and len(chart.all("title")) == 3
    none = made_up.page(place, view="skills", benchmark="graphs")
    assert not none.all("svg.as-chart") and none.one(".as-empty").links(
        "./compare?benchmark=ratings"
    )


# Examples.


def cases(found: Node) -> list[str]:
    return [one["aria-label"].removeprefix("Case ") for one in found.all("[aria-label=Case p]")]


def examples(place: ComparePlace, *metrics: int | str, **more: str) -> Node:
    return made_up.page(place, **sides(*metrics, view="examples", **more))


def test_failures_are_listed_page_by_page_with_what_the_metric_prefers(place: ComparePlace) -> None:
    found = examples(place, made_up.TURNED)
    named(found)
    assert len(cases(found)) == len(found.all(".as-mistake")) == 12
    assert found.all("a[rel=next]") and not found.all("a[rel=prev]")
    last = examples(place, made_up.TURNED, show="all", page="3")
    assert last.all("a[rel=prev]") and not last.all("a[rel=next]")
    right = examples(place, made_up.RIGHT)
    assert not cases(right) and not right.one(".as-empty").links(), "it fails on no benchmark"
    assert "112 pairs" in examples(place, made_up.LACKS), "missing scores are in sight"
    assert "12 missing" in made_up.page(place, **sides(made_up.NOISY, made_up.LACKS)).one(
        ".as-sides"
    )


def test_a_link_to_failures_goes_to_the_first_benchmark_that_has_some() -> None:
    store, frame, own = made_up.filled(), made_up.rated(), "made-up-0000"
    revision, metric = cards()["graphs"].revision, FIRST.split("/")[1]
    scores = made_up.scores_of(frame, made_up.TURNED).rename(metric).to_frame()
    told = {"benchmark": "graphs", "revision": revision}
    keep(store, {
        cases_path("graphs", revision): write_cases(frame),
        f"results/{own}/graphs.scores.parquet": write_stored(
            ScoreTable(scores), submission_id=own, **told),
    })  # fmt: skip
    view = site_of(store, cards_=cards()).reader.view()
    ratings = view.boards["ratings"]
    ratings.card = ratings.card.model_copy(update={"simulated": False})
    place = made_up.place_of(view, store)
    asked = sides(FIRST, view="examples", show="failures", seek="1")
    shown_ = place.answer(CompareQuery.from_params(asked))
    assert dict(parse_qsl(shown_.query[1:]))["benchmark"] == "graphs"
    found = read(shown_.html)
    assert len(cases(found)) == 12 and found.all("[role=status]")
    stays = examples(place, made_up.RIGHT)  # Who chose the benchmark is told where there are some.
    (link,) = stays.one(".as-empty").links("./compare")
    assert "benchmark=graphs" in link and not cases(stays)


def test_two_metrics_are_shown_where_they_differ(place: ComparePlace) -> None:
    found = examples(place, made_up.NOISY, made_up.RIGHT)
    assert len(cases(found)) == 12 and found.text.count("all 6 right") >= 12
    assert len(found.one("#summary table").rows) == 3, "two metrics and their difference"


def test_a_case_by_itself_says_which_metrics_fail_on_it(place: ComparePlace) -> None:
    found = examples(place, made_up.NOISY, case="p7")
    assert cases(found) == ["p7"]
    rows = found.one("#everyone table").rows
    assert rows[0]["Metric"].text.startswith("PickScore"), "the one that is upside down"
    (back,) = found.one(".as-way-back").links()
    assert "case=" not in back and "view=examples" in back


def test_nothing_of_pairs_is_shown_where_answers_are_withheld(view: View, store: Store) -> None:
    place = made_up.place_of(view, store, made_up.withheld())
    for state in ({}, {"case": "p3"}, {"show": "all"}, {"b": FIRST}, {"seek": "1"}):
        found = examples(place, made_up.TURNED, **state)
        assert "withheld" in found and "of 5" not in found
        assert not found.all("img") and not cases(found) and not found.all("[download]")


def test_images_that_are_here_are_described_by_their_prompt_and_few_give_way_to_one_line(
    view: View, store: Store, place: ComparePlace
) -> None:
    images = [tile for tile in made_up.rated()["image_id"] if not tile.endswith("0")]
    found = examples(
        made_up.place_of(view, store, images=made_up.MadeUpImages(images)),
        made_up.TURNED,
        case="p7",
    )
    pictures = found.all(".as-tile img")
    assert (len(found.all(".as-tile")), len(pictures), len(found.all(".as-no-picture"))) == (
        4,
        3,
        1,
    )
    for one in pictures:
        assert one["width"] and one["height"] and one["loading"] == "lazy"
        assert one["alt"].endswith("a cup, p7")
    none = examples(place, made_up.TURNED)
    assert not none.all("img") and len(none.all(".as-absent")) == 12
    scores = none.one(".as-case-scores table")
    assert [row["Image"].text for row in scores.rows] == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("came", "said"),
    [(Came(1, 0, 0), "✓ right"), (Came(0, 2, 0), "✗ both wrong"), (Came(0, 0, 5), "= all 5 tied"),
     (Came(3, 1, 2), "◐ 3 of 6 right, 2 tied"), (Came(0, 0, 0), "– not compared")],
)  # fmt: skip
def test_how_comparisons_came_out_is_told_by_sign_and_word(came: Came, said: str) -> None:
    made = environment().from_string(
        "{% from 'compare/macros.html' import outcome %}{{ outcome(came) }}"
    )
    assert read(made.render(came=came)).text == said


def test_an_asked_comparison_is_made_once(
    view: View, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def counted(pair: Opponents, view: View) -> dict[str, Any]:
        made.append(pair)
        return two_compared(pair, view)

    monkeypatch.setattr("leaderboard.web.compare.two_compared", counted)
    place = made_up.place_of(view, store)
    for name in ("differences", "pairs", "skills"):
        made_up.page(place, **sides(FIRST, SECOND, view=name))
    assert len(made) == 1
    made_up.page(place, **sides(SECOND, FIRST))
    assert len(made) == 2
