"""What is wrong with an open page on a desk and on a phone, in light and in dark."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.kit.accessibility import RULES

HEIGHT = 844
VIEWS = ((1280, "light"), (1280, "dark"), (390, "dark"), (390, "light"))
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
"""The rules that a scheme can break: nothing but tokens of colours changes with it."""
_EXAMPLES = 3
"""So many texts of a colour and size on the same ground are looked at, on all pages together."""
_MARK_NEW_LOOKS = """([known, examples]) => {
  const grounds = new Map(), marked = [];
  const ground = (element) => {
    if (!element) return '';
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const own = `${style.backgroundColor} ${style.backgroundImage} ${style.opacity}`;
      const around = ground(element.parentElement);
      grounds.set(element, own === 'rgba(0, 0, 0, 0) none 1' ? around : `${around}/${own}`);
    }
    return grounds.get(element);
  };
  const written = (element) => element.matches('input, select, textarea')
    || [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  for (const element of document.body.querySelectorAll('*')) {
    element.removeAttribute('data-new-look');
    if (!written(element) || !element.checkVisibility() || element.offsetWidth <= 1) continue;
    const style = getComputedStyle(element), around = getComputedStyle(element.parentElement);
    const look = [
      element.tagName, style.color, style.fill, style.fontSize, style.fontWeight, style.textDecorationLine,
      around.color, Boolean(element.closest(':disabled, [aria-disabled]')), ground(element),
    ].join('|');
    known[look] = (known[look] ?? 0) + 1;
    if (known[look] > examples) continue;
    element.setAttribute('data-new-look', '');
    marked.push(look);
  }
  return marked;
}"""
"""Contrast takes most of the time of axe, and follows from what is compared here."""
_OVERFLOWING = """() => [...document.querySelectorAll('.as-board td:not(.as-c-axis), .as-board tbody th,'
    + '.as-queue td, #board td, #board dd, .as-page figcaption')]
  .filter(cell => getComputedStyle(cell).display !== 'none' && cell.scrollWidth > cell.clientWidth + 1)
  .map(cell => cell.textContent)"""
"""Cells whose content runs into the next one."""
RECORD_SHIFT = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const move of list.getEntries()) if (!move.hadRecentInput) window.shift += move.value;
}).observe({ type: 'layout-shift', buffered: true });"""
"""To be added to a page before it is opened, for `shift_of`."""
_SHIFT = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => done(window.shift))))"""
_RUN = """async ([context, options]) => (await axe.run(context, options)).violations
  .map(rule => `${rule.id}: ${rule.nodes[0].html.slice(0, 200)}`)"""


@dataclass(frozen=True)
class Inspector:
    """Looks at pages in every view; what many pages share, it looks at on the first of them.

    Attributes:
        looks: combinations of a text's colour, size and ground to how many were looked at.
    """

    looks: Counter[str] = field(default_factory=Counter)

    def problems(self, page: Page) -> list[str]:
        """Rules of accessibility that an open page breaks in a view, and what does not fit there."""
        page.evaluate(Axe().axe_script)
        problems: list[str] = []
        for width, scheme in VIEWS:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.evaluate("dark => document.body.classList.toggle('dark', dark)", scheme == "dark")
            broken = self._unreadable(page)
            if scheme == "light":
                broken += _broken_otherwise(page, width)
            problems += [f"{width} {scheme}: {problem}" for problem in broken]
        return problems

    def _unreadable(self, page: Page) -> list[str]:
        marked = page.evaluate(_MARK_NEW_LOOKS, [dict(self.looks), _EXAMPLES])
        self.looks.update(marked)
        if not marked:
            return []
        return _axe(page, "[data-new-look]", {"type": "rule", "values": COLOUR_RULES})


def shift_of(page: Page) -> float:
    """How far content has moved since the page was opened and until its next frame."""
    return float(page.evaluate(_SHIFT))


def _broken_otherwise(page: Page, width: int) -> list[str]:
    colours = {rule: {"enabled": False} for rule in COLOUR_RULES}
    problems = _axe(page, "html", {"type": "tag", "values": RULES}, rules=colours)
    problems += [f"{cell} overflows" for cell in page.evaluate(_OVERFLOWING)]
    if page.evaluate("document.documentElement.scrollWidth") > width:
        problems.append("wider than the screen")
    return problems


def _axe(page: Page, within: str, run_only: dict[str, Any], **options: Any) -> list[str]:
    options |= {"resultTypes": ["violations"], "runOnly": run_only, "preload": False}
    broken: list[str] = page.evaluate(_RUN, [{"include": [[within]]}, options])
    return broken
