"""Guides on the site: the documents of the repository, with links that stay on it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from leaderboard.web.guides import FIGURES, FIRST, Guide, figure, guides, slug
from leaderboard.web.pages.docs_page import guide_of
from tests.leaderboard.web.parsed import read

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
        "# The `first`\n\nA lead.\n\n## One *part*\n\n<script>1</script> [gone](gone.md)"
        " [out](../../x.md) [here](#one-part)\n\n```sh\na < b\n```\n\n    indented\n\n| a |\n|---|\n| b |\n"
    )
    guide = guides(tmp_path)["README"]
    assert (guide.title, guide.lead) == ("The first", "A lead.")
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
    first = guides()["README"]
    for name in ("", "nothing", "../../etc/passwd", "docs/start"):
        assert guide_of(name) == first
    assert guide_of("start") == guides()["start"]
    assert [figure(name) for name in ("nothing.svg", "../README.md", "")] == [None] * 3
    assert re.match(rb"<\?xml|<svg", figure("tiers.svg") or b"")
