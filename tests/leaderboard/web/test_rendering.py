"""The templates: what untrusted users wrote stays text, wherever and by whichever macro it is printed."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from leaderboard.publication.reader import Revision
from leaderboard.rendering import environment
from leaderboard.views.badges import Tag
from leaderboard.views.citation import Citation
from leaderboard.web.components import (
    LABEL_PX,
    Column,
    Curve,
    CurveChart,
    HeatCell,
    Line,
    LineChart,
    Link,
    PairCell,
    PairMatrix,
    Pick,
    Point,
    Row,
    Scale,
    ScatterChart,
    Tab,
    TextCell,
    Tick,
    Tier,
    ValueCell,
)
from tests.conftest import REPOSITORY
from tests.kit.html import Node, harmless, named, parse, read

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'`\u202eabc\u2066\x00\x1b{{7*7}}{%x%}${y}&amp;"
SEEN = "<script>alert(1)</script>\"'`abc{{7*7}}{%x%}${y}&amp;"
TEMPLATES = Path(REPOSITORY, "leaderboard/web/templates")


def printed(source: str, **values: object) -> str:
    return environment().from_string(source).render(**values)


@pytest.mark.parametrize(
    "source",
    [
        "<p title=\"{{ x }}\" class='{{ x }}'>{{ x }}</p>",
        '<p title="{{ x|e }}">{{ x|escape }}</p>',
        '<p title="a">{{ "<b>"|replace("<b>", "") ~ x }}</p>',
        "<p title=''>{% set y %}<i>{{ x }}</i>{% endset %}{{ y ~ x }}</p>",
        "<p title=''>{{ [x, x]|join(', ') }}{{ x|submitted(200) }}{{ x|lines }}{{ x|limited(99) }}</p>",
        "<p title=''>{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ x }}{% endcall %}</p>",
    ],
)
def test_whatever_was_submitted_is_text_wherever_it_is_printed(source: str) -> None:
    made = printed(source, x=HOSTILE)
    harmless(made)
    assert "{" not in made and "}" not in made and SEEN in read(made).text
    (paragraph,) = read(made).all("p")
    assert set(paragraph.attrs) <= {"title", "class"}  # No quotation mark ended one early.


@pytest.mark.parametrize("char", "&<>\"'{}")
def test_each_character_that_markup_is_made_of_is_escaped_also_alone(char: str) -> None:
    made = printed("{{ x }}", x=f"a {char} b")
    assert char == "&" or char not in made
    assert unescape(made) == f"a {char} b" != made


def test_markup_that_is_given_stays_markup_and_is_cleaned_all_the_same() -> None:
    made = printed("{{ x }}", x=Markup("<b>a\u202eb\x1b{{c}}</b>"))
    assert read(made).one("b").text == "ab{{c}}" and "{" not in made and "\u202e" not in made


def test_what_was_not_given_or_is_none_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        printed("{{ nothing }}")
    with pytest.raises(UndefinedError):
        printed("{% if x.nothing %}{% endif %}", x=object())
    with pytest.raises(TypeError):
        printed("{{ x }}", x=None)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{ -0.5|number }} {{ none|number }} {{ nan|number }} {{ 3.14159|number(2) }}",
         "−0.500 — — 3.14"),
        ("{{ -0.1|interval(0.25) }}|{{ none|interval(1) }}", "[−0.100, 0.250]|"),
        ("{{ 1|count('metric') }} {{ 1200|count('entry', 'entries') }}", "1 metric 1,200 entries"),
        ("{{ 40|duration }} {{ 7500|duration }}", "40 s 2 h 05 min"),
        ("{{ 3.42|rate }} {{ 2684|rate }} {{ 12345|integer }}", "3.4 2,684 12,345"),
        ("{{ 0.95|percent }} {{ -0.123|percent(1) }} {{ none|percent }}", "95% −12.3% —"),
        ("{{ at|ago(now) }}", "3 min ago"),
        ("{{ ('x' * 100)|submitted(10) }}", "xxxxxxxxx…"),
    ],
)  # fmt: skip
def test_figures_are_written_one_way(source: str, shown: str) -> None:
    made = printed(source, at=NOW - timedelta(minutes=3), now=NOW, nan=math.nan)
    assert read(made).text == shown


def test_lines_of_a_log_stay_apart() -> None:
    assert printed("{{ x|lines }}", x="a\n<b>\x1b") == "a\n&lt;b&gt;"
    assert printed("{{ x }}", x="a\nb") == "a b"


@pytest.mark.slow
def test_no_template_turns_escaping_off_or_holds_a_script_or_an_event() -> None:
    found = sorted(TEMPLATES.rglob("*.html"))
    assert found
    for path in found:
        source = path.read_text(encoding="utf-8")
        for words in ("|safe", "| safe", "autoescape", " on{{", "onclick", "|tojson"):
            assert words not in source, (path, words)
        # The frame has the site's own scripts, which hold nothing that is printed.
        scripts = re.findall(r"<script[^>]*>(.*?)</script>", source, re.S)
        allowed = {"", '{% include "shell/theme.js" %}'} if path.parent.name == "shell" else set()
        assert {*scripts} <= allowed and source.count("<script") == len(scripts), path
        environment().get_template(path.relative_to(TEMPLATES).as_posix())  # It can be read.


# Every macro in each of its states.


SCALE = Scale(0.0, 1.0, chance=0.5)
LINK = Link(HOSTILE, f"./boards?x={HOSTILE}", "on-e")
COLUMNS = [
    Column("metric", HOSTILE, HOSTILE, first=True), Column("v", HOSTILE, sorted="descending"),
    Column("t", "Access", right=True, sortable=False, hint=HOSTILE),
]  # fmt: skip
ROW = Row(
    "r-1", HOSTILE, HOSTILE, "1–4", 1,
    (ValueCell(0.7, 0.6, 0.8, n=1200, scale=SCALE, rank="1–4"), TextCell(HOSTILE)),
    (Tag(HOSTILE, "trained", HOSTILE),), ([(HOSTILE, HOSTILE)],), (LINK,), href="./metric?id=x",
)  # fmt: skip
SCATTER = ScatterChart(
    HOSTILE, HOSTILE,
    (Point(HOSTILE, 0.7, 1e9, 0.6, 0.8, "front", labelled=True), Point("b", 0.8, 1e12, kind="front"),
     Point("c", 0.2, 1e10, kind="hollow"), Point("d", 0.1, 1e10, 0.0, 0.2, "below"), Point("e", 0.9)),
    Scale(1e8, 1e14, log=True), Scale(0.0, 1.0, chance=0.5), HOSTILE, HOSTILE,
    (Tick(1e9, HOSTILE),), (Tick(0.5, "0.5"),), HOSTILE,
)  # fmt: skip
LINES = LineChart(HOSTILE, HOSTILE, (HOSTILE, "b", "c"), (
    Line(HOSTILE, (1.0, None, 2.0), "a"), Line("y", (2.0, 1.0, 1.0)), Line("z", (None, 3.0, 3.0), "l4"),
), Scale(1, 3))  # fmt: skip
CURVES = CurveChart(
    HOSTILE, HOSTILE, (), Scale(1.0, 4.0), Scale(0.0, 1.0, chance=0.0), HOSTILE, HOSTILE,
    curves=(Curve(HOSTILE, ((1.0, 0.0), (4.0, 1.0)), ((0.0, 0.0), (0.8, 1.2)), "a"), Curve("b", ((1.0, 0.5),))),
)  # fmt: skip
MATRIX = PairMatrix(HOSTILE, (HOSTILE, "b"), (
    (PairCell("self"), PairCell("better", 0.1, hint=HOSTILE, href="./compare")),
    (PairCell("worse", -0.1), PairCell("none", 0.01)),
))  # fmt: skip


def made(call: str, **values: object) -> Node:
    """A macro's markup, which holds nothing that runs and can be read out."""
    folder, _, macro = call.partition(".")
    source = f"{{% import 'macros/{folder}.html' as m %}}{{{{ m.{macro} }}}}"
    html = environment().from_string(source).render(**values)
    page = parse(html)
    named(page)
    return page


