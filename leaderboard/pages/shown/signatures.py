"""Attribution of entries, with the account behind a name, so that no name poses as somebody."""

from __future__ import annotations

from leaderboard.pages.shown.markup import submitted, text
from leaderboard.publication.identities import shown_account
from leaderboard.publication.snapshot import Entry

_LONGEST_KEY = 110


def signature(signed: str, account: str, *, limit: int = 40) -> str:
    """A signature and its account; the account alone where it is signed with its own name.

    Args:
        signed: as its author wrote it.
        account: key of the account that sent it.
        limit: most characters of the signature.
    """
    key = shown_account(account)
    name = submitted(signed, limit=limit) if signed else ""
    if not key:
        return name
    mark = f'<span class="as-account">{text(key, limit=_LONGEST_KEY)}</span>'
    return mark if not signed or signed == key.partition(":")[2] else f"{name} {mark}"


def signed_by(entry: Entry) -> str:
    """Who sent an entry, beside its name; nothing of those without an account to be shown."""
    if not shown_account(entry.account):
        return ""
    return f' <span class="as-by">by {signature(entry.submitter, entry.account)}</span>'
