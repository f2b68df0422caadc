"""Live view: a part of a page that is one template, and whose state is the address.

`static/live.js` follows links and forms that carry `data-go`: it asks for the state of another
query string, and the part is exchanged without loading the page again. Without the script, or in
another tab, such a link is an ordinary link to the same state.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.cache import MemoryCache
from leaderboard.publication.reader import Reader
from leaderboard.web.page_metadata import document_title
from leaderboard.web.widgets import QUIET, or_unread

_LONGEST_QUERY = 8_000
_APPLY = """(state) => {
  if (!state) return;
  const { query, title, push } = JSON.parse(state);
  const address = location.pathname + query + (query === location.search ? location.hash : '');
  if (push && query !== location.search) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  if (title) document.title = title;
}"""
_ANSWERED = "() => { dispatchEvent(new Event('as-answered')) }"


@dataclass(frozen=True)
class LiveContent:
    """What a live view shows."""

    html: str  # the part, from a template
    # query string of exactly this state, with its question mark; empty for the default
    query: str = ""
    title: str = ""  # of the page in this state, without the name of the site; empty where it stays
    # seconds until it is asked for again; None where it changes no more by itself
    again_s: float | None = None


Answer = Callable[[QueryParams, gr.Request], LiveContent]
"""What is shown for the query parameters of an address; the request says who asks."""


def live_view(answer: Answer, *, skeleton: str = "", below: Answer | None = None) -> None:
    """Add a live view to the page that is being built."""
    part = gr.HTML(
        skeleton,
        apply_default_css=False,
        padding=False,
        js_on_load=_script(),
        elem_classes=["as-html", "as-live"],
    )
    second = gr.HTML(apply_default_css=False, padding=False, js_on_load=_script(),
                     elem_classes=["as-html", "as-live"]) if below else None  # fmt: skip
    state = gr.Textbox(visible="hidden", elem_classes=["as-state"])
    timer = gr.Timer(active=False)
    outputs: list[Any] = [part, state, timer]

    def show(params: QueryParams, request: gr.Request, *, push: bool = False) -> tuple[Any, ...]:
        shown = answer(params, request)
        again = gr.Timer(active=False)
        if shown.again_s is not None:
            again = gr.Timer(value=shown.again_s, active=True)
        title = document_title(shown.title) if shown.title else ""
        state = json.dumps({"query": shown.query, "title": title, "push": push})
        return shown.html, state, again

    def opened(request: gr.Request) -> tuple[Any, ...]:
        given = request.query_params
        several = getattr(given, "multi_items", given.items)
        return show(QueryParams(list(several())), request)

    def followed(event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        asked = event._data if isinstance(event._data, dict) else {}
        params = _params_of(str(asked.get("query", "")))
        return show(params, request, push=bool(asked.get("push")))

    def again(held: str, request: gr.Request) -> tuple[Any, ...]:
        return show(_params_of(json.loads(held)["query"]), request)

    def further(held: str, request: gr.Request) -> str:
        assert below is not None
        return below(_params_of(json.loads(held)["query"]), request).html

    at_once: dict[str, Any] = {**QUIET, "trigger_mode": "multiple"}  # The script asks in turns.
    root = gr.context.Context.root_block
    followed_parts = [part.select, *([second.select] if second else [])]
    pressed = [
        select(or_unread(followed, outputs), None, outputs, **at_once) for select in followed_parts
    ]
    events = [
        root.load(or_unread(opened, outputs), outputs=outputs, **QUIET),
        *pressed,
        timer.tick(or_unread(again, outputs), state, outputs, **QUIET),
    ]
    for event in events:
        applied = event.then(None, state, js=_APPLY, api_visibility="private")
        if event in pressed:
            applied.then(None, js=_ANSWERED, api_visibility="private")
        if second is not None:
            event.then(further, state, second, **QUIET)


def _script() -> str:
    return resources.files("leaderboard.web").joinpath("static/live.js").read_text(encoding="utf-8")


def _params_of(query: str) -> QueryParams:
    return QueryParams(query.removeprefix("?")[:_LONGEST_QUERY])


_LONGEST_KEPT = 500
_OF_ONE = 2000
"""Bytes that an answer takes beside its HTML, at most."""


class KeptAnswers:
    """What was answered last, as long as the store is as it was.

    It is for answers that follow from the store and the address alone. While the reader meets an
    outage nothing is kept, since an answer may then lack a part that could not be read.
    """

    def __init__(self, reader: Reader, most_bytes: int = 24 << 20) -> None:
        self._reader = reader
        self._kept: MemoryCache[LiveContent] = MemoryCache(
            lambda shown: sys.getsizeof(shown.html) + _OF_ONE, most_bytes
        )

    def of(self, params: QueryParams, make: Callable[[], LiveContent], *more: str) -> LiveContent:
        """The answer of an address."""
        head, query = self._reader.head(), str(params)
        if not head or self._reader.trouble or len(query) > _LONGEST_KEPT:
            return make()
        return self._kept.of((head, query, *more), make)
