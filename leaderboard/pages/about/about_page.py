"""Page of methods: the meaning of every figure."""

from __future__ import annotations

from leaderboard.pages.about.glossary import about
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.markup import page
from leaderboard.pages.shown.widgets import html, run_on_load

# The browser looks for the place a link names before the page is there.
_GO_TO_PLACE = """() => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place) place.scrollIntoView();
}"""


def _build(context: Context) -> None:
    html(page(about(context.cards.values())))
    run_on_load(_GO_TO_PLACE)


PAGE = Page("About", "about", 40, _build)
