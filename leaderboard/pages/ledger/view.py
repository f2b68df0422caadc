"""The public ledger as HTML."""

from __future__ import annotations

from collections.abc import Iterable

from leaderboard.accounts import is_key
from leaderboard.ledger.chronicle import BAN, BEGAN, JUDGES, POLICY, UNBAN, Line
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.history import moment
from leaderboard.pages.shown.markup import badge, notice, page, scroll_box, section, submitted, text
from leaderboard.pages.shown.states_shown import chip
from leaderboard.states import State
from leaderboard.text import count
from leaderboard.views.audit_log import Known, LedgerPage, LedgerQuery

_LEAD = (
    "Everything that was done here, in the order it was done: nothing is taken out, and each line "
    "holds the hash of the line before it and of the record it stands for. Private submissions "
    "appear by an opaque id."
)
WHOLE = "./v1/ledger.jsonl"
"""Byte for byte as it is kept, so that anyone can verify the chain."""
_STATES = frozenset(str(state) for state in State)
_COLUMNS = ("Line", "When (UTC)", "What", "To", "By")


def ledger_view(found: LedgerPage, query: LedgerQuery, known: Known) -> str:
    """The heading, whether the chain holds, the filter and the lines.

    Args:
        found: the page that is asked for.
        query: what is asked for.
        known: the whole chronicle, and up to when it was verified.
    """
    whole = f'<a class="as-button" download href="{WHOLE}">Whole ledger (JSONL)</a>'
    lines = f"<span>{count(found.found, 'line')}{' found' if query.filtered else ''}</span>"
    aside = f"{lines}{download_links(query.to_data())}{whole}"
    body = _table(found.lines) if found.lines else _nothing(query)
    return page(
        [
            f'<h1>Ledger</h1><p class="as-intro">{_LEAD}</p>{_chain(known)}',
            _filter(query),
            section("Lines, newest first", f"{body}{_pager(found, query)}", aside=aside),
        ]
    )


def _chain(known: Known) -> str:
    problems, verified = known.problems, known.verified
    if problems:
        shown = "".join(f"<li>{text(problem, limit=400)}</li>" for problem in problems[:20])
        more = f"<li>and {len(problems) - 20:,} more</li>" if len(problems) > 20 else ""
        return notice(
            f"<b>The ledger does not hold.</b> Something was changed outside of it:"
            f"<ul>{shown}{more}</ul>",
            "bad",
            role="alert",
        )
    if not known.lines:
        return notice("Nothing was done here yet.")
    said = "<b>It is being verified now.</b> Load the page again in a moment."
    if verified is not None:
        newer = len(known.lines) - verified.n
        said = (
            f"<b>Verified up to line {verified.n:,}</b>, against the chain and the records it tells "
            f"of, at {moment(verified.at)} UTC. {_newer(newer) if newer > 0 else ''}"
        )
    return notice(
        f"{said} Hash of line {known.lines[-1].n:,}: <code>{text(known.head)}</code> "
        '<span class="as-muted">Keep it elsewhere, and you can tell later whether a line before it '
        "was changed.</span>",
        "good" if verified else "info",
        role="status",
    )


def _newer(lines: int) -> str:
    follow = "follows from it and is" if lines == 1 else "follow from it and are"
    return (
        f"{count(lines, 'newer line')} {follow} held against the records with the next "
        "verification."
    )


def _filter(query: LedgerQuery) -> str:
    fields = "".join(
        f'<label><span>{label}</span><input name="{name}" value="{text(value)}" '
        f'maxlength="120" placeholder="{hint}" autocomplete="off"></label>'
        for label, name, value, hint in (
            ("Submission or account", "subject", query.subject, "id, hub:NAME or local:NAME"),
            ("Done by", "account", query.account, "hub:NAME, or a worker"),
        )
    )
    actions = ("", *State, BAN, UNBAN, POLICY, JUDGES, BEGAN)
    options = "".join(
        f'<option value="{text(action)}"{" selected" if action == query.action else ""}>'
        f"{text(action) or 'anything'}</option>"
        for action in actions
    )
    clear = '<a class="as-button" href="./ledger">Show all</a>' if query.filtered else ""
    return (
        f'<form class="as-asking" method="get" action="./ledger" role="search">{fields}'
        f'<label><span>What</span><select name="action">{options}</select></label>'
        f'<button type="submit" class="as-plain">Filter</button>{clear}</form>'
    )


def _table(lines: Iterable[Line]) -> str:
    columns = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in _COLUMNS)
    rows = "".join(map(_row, lines))
    return (
        f'{scroll_box("Lines of the ledger")}<table class="as-table as-lines" role="table">'
        '<caption class="as-sr">Lines of the ledger, newest first</caption>'
        f'<thead role="rowgroup"><tr role="row">{columns}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _row(line: Line) -> str:
    why = f'<span class="as-reason">{text(line.reason)}</span>' if line.reason else ""
    return (
        f'<tr role="row" id="line-{line.n}"><td role="cell" class="as-l-n">{line.n:,}</td>'
        f'<td role="cell" class="as-l-when">{moment(line.at)}</td>'
        f'<td role="cell" class="as-l-what">{_action(line.action)}</td>'
        f'<td role="cell" class="as-l-to">{_subject(line)}{why}</td>'
        f'<td role="cell" class="as-l-by">{_by(line.by)}</td></tr>'
    )


def _action(action: str) -> str:
    if action in _STATES:
        return chip(State(action))
    return badge(action[:40], "warn" if action == BAN else "info")


def _subject(line: Line) -> str:
    if not line.subject:
        return ""
    only = text(LedgerQuery(subject=line.subject).to_link())
    name = f'<a href="{only}"><code>{text(line.subject, limit=100)}</code></a>'
    if is_key(line.subject) or line.action not in _STATES:
        return name
    history = text(f"./submit?id={line.subject}")
    return f'{name} <a class="as-muted" href="{history}">history</a>'


def _by(by: str) -> str:
    only = text(LedgerQuery(account=by).to_link())
    return f'<a href="{only}">{submitted(by, limit=100)}</a>'


def _nothing(query: LedgerQuery) -> str:
    said = "No line is about that." if query.filtered else "No line yet."
    return f'<div class="as-empty"><p>{said}</p></div>'


def _pager(found: LedgerPage, query: LedgerQuery) -> str:
    if found.pages == 1:
        return ""
    newer = _step(query.at(found.page - 1), "Newer", "prev") if found.page > 1 else ""
    older = _step(query.at(found.page + 1), "Older", "next") if found.page < found.pages else ""
    return (
        f'<nav class="as-pager" aria-label="Pages">{newer}'
        f"<span>Page {found.page:,} of {found.pages:,}</span>{older}</nav>"
    )


def _step(query: LedgerQuery, label: str, rel: str) -> str:
    return f'<a class="as-button" rel="{rel}" href="{text(query.to_link())}">{label}</a>'
