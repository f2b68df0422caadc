"""Page of a benchmark: all that its card says, for every benchmark there is."""

from __future__ import annotations

import pytest

from benchmarks.registry import load_registry
from leaderboard.web.pages.docs_page import benchmark_html
from tests.leaderboard.web.parsed import harmless, read
from tests.leaderboard.web.synthetic import NASTY, cards

REGISTRY = load_registry()


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_the_page_says_all_that_the_card_does(name: str) -> None:
    known = {one: benchmark.card for one, benchmark in REGISTRY.items()}
    card, html = known[name], benchmark_html(known, name)
    harmless(html)
    page = read(html)
    assert page.one("h1").text == card.title and card.summary in page
    assert page.links("./?tab=benchmark:") == [f"./?tab=benchmark:{name}"]
    rows = page.all("#measures tbody tr")
    assert len(rows) == len(card.measures)
    assert [row.one("th").text for row in rows if row.texts(".as-tag")] == [
        next(row.one("th").text for row in rows if "headline" in row)
    ]
    for info in card.measures.values():
        assert info.title in page and info.meaning in page
    for words in (card.revision, card.licence, card.citation, *card.skills.values()):
        assert words in page
    assert (f"benchmarks fetch {name}" in page) is bool(card.files)
    assert ("simulated" in page.one("[role=note]")) if card.simulated else True
    assert page.one("#cite pre").text.startswith("@")


@pytest.mark.parametrize("name", ["", "nothing", NASTY])
def test_any_other_name_leads_to_all_of_them(name: str) -> None:
    html = benchmark_html(cards(), name)
    harmless(html)
    page = read(html)
    assert page.links("./benchmark") == [f"./benchmark?name={one}" for one in cards()]
    assert bool(page.all("[role=status]")) is bool(name)
