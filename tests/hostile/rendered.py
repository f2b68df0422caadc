"""What people see of submissions: pages, spreadsheets and terminals, made as they are made for them."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html.parser import HTMLParser

from typer.testing import CliRunner

from benchmarks.errors import SubmitterError
from evaluator.__main__ import command_line
from leaderboard.publication.reader import Reader
from leaderboard.rendering import render
from leaderboard.states import LEGEND
from leaderboard.tables import to_csv
from leaderboard.views.board_tables import board_table
from leaderboard.views.boards import BoardQuery, resolve
from leaderboard.views.submissions import FAULTS, Moment, queue_of, submission_view
from leaderboard.web.benchmark_tab import board_html
from tests.hostile.proving_ground import BENCHMARK, Ground, Marked

_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_CARDS = {BENCHMARK: Marked.card}
_HARMLESS_LINKS = ("./", "#", "https://", "http://")
_LIVELY_TAGS = frozenset(
    {"script", "img", "iframe", "object", "embed", "form", "base", "meta", "link", "style"}
)
_OWN_FORM = (
    "form",
    (
        ("class", "as-choosing"),
        ("data-go", "choosers"),
        ("aria-label", "Board"),
        ("role", "search"),
    ),
)
"""The form of a board: it asks for the same page."""
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def pages(ground: Ground, submission_id: str) -> Mapping[str, str]:
    """The queue, the submission's history and the board, as HTML."""
    reader = Reader(ground.store, _CARDS)
    statuses = reader.statuses()
    status = next(s for s in statuses if s.submission.submission_id == submission_id)
    view = reader.view()
    moment = Moment((), _NOW, {name: card.title for name, card in _CARDS.items()})
    events, runs = reader.events(submission_id), reader.runs(submission_id)
    shared = {"kind": "", "chosen": submission_id, "base": "./submit", "wide": True,
              "legend": LEGEND, "faults": FAULTS, "now": _NOW, "back": "./submit"}  # fmt: skip
    shown = submission_view(status, events, moment, runs=runs, mine=True)
    return {
        "queue": render("submit/queue.html", queue=queue_of(statuses, moment), **shared),
        "history": render("submit/submission.html", view=shown, **shared),
        "board": board_html(resolve(BoardQuery(BENCHMARK, "", ""), view.boards), view),
    }


def spreadsheet(ground: Ground) -> list[dict[str, str]]:
    """The board as it is downloaded."""
    view = Reader(ground.store, _CARDS).view()
    cells = ground.snapshot().boards[BENCHMARK].cells
    text = to_csv(board_table(cells, view.entries, view.boards[BENCHMARK]))
    return list(csv.DictReader(io.StringIO(text)))


def terminals(ground: Ground, submission_id: str) -> Mapping[str, str]:
    """What the commands print about it."""
    where = ["--store", str(ground.folder / "store")]
    asked = {
        "status of all": ["status", *where],
        "status": ["status", submission_id, *where],
        "logs": ["logs", submission_id, *where],
        "report": ["report", submission_id, *where],
    }
    printed = {}
    for name, words in asked.items():
        result = CliRunner().invoke(command_line(), words)
        error = result.exception
        refused = isinstance(error, SubmitterError)  # there is no report of what failed
        assert refused or not isinstance(error, Exception), (name, error)
        printed[name] = f"{result.output}{error if refused else ''}"
    return printed


class _Elements(HTMLParser):
    """Notes what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.lively: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Tags that load or run something, attributes that run, links that lead astray."""
        if tag in _LIVELY_TAGS and (tag, tuple(attrs)) != _OWN_FORM:
            self.lively.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("srcdoc", "src", "action", "formaction"):
                self.lively.append(f"{tag} {name}={value}")
            if name == "href" and not (value or "").startswith(_HARMLESS_LINKS):
                self.lively.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        """What is read."""
        self.text.append(data)


def read_as_html(page: str) -> tuple[list[str], str]:
    """What a browser would act on, and what people would read."""
    parser = _Elements()
    parser.feed(page)
    parser.close()
    return parser.lively, " ".join(parser.text)


def unseen_characters(text: str) -> list[str]:
    """Characters that move the cursor, turn the direction round, or are not to be seen at all."""
    return sorted({hex(ord(c)) for c in text if c not in "\n\t" and _is_unseen(c)})


def formulas(rows: list[dict[str, str]]) -> Iterator[str]:
    """Cells that a spreadsheet would compute."""
    for row in rows:
        for value in row.values():
            if value.lstrip().startswith(_FORMULAS) and not _is_number(value):
                yield value


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp", "Cs"}


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
