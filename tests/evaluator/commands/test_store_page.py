"""`store page` writes the boards as a file that needs no service."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from evaluator.__main__ import command_line
from leaderboard.pages.index.base import index_base
from leaderboard.pages.overview.still import still_page
from leaderboard.pages.reading import view_of
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.ranking.orders import Orders
from leaderboard.store.folder import folder_store
from tests.leaderboard.pages.index import index_fixture
from tests.leaderboard.pages.synthetic import fill


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command_line(), ["store", "page", *words])
    return done.exit_code, done.output


def test_the_boards_of_a_store_are_written_as_one_file(tmp_path: Path) -> None:
    store = fill(folder_store(tmp_path / "store"))
    target = tmp_path / "index.html"
    code, said = run(str(tmp_path / "store"), "--to", str(target))
    assert code == 0, said
    snapshot = read_snapshot(store.public)
    assert snapshot is not None
    cards = {name: board.card for name, board in snapshot.boards.items()}
    base = index_base(view_of(snapshot, cards, Orders(store)))
    assert target.read_bytes() == still_page(snapshot, base)


def test_the_written_page_has_the_index_with_tiers(tmp_path: Path) -> None:
    index_fixture.fill(folder_store(tmp_path / "store"))
    target = tmp_path / "index.html"
    code, said = run(str(tmp_path / "store"), "--to", str(target))
    assert code == 0, said
    index = target.read_text().partition('<section id="index">')[2].partition("</section>")[0]
    assert "<b>Tiers:</b> paired tests of the index itself" in index
    first = index.partition("<tbody>")[2].partition("</tr>")[0]
    assert '<td class="n">1</td><td class="n">1</td>' in first and "VQAScore" in first


def test_where_nothing_is_published_nothing_is_written(tmp_path: Path) -> None:
    folder_store(tmp_path / "store")
    target = tmp_path / "index.html"
    for name in ("store", "mistyped"):
        code, _ = run(str(tmp_path / name), "--to", str(target))
        assert code == 1
    assert not target.exists() and not (tmp_path / "mistyped").exists()