ALL: dict[str, dict[str, object]] = {
    "page.verdict(x, x, picks)": {"picks": [Pick(HOSTILE, HOSTILE, HOSTILE, "./metric?id=x")]},
    "page.tag(tag)": {"tag": Tag(HOSTILE, "bad", HOSTILE)},
    "page.badge(tag)": {"tag": Tag(HOSTILE, "bad", HOSTILE, "./submit?id=x")},
    "page.tabs(items, x)": {"items": [Tab(HOSTILE, "./?a", True, HOSTILE, HOSTILE, HOSTILE)]},
    "page.filter_chip(link)": {"link": LINK},
    "page.heading(x, 'an-id', x)": {},
    "page.note(x, x, 'bad', 'alert')": {},
    "page.empty(x, x, [link])": {"link": LINK},
    "page.facts([(x, x)])": {},
    "page.copyable(x, x)": {},
    "page.downloads('/api/table/' ~ x, x)": {},
    "page.cited(cite, x)": {"cite": Citation("key", HOSTILE, Revision(), (HOSTILE,), work=HOSTILE)},
    "page.outside(x, x)": {},
    "page.outside('https://a.example/' ~ x, x)": {},
    "board.text_cell(cell)": {"cell": TextCell(HOSTILE, title=HOSTILE)},
    "board.value_cell(cell)": {"cell": ValueCell(None, reason=HOSTILE)},
    "board.sort_header(col)": {"col": COLUMNS[0]},
    "board.tier_row(tier, 3)": {"tier": Tier(HOSTILE, HOSTILE, HOSTILE)},
    "board.metric_row(row, columns)": {"row": ROW, "columns": COLUMNS},
    "board.detail_row(row, columns)": {"row": ROW, "columns": COLUMNS},
    "board.board(x, columns, [(none, [row])])": {"row": ROW, "columns": COLUMNS},
    "heat.heat_cell(cell)": {"cell": HeatCell(0.5, 0.5, unordered=HOSTILE)},
    "heat.tally(1, 0, 2, x, x)": {},
    "heat.pair_matrix(matrix)": {"matrix": MATRIX},
    "charts.scatter(chart)": {"chart": SCATTER},
    "charts.pareto(chart)": {"chart": SCATTER},
    "charts.curves(chart)": {"chart": CURVES},
    "charts.trend(chart)": {"chart": CURVES},
    "charts.bump(chart)": {"chart": LINES},
    "charts.parallel(chart)": {"chart": LINES},
}
"""Each macro that prints what it is given, and what it is given beside `x`."""


