"""Redirects from addresses that pages had before, with their queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from leaderboard.views.boards import TAB

_PLAIN = "~:,/"
_BENCHMARK = {"benchmark": "tab"}


@dataclass(frozen=True)
class Redirect:
    """Where an address leads now."""

    to: str  # path of the page below the root
    # parameters of the old query to those of the new; empty: it is dropped. Others stay
    rename: Mapping[str, str] = field(default_factory=dict)
    # what stands before the value of a parameter of the new query
    prefix: Mapping[str, str] = field(default_factory=dict)
    # what the query says now, where the old one does not
    add: Mapping[str, str] = field(default_factory=dict)
    permanent: bool = True  # 308; otherwise 302


REDIRECTS: Mapping[str, Redirect] = {
    "model-pair": Redirect("models", add={"view": "two"}),
    "prompt": Redirect("models", rename={"id": "prompt"}, add={"view": "prompt"}),
    "seeds": Redirect("models", add={"view": "seeds"}),
    "items": Redirect("compare", add={"view": "examples"}),
    "mine": Redirect("submit", rename={"submission": "id", "all": ""}),
    "queue": Redirect("submit", rename={"submission": "id"}),
    "boards": Redirect("", _BENCHMARK, {"tab": TAB}, {"tab": TAB}),
    "moved": Redirect("", _BENCHMARK, {"tab": TAB}, {"tab": TAB, "view": "changes"}),
    "index": Redirect(""),
    "skills": Redirect("", rename={"cost": "by"}, add={"tab": "skill:"}),
    "trust": Redirect("", rename={"page": ""}),
}
"""Path that a page had to where it is."""


def redirected(path: str, query: str, table: Mapping[str, Redirect] = REDIRECTS) -> str | None:
    """The address, relative to the one that was asked for; None where that leads nowhere else."""
    found = table.get(path.strip("/"))
    if found is None:
        return None
    given = [
        (found.rename.get(name, name), value)
        for name, value in parse_qsl(query, keep_blank_values=True)
    ]
    kept = [(name, found.prefix.get(name, "") + value) for name, value in given if name]
    names = {name for name, _ in kept}
    kept += [(name, value) for name, value in found.add.items() if name not in names]
    asked = f"?{urlencode(kept, safe=_PLAIN)}" if kept else ""
    # Relative, since a proxy may serve the site below a path that it does not tell.
    return f"{'../' * (path.count('/') - 1) or './'}{found.to}{asked}"


class Redirects:
    """Middleware that answers addresses of before."""

    def __init__(self, app: ASGIApp, table: Mapping[str, Redirect] = REDIRECTS) -> None:
        self._app, self._table = app, table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}:
            query = scope["query_string"].decode("latin-1")
            to = redirected(scope["path"], query, self._table)
            if to is not None:
                lasting = self._table[scope["path"].strip("/")].permanent
                await RedirectResponse(to, 308 if lasting else 302)(scope, receive, send)
                return
        await self._app(scope, receive, send)
