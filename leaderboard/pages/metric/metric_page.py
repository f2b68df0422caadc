"""Everything about one metric; which one is in the link."""

from __future__ import annotations

import re
from collections.abc import Mapping

import gradio as gr

from leaderboard.pages.metric.absent import gone_view, unknown_view
from leaderboard.pages.metric.copied import Around
from leaderboard.pages.metric.query import Gone, MetricQuery, Shown, resolve
from leaderboard.pages.metric.view import metric_view
from leaderboard.pages.moved.query import moved_address
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.addresses import metric_address
from leaderboard.pages.shown.widgets import html, on_load, run_on_load

_HOST = re.compile(r"[A-Za-z0-9.-]{1,200}(?::[0-9]{1,5})?")

_COPY_AND_GO = """() => {
  if (window.asCopies) return;
  window.asCopies = true;
  document.addEventListener('click', async (event) => {
    const place = event.target.closest?.('[data-place]');
    if (place) {
      event.preventDefault();
      const part = document.getElementById(place.dataset.place);
      part?.scrollIntoView();
      part?.setAttribute('tabindex', '-1');
      part?.focus({ preventScroll: true });
      return;
    }
    const button = event.target.closest?.('[data-copy]');
    const content = button?.parentElement.querySelector('pre')?.textContent;
    if (!content) return;
    try {
      await navigator.clipboard.writeText(content);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector('pre'));
    }
  });
}"""
"""Copies what stands beside a button, or marks it where the browser does not let us; and goes to a
part of the page, since a fragment would lead to the root of the site."""


def shown_page(context: Context, query: MetricQuery, root: str = "") -> str:
    """The HTML for a query.

    Args:
        context: of the site.
        query: what was asked for.
        root: address of the site as the visitor sees it, with a slash at its end; empty where that
            is not known.
    """
    view, statuses = context.reader.view(), context.reader.statuses()
    found = resolve(query, view, statuses)
    if isinstance(found, Gone):
        return gone_view(found, statuses)
    if not isinstance(found, Shown):
        return unknown_view(found)
    address = metric_address(found.entry.entry_id).removeprefix("./")
    around = Around(statuses, _moved(context, found), f"{root}{address}" if root else "")
    return metric_view(found, view, around)


def root_of(headers: Mapping[str, str]) -> str:
    """Address of the site by the headers of a request; empty where they do not say it plainly."""
    host = headers.get("x-forwarded-host") or headers.get("host", "")
    scheme = headers.get("x-forwarded-proto", "http").partition(",")[0].strip()
    if scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        return ""
    return f"{scheme}://{host}/"


def _moved(context: Context, found: Shown) -> dict[str, str]:
    """Title of a benchmark of the metric to what moved there, where an earlier board is kept."""
    names = dict.fromkeys(name for entry in found.entries for name in entry.provenance)
    return {
        context.cards[name].title: moved_address(name)
        for name in names
        if name in context.cards and context.earlier.tags(context.cards[name])
    }


def _build(context: Context) -> None:
    shown = html()

    def opened(request: gr.Request) -> str:
        query = MetricQuery.from_params(request.query_params)
        return shown_page(context, query, root_of(request.headers))

    on_load(opened, shown)
    run_on_load(_COPY_AND_GO)


PAGE = Page("Metric", "metric", 16, _build, in_navigation=False)
