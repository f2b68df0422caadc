"""Query of the ledger page, from an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from leaderboard.ledger.chronicle import Line

PER_PAGE = 50
_LONGEST = 120
_MOST_PAGES = 10**9


@dataclass(frozen=True)
class LedgerQuery:
    """Which lines, and which page of them.

    Attributes:
        subject: submission or account that something was done to; empty for all.
        account: who did it; empty for all.
        action: what was done; empty for all.
        page: from 1, newest lines first.
    """

    subject: str = ""
    account: str = ""
    action: str = ""
    page: int = 1

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> LedgerQuery:
        """Read an address; what makes no sense in it is left out."""
        page = str(params.get("page", "1"))
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 10 else 1
        return cls(
            subject=_asked(params, "subject"),
            account=_asked(params, "account"),
            action=_asked(params, "action"),
            page=min(max(number, 1), _MOST_PAGES),
        )

    def to_link(self) -> str:
        """The address of this view."""
        fields = {"subject": self.subject, "account": self.account, "action": self.action}
        asked = {name: value for name, value in fields.items() if value}
        if self.page > 1:
            asked["page"] = str(self.page)
        return f"./ledger?{urlencode(asked)}" if asked else "./ledger"

    def to_data(self) -> str:
        """The address of the same lines in the API."""
        return f"./v1/{self.to_link().removeprefix('./')}"

    @property
    def filtered(self) -> bool:
        """Whether some lines are left out."""
        return bool(self.subject or self.account or self.action)

    def at(self, page: int) -> LedgerQuery:
        """The same lines on another page."""
        return replace(self, page=page)

    def matches(self, line: Line) -> bool:
        """Whether a line is asked for."""
        return all(
            not wanted or wanted == found
            for wanted, found in (
                (self.subject, line.subject),
                (self.account, line.by),
                (self.action, line.action),
            )
        )


@dataclass(frozen=True)
class LedgerPage:
    """Some of the lines, newest first.

    Attributes:
        lines: on this page.
        found: how many are asked for, on all pages.
        page: from 1.
        pages: how many there are; at least one.
    """

    lines: tuple[Line, ...]
    found: int
    page: int
    pages: int


def page_of(lines: Sequence[Line], query: LedgerQuery) -> LedgerPage:
    """The page that is asked for, or the last one where it lies beyond.

    Args:
        lines: the whole chronicle, oldest first.
        query: what is asked for.
    """
    found = [line for line in reversed(lines) if query.matches(line)]
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(query.page, pages)
    return LedgerPage(
        tuple(found[(page - 1) * PER_PAGE : page * PER_PAGE]), len(found), page, pages
    )


def _asked(params: Mapping[str, str], name: str) -> str:
    return str(params.get(name, "")).strip()[:_LONGEST]