@pytest.mark.parametrize("call", ALL)
def test_what_a_stranger_wrote_is_text_in_every_macro(call: str) -> None:
    page = made(call, x=HOSTILE, **ALL[call])
    assert "<script>alert(1)</script>" in page


def test_every_macro_is_rendered_here() -> None:
    static = {"page.toolbar", "page.scroll", "board.interval", "board.tag_of",
              "page.verdict_skeleton", "page.skeleton"}  # fmt: skip
    known = {call.partition("(")[0] for call in ALL} | static
    for folder in ("page", "board", "heat", "charts"):
        module = environment().get_template(f"macros/{folder}.html").module
        names = {n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("_")}
        assert {f"{folder}.{name}" for name in names} <= known
    for call in ("page.verdict_skeleton()", "page.skeleton()"):
        assert made(call).all(".as-sk")


# Cells and rows.


@pytest.mark.parametrize(
    ("cell", "shown", "classes", "title"),
    [
        (ValueCell(0.7784, 0.731, 0.816, n=160), "0.778", set(),
         "95% interval [0.731, 0.816], n 160"),
        (ValueCell(0.7, best=True, rank="1–4"), "0.700 1–4", {"is-best"}, ""),
        (ValueCell(-0.3, below=True), "−0.300 ▼ below chance", {"as-down"}, ""),
        (ValueCell(0.2, not_significant=True), "0.200 n.s.", {"as-ns"}, ""),
        (ValueCell(0.7, trained=True), "0.700T", set(), "T trained on this benchmark"),
        (ValueCell(None), "–no result", {"as-none"}, ""),
        (ValueCell(None, reason="not run"), "–not run", {"as-none"}, "not run"),
        (ValueCell(3.456, digits=2), "3.46", set(), ""),
    ],
)  # fmt: skip
def test_a_value_says_its_uncertainty_or_why_there_is_none(
    cell: ValueCell, shown: str, classes: set[str], title: str
) -> None:
    found = made("board.value_cell(cell)", cell=cell).one("td")
    assert found.text == shown and found["title"] == title
    assert set(found["class"].split()) == {"as-v", *classes}
    assert found["data-v"] == ("" if cell.value is None else str(cell.value))


