"""Pages of the documentation: guides, one benchmark, methods and errata."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from benchmarks.errata import Erratum, ErratumCell, errata
from benchmarks.errors import TransientError
from benchmarks.published import papers
from benchmarks.registry import load_registry
from leaderboard.service.health import DiskSpace, Seen, judged, unreadable
from leaderboard.store.live.interface import Heartbeat
from leaderboard.web.guides import FIGURES, FIRST, Guide, figure, guides, slug
from leaderboard.web.pages.docs_page import benchmark_html, errata_view, guide_html, methods_view
from leaderboard.web.pages.status_page import MOST_WORKERS, status_view
from tests.kit.boards import NASTY, NOW, cards, pulse
from tests.kit.html import Node, parse, read

DISK = DiskSpace(free_bytes=50 << 30, total_bytes=100 << 30)


# Status: what `/health` says, in words.


def status(*pulses: Heartbeat, disk: DiskSpace = DISK) -> Node:
    html = status_view(judged(replace(Seen("abcdef0123456789", ()), pulses=pulses), NOW, disk))
    return parse(html)


def test_the_state_of_the_installation_comes_first_with_what_to_do() -> None:
    right = status(pulse(5, worker="w1", isolation_ok=False))
    assert right.text.startswith("Status Everything works.") and "is wrong" not in right
    assert "50 GiB free of 100 GiB" in right and "not run" in right.row("w1")
    full = status(disk=DiskSpace(free_bytes=1 << 20, total_bytes=100 << 30))
    assert "disk_full" in full and "0.0 GiB of 100.0 GiB" in full
    assert not full.text.startswith(right.text[:20])
    assert "For operators" in full


def test_a_silent_worker_is_marked_without_its_speed_and_of_many_the_last_seen_are_shown() -> None:
    dead = pulse(3600.0, worker="<script>x</script>", submission_id="s", rate_per_s=777.0)
    row = status(dead).row("<script>x</script>")
    assert all(words in row for words in ("1 h 00 min", "silent", "isolated"))
    assert "777" not in status(dead)
    for extra in (0, 1, 7):
        page = status(*(pulse(n, worker=f"worker-{n}") for n in range(MOST_WORKERS + extra)))
        assert "worker-0 " in page.text and f"worker-{MOST_WORKERS} " not in page.text
        assert ("other worker" in page) is (extra > 0)


def test_a_store_that_cannot_be_read_shows_no_figures_of_it() -> None:
    error = TransientError("store_unreachable", "It <b>does</b> not answer.", "Try again.")
    page = read(status_view(unreadable(error, NOW, DISK)))
    assert "It <b>does</b> not answer." in page
    assert "Workers" not in page and "Ever received" not in page


# Errata and measures.


def test_every_erratum_stands_below_its_paper_with_its_figures_and_how_it_is_decided() -> None:
    page = read(errata_view(errata()))
    for entry in errata():
        article = page.one(f"[id={entry.id}]")
        assert entry.title in article and page.all(f"[id={entry.paper}]")
        assert {cell.printed for cell in entry.cells} <= set(article.texts("td"))
        assert ("benchmarks.errata" in article.text) is entry.recompute
    unknown = Erratum(
        id="made-up", paper=next(iter(papers())), where="Table <1>", title="A figure is wrong.",
        why="It cannot be.", kind="inconsistent", cells=(ErratumCell(label="cell", printed="1"),),
    )  # fmt: skip
    page = read(errata_view([unknown]))  # What nobody can say is a dash and no empty cell.
    assert "–" in page.texts("b") and "Table <1>" in page


def test_every_benchmark_leads_to_its_page_from_the_place_that_links_named() -> None:
    page = read(methods_view(cards().values()))
    for name in cards():
        assert page.one(f"#{name}").links("") == [f"./benchmark?name={name}"]


REGISTRY = load_registry()


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_the_page_says_all_that_the_card_does(name: str) -> None:
    known = {one: benchmark.card for one, benchmark in REGISTRY.items()}
    card, html = known[name], benchmark_html(known, name)
    page = parse(html)
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
    page = parse(html)
    assert page.links("./benchmark") == [f"./benchmark?name={one}" for one in cards()]
    assert bool(page.all("[role=status]")) is bool(name)


REPOSITORY = Path(__file__).parents[3]


def anchors(guide: Guide) -> set[str]:
    return {str(one["id"]) for one in read(guide.html).nodes if one.attrs.get("id")} | {
        slug(guide.title)
    }


def test_every_document_is_a_guide_with_a_title() -> None:
    written = {
        path.relative_to(REPOSITORY / "docs").with_suffix("").as_posix()
        for path in (REPOSITORY / "docs").rglob("*.md")
    }
    assert written <= set(guides())
    assert all(guide.title and guide.html for guide in guides().values())


@pytest.mark.parametrize("name", sorted(guides()))
def test_links_of_a_guide_lead_to_guides_and_parts_that_are_there(name: str) -> None:
    page = read(guides()[name].html)
    for link in page.links(""):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme in {"http", "https"}
            continue
        (to,) = parse_qs(parts.query)["name"]
        assert parts.path == "./guide" and to in guides(), link
        assert not parts.fragment or parts.fragment in anchors(guides()[to]), link
    for image in page.all("img"):
        source = image["src"]
        assert image["alt"] and source.startswith(f"./{FIGURES}/")
        assert figure(source.rpartition("/")[2])
    assert "<!--" not in guides()[name].html and "&lt;!--" not in guides()[name].html


def test_what_a_document_holds_is_text_and_its_blocks_are_reached_by_keyboard(
    tmp_path: Path,
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / f"{FIRST}.md").write_text(
        "# The `first`\n\nA *lead*\nof two  \nand three lines.\n\n## One *part*\n\n<script>1</script> [gone](gone.md)"
        " [out](../../x.md) [here](#one-part)\n\n```sh\na < b\n```\n\n    indented\n\n| a |\n|---|\n| b |\n"
    )
    guide = guides(tmp_path)["README"]
    assert (guide.title, guide.lead) == ("The first", "A lead of two and three lines.")
    assert guide.sections == (("one-part", "One part"),)
    page = read(guide.html)
    assert not page.all("script") and page.one("h2")["id"] == "one-part"
    assert page.links("") == [*["./guide?name=README"] * 2, "./guide?name=README#one-part"]
    assert [(one["tabindex"], one.text) for one in page.all("pre")] == [
        ("0", "a < b"),
        ("0", "indented"),
    ]
    assert page.one("table") and page.one("[role=region]")["tabindex"] == "0"
    assert guides(tmp_path / "nothing") == {}


def test_a_name_that_is_none_leads_to_the_first_guide_and_to_no_file() -> None:
    first = guides()["README"].title
    for name in ("", "nothing", "../../etc/passwd", "docs/start"):
        page = read(guide_html(name))
        assert page.one("h1").text == first
        assert len(page.all("[role=status]")) == (name != "")
    page = read(guide_html("start"))
    assert page.one("h1").text == guides()["start"].title and not page.all("[role=status]")
    assert [figure(name) for name in ("nothing.svg", "../README.md", "")] == [None] * 3
    assert re.match(rb"<\?xml|<svg", figure("tiers.svg") or b"")
    assert (figure("croc-review.png") or b"").startswith(b"\x89PNG")
