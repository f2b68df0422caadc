"""Links to another state of the same page, which a script follows without loading it again.

Such a link carries `data-go`, a name that is its own among the links of the page. Without the
script, or opened in another tab, it is an ordinary link to the same state.
"""

from __future__ import annotations

import gradio as gr

_FOLLOW = """element.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-go]');
  const elsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  if (!link || elsewhere) return;
  event.preventDefault();
  const bare = (name) => name.replace(/^un/, '');
  const again = new MutationObserver(() => {
    if (link.isConnected) return;
    again.disconnect();
    if (document.activeElement !== document.body) return;
    const made = [...document.querySelectorAll('a[data-go]')];
    const same = made.find((one) => one.dataset.go === link.dataset.go)
      ?? made.find((one) => bare(one.dataset.go) === bare(link.dataset.go));
    same?.focus({ preventScroll: true });
  });
  again.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => again.disconnect(), 20000);
  trigger('select', { query: new URL(link.href).search });
});"""
"""Follows a link, and gives the focus to the same link when it has been made anew."""


def followable() -> gr.HTML:
    """A piece of HTML whose `data-go` links make it fire `select`."""
    return gr.HTML(apply_default_css=False, js_on_load=_FOLLOW, elem_classes=["as-html"])


def followed_to(event: gr.EventData) -> str:
    """The query string of the link that was followed; empty where an event has none."""
    query = event._data.get("query", "") if isinstance(event._data, dict) else ""
    return query if isinstance(query, str) else ""