def test_a_value_stands_on_its_axis_with_its_interval_and_chance() -> None:
    svg = made("board.interval(0.75, 0.5, 1.0, scale, 'hollow')", scale=SCALE).one("svg")
    assert svg["aria-hidden"] == "true" and svg.one(".as-chance")["x1"] == "42.0"
    whisker = svg.one(".as-w")
    assert (whisker["x1"], whisker["x2"], svg.one(".as-hollow")["cx"]) == ("42.0", "81.0", "61.5")
    bare = made("board.interval(none, none, none, scale)", scale=replace(SCALE, chance=None))
    assert not bare.all("circle") and not bare.all("line")


def test_a_board_can_be_sorted_unfolded_and_read_out_and_holds_its_place_while_it_is_loaded() -> (
    None
):
    page = made("board.board('B', columns, [(tier, [row])])", columns=COLUMNS, row=ROW,
                tier=Tier("Tier 1", "3 metrics", "(Holm)"))  # fmt: skip
    assert [head["aria-sort"] for head in page.all("thead th")] == ["", "descending", ""]
    button = page.one("th.as-first .as-row-open")
    assert button["aria-expanded"] == "false" and page.all(f"#{button['aria-controls']}")
    open_ = made("board.metric_row(row, c)", row=replace(ROW, open=True), c=COLUMNS)
    assert open_.one("tr")["class"] == "is-open" and open_.one("button")["aria-expanded"] == "true"
    detail = made("board.detail_row(row, c)", row=replace(ROW, open=True), c=COLUMNS)
    assert "is-open" in detail.one("tr")["class"] and "./metric?id=x" in detail.links()
    loading = made("board.board('B', columns, loading=true)", columns=COLUMNS)
    assert len(loading.all("tbody tr")) == 12 and loading.one("[aria-busy]")["aria-busy"] == "true"


# Parts of a page.


# Colours and pairs.


@pytest.mark.parametrize(
    ("cell", "shown", "style"),
    [(HeatCell(3.82, 0.67, small="1–2"), "3.82 1–2", "--t:67%"), (HeatCell(3.82, -3), "3.82", "--t:0%"),
     (HeatCell(3.82, 9), "3.82", "--t:100%"), (HeatCell(0.5, unordered="two prompts"), "no order", ""),
     (HeatCell(None), "no result", "")],
)  # fmt: skip
def test_a_colour_comes_with_its_number_and_where_there_is_no_order_with_none(
    cell: HeatCell, shown: str, style: str
) -> None:
    found = made("heat.heat_cell(cell)", cell=cell).one("td")
    assert shown in found and found["style"] == style and found["title"] == cell.unordered
    assert found["data-v"] == ("" if cell.value is None else str(cell.value))


@pytest.mark.parametrize(
    ("call", "words", "parts"),
    [("heat.tally(115, 2, 47, 'X', 'Y')", "X higher on 115 of 164, Y on 47, tied on 2.", 3),
     ("heat.tally(1, 0, 0)", "A higher on 1 of 1, B on 0.", 1),
     ("heat.tally(0, 0, 0)", "Nothing to compare.", 0)],
)  # fmt: skip
def test_counts_are_said_in_words(call: str, words: str, parts: int) -> None:
    page = made(call)
    assert page.one("p").text == words and len(page.all("i")) == parts


def test_a_pair_has_a_sign_and_says_where_it_is_not_significant() -> None:
    page = made("heat.pair_matrix(matrix)", matrix=MATRIX)
    rows = [[td.text for td in tr.all("td")] for tr in page.all("tbody tr")]
    assert rows == [["the same", "+0.100"], ["−0.100", "+0.010 not significant"]]
    assert [td["class"] for td in page.all("td")] == ["is-self", "is-sig", "is-neg", "is-ns"]


