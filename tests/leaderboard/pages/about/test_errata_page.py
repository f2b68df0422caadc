"""The errata page: every entry, printed beside correct, with the command that decides it."""

from __future__ import annotations

from benchmarks.errata import Erratum, ErratumCell, errata
from benchmarks.published import papers
from leaderboard.pages.about.errata_page import errata_view
from leaderboard.pages.shown.markup import text


def test_every_entry_stands_below_its_paper_with_its_figures() -> None:
    html = errata_view(errata())
    for entry in errata():
        assert f'id="{entry.id}"' in html
        assert text(entry.title) in html
        assert f'id="{entry.paper}"' in html
        for cell in entry.cells:
            assert f"<td>{text(cell.printed)}</td>" in html


def test_entries_that_can_be_recomputed_say_how_and_the_others_do_not() -> None:
    html = errata_view(errata())
    for entry in errata():
        article = html.partition(f'id="{entry.id}"')[2].partition("</article>")[0]
        shown = "python -m benchmarks.errata" in article
        assert shown is entry.recompute
        assert ("Not recomputed here" in article) is not entry.recompute


def test_what_nobody_can_say_is_a_dash_and_not_an_empty_cell() -> None:
    unknown = Erratum(
        id="made-up",
        paper=next(iter(papers())),
        where="Table <1>",
        title="A figure is wrong.",
        why="It cannot be.",
        kind="inconsistent",
        cells=(ErratumCell(label="cell", printed="1"),),
    )
    html = errata_view([unknown])
    assert "<b>—</b>" in html
    assert "Table &lt;1&gt;" in html
