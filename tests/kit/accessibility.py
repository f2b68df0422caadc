"""Rules of accessibility that a page in a browser breaks, by axe."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def broken_rules(page: Page) -> list[str]:
    """Each rule that is broken, with the first element that does."""
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": RULES}}
    violations = Axe().run(page, options=options).response["violations"]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in violations]