# Charts.


@pytest.mark.parametrize("kind", ["scatter", "pareto", "bump", "parallel"])
def test_a_chart_without_data_keeps_its_size_and_says_why(kind: str) -> None:
    empty = {"scatter": replace(SCATTER, points=(), empty="No results yet."),
             "bump": replace(LINES, lines=(), empty="No results yet.")}  # fmt: skip
    full, svg = (
        made(f"charts.{kind}(c)", c=chart).one("svg")
        for chart in ((SCATTER, empty["scatter"]) if kind in {"scatter", "pareto"} else (LINES, empty["bump"]))
    )  # fmt: skip
    assert svg["viewbox"] == full["viewbox"] and "No results yet." in svg.texts("text")


def test_a_point_whose_cost_is_not_known_stands_in_the_gutter_and_only_a_front_has_a_line() -> None:
    plain, front = (
        made(f"charts.{kind}(c)", c=SCATTER).one("svg") for kind in ("scatter", "pareto")
    )
    assert len(plain.all("g")) == 5 and len(plain.all(".as-f .as-d")) == 2
    assert 614 < float(plain.all("g")[4].one("circle")["cx"]) < 758
    assert [bool(one.all(".as-frontline")) for one in (plain, front)] == [False, True]


@pytest.mark.parametrize(("kind", "top"), [("bump", 1.0), ("parallel", 3.0)])
def test_lines_are_broken_where_nothing_is_known_and_the_best_rank_is_at_the_top(
    kind: str, top: float
) -> None:
    svg = made(f"charts.{kind}(c)", c=LINES).one("svg")
    assert [p["d"].count("M") for p in svg.all("path")] == [2, 1, 1]
    assert LINES.upward(top, ranks=kind == "bump") == 26.0
    assert svg.all("path")[0]["class"] == "as-la"


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [(Scale(0.0, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)), (Scale(0.21, 0.83), (0.4, 0.6, 0.8)),
     (Scale(1e9, 1e12, log=True), (1e9, 1e10, 1e11, 1e12)), (Scale(2.0, 2.0), (2.0,))],
)  # fmt: skip
def test_an_axis_names_round_values(scale: Scale, ticks: tuple[float, ...]) -> None:
    assert scale.ticks() == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("scale", "value", "place"),
    [(Scale(0, 1, 0, 100), 0.25, 25), (Scale(0, 1, 0, 100), 7, 100), (Scale(0, 1, 0, 100), -7, 0),
     (Scale(1, 100, 0, 100, log=True), 10, 50), (Scale(1, 100, 0, 100, log=True), 0, 0),
     (Scale(2, 2, 0, 100), 2, 50)],
)  # fmt: skip
def test_a_value_outside_a_scale_is_at_its_end(scale: Scale, value: float, place: float) -> None:
    assert scale.at(value) == place


@pytest.mark.parametrize("ranks", [True, False])
def test_labels_of_lines_keep_their_distance_and_emphasised_ones_come_first(ranks: bool) -> None:
    crowded = [Line(f"line {n}", (1.0 + n / 40, 1.0), "a" if n > 17 else "") for n in range(20)]
    chart = LineChart("Lines", "Twenty.", ("a", "b"), crowded, Scale(1.0, 3.0))
    labels = chart.labels(ranks=ranks)
    assert [name for name, _ in labels[:2]] == ["line 18", "line 19"] and len(labels) > 3
    ends = sorted(y for _, y in labels)
    assert min(after - before for before, after in pairwise(ends)) >= LABEL_PX


def test_chance_and_ceiling_are_marked_with_their_numbers() -> None:
    svg = made("charts.parallel(c)", c=replace(LINES, levels=(1.0, 3.0)))
    heights = [(one["y1"], one["y2"]) for one in svg.all("line.as-chance")]
    assert heights == [("224.0",) * 2, ("26.0",) * 2]
    assert {"1", "3"} <= set(svg.texts("text"))
