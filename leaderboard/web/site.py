"""Puts the pages together. Serving them needs `launch_options` as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from benchmarks.schema import Card
from leaderboard.api.source import Source
from leaderboard.api.static_copy import StaticCopy, static_address, static_route
from leaderboard.governance.authentication import Authentication
from leaderboard.publication.reader import Reader
from leaderboard.rendering import render
from leaderboard.service.pictures import Pictures
from leaderboard.service.polling import HealthWatch
from leaderboard.store.interface import Store
from leaderboard.submission_service import SubmissionServiceProtocol
from leaderboard.web.assets import asset_routes, names_route
from leaderboard.web.endpoints import add_endpoints
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
"""Tabs whose state Gradio holds, at a third of a MiB each; one that was let go begins anew."""
UPLOADS_SWEPT_EVERY_S = 3600
UPLOADS_KEPT_S = 7200
"""What was submitted is in the store by then; anyone can upload and never submit."""


def create_app(
    store: Store,
    desk: SubmissionServiceProtocol,
    cards: Mapping[str, Card],
    *,
    clock: Callable[[], datetime],
    sign_in: Authentication | None = None,
    pictures: Pictures | None = None,
    reader: Reader | None = None,
    source: Source | None = None,
    hub: str = "",
    watch: HealthWatch | None = None,
) -> gr.Blocks:
    """Build the site; nothing is served yet."""
    read = source or Source(reader or Reader(store, cards, clock=clock), store, cards, clock)
    context = Context(
        reader=read.reader,
        live=store.live,
        desk=desk,
        cards=cards,
        clock=clock,
        store=store,
        sign_in=sign_in or Authentication(),
        pictures=pictures or Pictures({}, None),
        items=read.items,
        hub=hub,
        prepared=read.prepared,
        prepared_skills=read.skills,
        watch=watch,
        models=read.models,
    )
    first, *others = all_pages()
    with gr.Blocks(
        title="Assay",
        analytics_enabled=False,
        fill_width=True,
        delete_cache=(UPLOADS_SWEPT_EVERY_S, UPLOADS_KEPT_S),
    ) as app:
        _fill(first, context, read.static_copy)
        add_endpoints(read)
    for page in others:
        with app.route(page.title, f"/{page.path}", show_in_navbar=page.in_navigation):
            _fill(page, context, read.static_copy)
    return app


def _fill(page: Page, context: Context, still: StaticCopy) -> None:
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
        still.keep()
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


def launch_options(
    sign_in: Authentication | None = None,
    routes: Sequence[BaseRoute] = (),
    source: Source | None = None,
) -> dict[str, Any]:
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
                Middleware(OnlyKnownUpload, sign_in or Authentication()),
                Middleware(Redirects),
                Middleware(UnknownAddresses, pages),
                Middleware(Described, pages, source),
            ],
            "routes": [*routes, *asset_routes(), *(_of_source(pages, source) if source else ())],
        },
    }


def _of_source(pages: tuple[Page, ...], source: Source) -> tuple[BaseRoute, ...]:
    still = static_route(source.static_copy, source.in_thread)
    return share_route(pages, source), names_route(source), still
