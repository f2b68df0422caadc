"""Everything that was done, for everyone to read and to verify."""

from __future__ import annotations

import gradio as gr

from leaderboard.pages.ledger.query import LedgerQuery, page_of
from leaderboard.pages.ledger.reading import ChronicleReader
from leaderboard.pages.ledger.view import ledger_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import QUIET, html, on_load

_SAVE = """(content) => {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(new Blob([content], {type: 'application/jsonl;charset=utf-8'}));
  anchor.download = 'ledger.jsonl';
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}"""


def ledger(reader: ChronicleReader, query: LedgerQuery) -> str:
    """The page that is asked for."""
    known = reader.read()
    return ledger_view(page_of(known.lines, query), query, known)


def _build(context: Context) -> None:
    reader = ChronicleReader(context.store.public, context.clock)
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
