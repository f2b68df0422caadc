"""The navigation above every page: a few direct links, and the rest in groups that unfold.

It is put before everything else by a script in the head, so that it stands outside Gradio's `main`
and is there before Gradio is. Links and groups themselves need no script: the groups are `details`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leaderboard.pages.page import Page
from leaderboard.pages.shown.markup import text

DIRECT = ("", "index", "boards", "models", "skills", "compare")
"""Paths of the pages that are one press away, in this order."""
SUBMITTING = ("submit", "mine", "queue")
"""Paths of the pages for those who submit."""
_ABOUT = "About"


@dataclass(frozen=True)
class Group:
    """Pages under one word.

    Attributes:
        title: the word; empty for those that stand for themselves.
        pages: in order; none is in two groups.
    """

    title: str
    pages: tuple[Page, ...]


def groups(pages: Iterable[Page]) -> tuple[Group, ...]:
    """The pages of the navigation; one that no list names comes last, among those about Assay."""
    listed = {page.path: page for page in pages if page.in_navigation}
    named = [(title, _of(paths, listed)) for title, paths in (("", DIRECT), ("Submit", SUBMITTING))]
    rest = tuple(page for path, page in listed.items() if path not in {*DIRECT, *SUBMITTING})
    every = (*(Group(title, of) for title, of in named), Group(_ABOUT, rest))
    return tuple(group for group in every if group.pages)


def navigation(pages: Iterable[Page]) -> str:
    """The HTML: a link past it, the name of the site, direct links, groups."""
    parts = []
    for group in groups(pages):
        links = "".join(f"<li>{_link(page)}</li>" for page in group.pages)
        # One name for all: the browser closes one group when another is opened.
        parts.append(
            f'<li><details name="as-nav"><summary>{text(group.title)}</summary>'
            f"<ul>{links}</ul></details></li>"
            if group.title
            else links
        )
    return (
        '<header class="as-top"><a class="as-skip" href="#as-main">Skip to the content</a>'
        '<nav aria-label="Pages of this site"><a class="as-brand" href="./">Assay</a>'
        f'<ul class="as-nav">{"".join(parts)}</ul></nav></header>'
    )


def navigation_script(pages: Sequence[Page]) -> str:
    """The script for the head of every page."""
    # Inside a script only `</` could end it too early; JSON may hold it as `<\/`.
    content = json.dumps(navigation(pages)).replace("</", "<\\/")
    return f"<script>{_PUT.replace('CONTENT', content)}</script>"


def _of(paths: Iterable[str], listed: dict[str, Page]) -> tuple[Page, ...]:
    return tuple(listed[path] for path in paths if path in listed)


def _link(page: Page) -> str:
    return f'<a href="./{text(page.path)}">{text(page.title)}</a>'


# Gradio puts the head together in the browser, so the body may be there already.
_PUT = """
(() => {
const put = () => {
  document.body.insertAdjacentHTML('afterbegin', CONTENT);
  const top = document.querySelector('.as-top');
  const plain = (path) => path.replace(/\\/+$/, '') || '/';
  for (const link of top.querySelectorAll('.as-nav a')) {
    if (plain(new URL(link.href).pathname) !== plain(location.pathname)) continue;
    link.setAttribute('aria-current', 'page');
    link.closest('details')?.querySelector('summary').setAttribute('data-holds-current', '');
  }
  const opened = () => top.querySelectorAll('details[open]');
  document.addEventListener('click', (event) => {
    for (const group of opened()) if (!group.contains(event.target)) group.open = false;
  });
  top.addEventListener('keydown', (event) => {
    const group = event.key === 'Escape' && event.target.closest('details[open]');
    if (group) { group.open = false; group.querySelector('summary').focus(); }
  });
  top.querySelector('.as-skip').addEventListener('click', (event) => {
    // The base address of a page is the root of the site, so its own fragment would lead there.
    event.preventDefault();
    const main = document.querySelector('main');
    main?.setAttribute('tabindex', '-1');
    main?.focus();
  });
};
if (document.readyState === 'loading') addEventListener('DOMContentLoaded', put); else put();
})();
"""
