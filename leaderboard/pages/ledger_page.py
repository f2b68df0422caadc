"""Everything that was done, for everyone to read and to verify."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import gradio as gr

from leaderboard.chronicle import FIRST, Line, segments, sha256, verify
from leaderboard.pages.ledger_query import LedgerQuery, page_of
from leaderboard.pages.ledger_view import ledger_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.widgets import QUIET, html, on_load
from leaderboard.store.interface import Repository

_SAVE = """(content) => {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(new Blob([content], {type: 'application/jsonl;charset=utf-8'}));
  anchor.download = 'ledger.jsonl';
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}"""


@dataclass(frozen=True)
class Verified:
    """The chronicle at one version of the store.

    Attributes:
        lines: oldest first; those that cannot be read are among the problems.
        problems: what is wrong with it.
        head: hash of the newest line.
    """

    lines: tuple[Line, ...] = ()
    problems: tuple[str, ...] = ()
    head: str = FIRST


class ChronicleReader:
    """Reads and verifies the chronicle once for each version of the store.

    Args:
        public: where it is.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._lock = threading.Lock()
        self._version: str | None = None
        self._known = Verified()
        self._parsed: dict[str, tuple[Line, ...]] = {}

    def read(self) -> Verified:
        """The chronicle as it is now."""
        with self._lock:
            version = self._public.head()
            if version != self._version:
                self._known = self._verified()
                self._version = version
            return self._known

    def _verified(self) -> Verified:
        problems = verify(self._public)
        contents = [self._public.read(path) for path in segments(self._public)]
        parsed = {sha256(content): content for content in contents}
        # A full segment never changes, so most are known by their hash.
        self._parsed = {
            digest: self._parsed.get(digest) or _lines(content)
            for digest, content in parsed.items()
        }
        lines = tuple(line for digest in parsed for line in self._parsed[digest])
        last = contents[-1].splitlines()[-1:] if contents else []
        return Verified(lines, problems, sha256(last[0]) if last else FIRST)

    def download(self) -> str:
        """The lines as they are kept, byte for byte, so that anyone can verify the chain."""
        return b"".join(self._public.read(path) for path in segments(self._public)).decode()


def _lines(content: bytes) -> tuple[Line, ...]:
    """The lines of a segment; `verify` tells of those that are none."""
    found = []
    for line in content.splitlines():
        try:
            found.append(Line.model_validate_json(line))
        except ValueError:
            continue
    return tuple(found)


def ledger(reader: ChronicleReader, query: LedgerQuery) -> str:
    """The page that is asked for."""
    known = reader.read()
    last = known.lines[-1] if known.lines else None
    return ledger_view(page_of(known.lines, query), query, last, known.problems, known.head)


def _build(context: Context) -> None:
    reader = ChronicleReader(context.store.public)
    shown = html()
    content = gr.Textbox(visible="hidden", elem_id="as-jsonl")
    with gr.Row(elem_classes="as-choosers"):
        save = gr.Button(
            "Download the whole ledger (JSONL)", elem_id="as-save", size="sm", scale=0,
            min_width=240,
        )  # fmt: skip

    def open_page(request: gr.Request) -> str:
        return ledger(reader, LedgerQuery.from_params(request.query_params))

    on_load(open_page, shown)
    saved = save.click(reader.download, None, content, **QUIET)
    saved.then(None, content, js=_SAVE, api_visibility="private")


PAGE = Page("Ledger", "ledger", 35, _build)
