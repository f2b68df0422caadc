"""The components in a browser: what a board does, how each state looks to all, and in both schemes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.rendering import environment
from leaderboard.web.assets import assets
from leaderboard.web.components import Column, HeatCell, Tier, ValueCell
from tests.leaderboard.web.browser.views import HEIGHT, Inspector
from tests.leaderboard.web.test_rendering import COLUMNS, LINES, MATRIX, ROW, SCATTER

pytestmark = pytest.mark.browser
_PAGE = """<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width">
<title>t</title><style>{style}</style></head>
<body><main class="as-missing"><div class="as-page"><h1>t</h1>{body}</div></main>
<script>{script}</script></body></html>"""
_ALL = """
{% import 'macros/page.html' as page %}{% import 'macros/board.html' as board %}
{% import 'macros/heat.html' as heat %}
{% import 'macros/charts.html' as charts %}
{{ board.board('Board', columns, groups) }}
{{ board.board('Loading', columns, loading=true) }}
{% call page.scroll('Heat') %}<table class="as-t as-heat"><tr><th scope="row" class="as-first">m</th>
{% for cell in heats %}{{ heat.heat_cell(cell) }}{% endfor %}</tr></table>{% endcall %}
{{ heat.pair_matrix(matrix) }}{{ heat.tally(3, 1, 2) }}
{{ charts.pareto(scatter) }}{{ charts.bump(lines) }}
{% for tone in ('info', 'good', 'warn', 'bad') %}{{ page.note('Said.', 'More.', tone) }}{% endfor %}
{{ page.empty('Nothing.', 'Raise it.') }}{{ page.verdict_skeleton() }}
{% for row in rows %}{% for tag in row.tags %}{{ page.tag(tag) }}{% endfor %}{% endfor %}
"""
_FAULTY = """<!doctype html><html lang="en"><title>t</title><style>body { color: #000; }
.dark { color: #ddd; } div { width: 600px; }</style><h1>Dark words on white</h1><div>
<img src="data:,"></div>"""
VALUES: list[float | None] = [0.7, None, 0.9, 0.2]
HEATS = [HeatCell(0.5, share) for share in (0, 0.5, 1)] + [HeatCell(0.5, unordered="few")]
Show = Callable[..., Page]


def rows() -> list[object]:
    names = ["a", "b", "c", "d"]
    return [
        replace(ROW, ident=f"r-{n}", name=name, sub="", order=n,
                cells=(ValueCell(value, not_significant=value == 0.2), ROW.cells[1]))
        for n, (name, value) in enumerate(zip(names, VALUES, strict=True))
    ]  # fmt: skip


@pytest.fixture
def show(browser: Browser) -> Show:
    def shown(source: str) -> Page:
        style, script = (one.content.decode() for one in assets())
        columns = [Column("m", "Metric", first=True), *COLUMNS[1:]]
        body = environment().from_string(source).render(
            columns=columns, groups=[(Tier("Tier 1"), rows()[:2]), (Tier("Tier 2"), rows()[2:])],
            heats=HEATS, matrix=replace(MATRIX, names=("x", "y")),
            scatter=SCATTER, lines=LINES, rows=rows(),
        )  # fmt: skip
        page = browser.new_page(viewport={"width": 1280, "height": HEIGHT})
        page.set_content(_PAGE.format(style=style, body=body, script=script))
        return page

    return shown


@pytest.mark.slow
def test_every_component_can_be_used_by_all_and_fits(show: Show) -> None:
    problems = Inspector().problems(show(_ALL))
    # The names of these columns are hostile, and longer than any that is printed.
    assert [problem for problem in problems if not problem.endswith("overflows")] == []


@pytest.mark.slow
def test_what_is_wrong_in_one_view_alone_is_found(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(_FAULTY)
    problems = [problem[:40] for problem in Inspector().problems(page)]
    kinds = [
        problem.rsplit(": ", 1)[0] if "wider" not in problem else problem for problem in problems
    ]
    assert sorted(kinds) == [
        "1280 dark: color-contrast", "1280 light: image-alt", "390 dark: color-contrast",
        "390 light: image-alt", "390 light: wider than the screen",
    ]  # fmt: skip


def test_a_board_sorts_with_missing_values_last_and_unfolds_its_rows(show: Show) -> None:
    page = show("{% import 'macros/board.html' as b %}{{ b.board('B', columns, groups) }}")

    def order() -> str:
        return "".join(page.locator("tr[data-row] .as-row-open bdi").all_text_contents())

    button = page.locator("thead th").nth(1).get_by_role("button")
    tiers = page.locator(".as-tier:visible")
    assert order() == "abcd" and tiers.count() == 2
    button.click()  # The served order was descending.
    assert order() == "dacb" and tiers.count() == 0
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "ascending")
    page.locator("thead .as-first").get_by_role("button").click()
    assert order() == "dcba"
    button.focus()
    page.keyboard.press("Enter")
    assert order() == "abcd" and tiers.count() == 2  # As it was served.
    row = page.get_by_role("button", name="a", exact=True)
    detail = page.locator("#r-0-more")
    expect(detail).to_be_hidden()
    row.click()
    expect(detail).to_be_visible()
    expect(row).to_have_attribute("aria-expanded", "true")
    row.press("Enter")
    expect(detail).to_be_hidden()


def test_beside_the_browser_a_test_can_run_an_event_loop_of_its_own(
    browser_and_loop: object,
) -> None:
    asyncio.run(asyncio.sleep(0))
