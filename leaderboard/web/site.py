"""Puts the pages together. Serving them needs `launch_options` as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import gradio as gr
from gradio.blocks import BlocksConfig
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from benchmarks.errors import AssayError
from leaderboard.api.source import Source
from leaderboard.api.static_copy import static_address, static_route
from leaderboard.api.tables import boards, catalogue
from leaderboard.publication.reader import Reader
from leaderboard.rendering import render
from leaderboard.tables import Table, to_json
from leaderboard.views.boards import YES, BoardQuery
from leaderboard.web.assets import asset_routes, names_route
from leaderboard.web.link_previews import Described, share_route
from leaderboard.web.middleware import OnlyKnownUpload, Redirects, UnknownAddresses
from leaderboard.web.page import Context, Page, all_pages
from leaderboard.web.widgets import (
    LOOKED_AT_EVERY_S,
    QUIET,
    band,
    html,
    html_on_load,
    on_load,
    or_as_before,
    theme,
)

MAX_UPLOAD = "1gb"
SESSIONS = 300
"""Tabs whose state Gradio holds; one that was let go begins anew."""
UPLOADS_SWEPT_EVERY_S = 3600
UPLOADS_KEPT_S = 7200
"""What was submitted is in the store by then; anyone can upload and never submit."""


class _Components(BlocksConfig):
    """The components of the site.

    A tab's copy keeps no settings of each, a third of a MiB that only Gradio's deep links read: the
    address of a page says all that it shows.
    """

    def __copy__(self) -> BlocksConfig:
        found: BlocksConfig = super().__copy__()
        nothing: dict[str, Any] = {}
        found.config_for_block = lambda *_: nothing
        return found


def create_app(context: Context) -> gr.Blocks:
    """Build the site; nothing is served yet."""
    first, *others = all_pages()
    app = gr.Blocks(
        title="Assay",
        analytics_enabled=False,
        fill_width=True,
        delete_cache=(UPLOADS_SWEPT_EVERY_S, UPLOADS_KEPT_S),
    )
    app.default_config = _Components(app)
    with app:
        _fill(first, context)
        add_endpoints(context)
    for page in others:
        with app.route(page.title, f"/{page.path}", show_in_navbar=page.in_navigation):
            _fill(page, context)
    return app


def _fill(page: Page, context: Context) -> None:
    gr.Navbar(visible=False)  # Ours is put around every page, see `web.frame`.
    _show_outages(context)
    page.build(context)

    def last_lines() -> str:
        said = render(
            "shell/footer.html",
            as_of=_as_of(context.reader),
            now=context.clock(),
            still=static_address(context.hub),
        )
        context.static_copy.keep()
        return said

    html_on_load(last_lines)


def _as_of(reader: Reader) -> datetime | None:
    reader.view()
    return reader.as_of


def _show_outages(context: Context) -> None:
    """A band above everything while the store does not answer."""
    shown, before = html(elem_classes=["as-band"]), gr.State("")

    def look(last: str) -> tuple[Any, Any]:
        found = band(context.reader, context.clock())
        return (gr.skip(), gr.skip()) if found == last else (found, found)

    on_load(lambda: (band(context.reader, context.clock()),) * 2, [shown, before])
    gr.Timer(LOOKED_AT_EVERY_S).tick(or_as_before(look, 2), before, [shown, before], **QUIET)


def launch_options(context: Context, routes: Sequence[BaseRoute] = ()) -> dict[str, Any]:
    """What `Blocks.launch` needs to serve the site as designed, host and port excepted."""
    pages = all_pages()
    return {
        "theme": theme(),
        "footer_links": [],
        "max_file_size": MAX_UPLOAD,
        "state_session_capacity": SESSIONS,
        "run_history": False,
        "ssr_mode": False,
        "share": False,
        "show_error": False,
        "mcp_server": False,
        "enable_monitoring": False,
        "app_kwargs": {
            "middleware": [
                Middleware(OnlyKnownUpload, context.sign_in),
                Middleware(Redirects),
                Middleware(UnknownAddresses, pages),
                Middleware(Described, pages, context),
            ],
            "routes": [
                *routes,
                *asset_routes(),
                share_route(pages, context),
                names_route(context),
                static_route(context.static_copy, context.in_thread),
            ],
        },
    }


_ASKED_AT_ONCE = 4
_LONGEST = 2000
"""Characters of any argument; no name or search is as long."""


def add_endpoints(source: Source) -> None:
    """Add the only public endpoints of the site's own client API: three questions, answered as `/v1` does.

    All events of pages are private; what a program may call is named here.
    """

    def benchmarks() -> dict[str, Any]:
        return _answer(lambda: catalogue.benchmarks(source))

    def board(  # noqa: PLR0917 (clients name them as they like)
        benchmark: str,
        skill: str = "",
        measure: str = "",
        kind: str = "",
        untrained: bool = False,
        search: str = "",
        columns: str = "",
        sort: str = "",
        within: bool = False,
    ) -> dict[str, Any]:
        _check(benchmark, skill, measure, kind, search, columns, sort)
        query = BoardQuery.from_params({
            "skill": skill, "measure": measure, "kind": kind, "search": search,
            "untrained": YES if untrained else "", "within": YES if within else "",
            "columns": columns, "sort": sort,
        })  # fmt: skip
        return _answer(lambda: boards.board(source, benchmark, query))

    def entry(entry_id: str) -> dict[str, Any]:
        _check(entry_id)
        return _answer(lambda: catalogue.entry(source, entry_id, catalogue.EntryParameters()))

    documented: tuple[tuple[Callable[..., Any], str], ...] = (
        (benchmarks, "All benchmarks on which metrics are tested, as /v1/benchmarks has them."),
        (board, "A ranking, best first: skills by key joined by commas, a measure by name or "
         "token, which entries, further columns and what to sort by; as /v1/boards/{benchmark} "
         "has it."),
        (entry, "Every value of one metric by its entry id, as /v1/entries/{entry_id} has it."),
    )  # fmt: skip
    for question, said in documented:
        gr.api(
            question,
            api_name=question.__name__,
            api_description=said,
            concurrency_limit=_ASKED_AT_ONCE,
        )


def _check(*arguments: object) -> None:
    for value in arguments:
        # Gradio passes on whatever came; types are only told to those who ask for them.
        if not isinstance(value, str) or len(value) > _LONGEST:
            raise gr.Error("[bad_query] An argument is no text, or too long.")


def _answer(question: Callable[[], Table]) -> dict[str, Any]:
    """A table as `/v1` answers it; an error as clients of Gradio are told one."""
    try:
        found: dict[str, Any] = json.loads(to_json(question()))
    except AssayError as error:
        raise gr.Error(f"[{error.code}] {error}") from error
    return found
