"""Replies of chat models on disk, by the content of their requests.

A board can so be computed again after a model is retired, and a run that stopped goes on without
paying twice. Nothing that can be read is ever let go of. Any number of threads and processes may share
a file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from benchmarks.errors import PlatformError

_WAIT_S = 60.0
_TABLES = """
create table if not exists replies (
    digest text primary key, endpoint text not null, model text not null,
    request text not null, reply text not null, usd real not null, made_at text not null
) strict;
create table if not exists refusals (
    digest text primary key, endpoint text not null, model text not null,
    request text not null, problem text not null, usd real not null, made_at text not null
) strict;
create table if not exists spending (endpoint text primary key, usd real not null) strict;
"""


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reply with its request, both as JSON; images stand in a request by their hashes."""

    digest: str  # SHA-256 of the request, in hex
    endpoint: str
    model: str
    request: str
    reply: str
    usd: float
    made_at: str  # ISO 8601, UTC


class ReplyCache:
    """The file of replies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as database:
            path.chmod(0o600)  # Prompts of withheld benchmarks may stand there.
            database.execute("pragma journal_mode = wal")
            database.executescript(_TABLES)

    def find(self, digest: str) -> tuple[str, float] | None:
        """The reply to a request, as JSON, and what it cost; None where it was never made."""
        with self._opened() as database:
            asked = "select reply, usd from replies where digest = ?"
            found = database.execute(asked, (digest,)).fetchone()
        return None if found is None else (str(found[0]), float(found[1]))

    def add(self, kept: KeptReply) -> None:
        """Keep a reply and count its price, in one transaction.

        Where another process has kept one meanwhile, that one stays; both were paid.
        """
        with self._opened() as database:
            values = astuple(kept)
            database.execute("insert or ignore into replies values (?, ?, ?, ?, ?, ?, ?)", values)
            _spend(database, kept.endpoint, kept.usd)

    def remove(self, digest: str) -> None:
        """Let go of the reply to a request; what it cost stays counted."""
        with self._opened() as database:
            database.execute("delete from replies where digest = ?", (digest,))

    def find_refusal(self, digest: str) -> str | None:
        """Why a request has no reply; None where it was never refused for good."""
        with self._opened() as database:
            asked = "select problem from refusals where digest = ?"
            found = database.execute(asked, (digest,)).fetchone()
        return None if found is None else str(found[0])

    def add_refusal(self, refused: KeptReply) -> None:
        """Keep why a request has no reply, which stands in the place of one."""
        with self._opened() as database:
            values = astuple(refused)
            database.execute("insert or replace into refusals values (?, ?, ?, ?, ?, ?, ?)", values)

    def spend(self, endpoint: str, usd: float) -> None:
        """Count what a request has cost."""
        with self._opened() as database:
            _spend(database, endpoint, usd)

    def spent_usd(self, endpoint: str) -> float:
        """What all requests to an endpoint have cost."""
        with self._opened() as database:
            asked = "select usd from spending where endpoint = ?"
            found = database.execute(asked, (endpoint,)).fetchone()
        return 0.0 if found is None else float(found[0])

    def dearest_usd(self, endpoint: str) -> float:
        """What the dearest reply that is kept of an endpoint cost; 0 where none is."""
        with self._opened() as database:
            asked = "select max(usd) from replies where endpoint = ?"
            (found,) = database.execute(asked, (endpoint,)).fetchone()
        return float(found or 0.0)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection for one act: committed where it ends well, and closed."""
        try:
            with closing(sqlite3.connect(self._path, timeout=_WAIT_S)) as connection, connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise PlatformError(
                "replies_unusable",
                f"The file of replies {self._path.name} cannot be used: {error}.",
                "Nothing is asked without it, for replies are paid for. Give the disk room, or "
                "name another file with `replies` in the file of endpoints.",
            ) from error


def _spend(database: sqlite3.Connection, endpoint: str, usd: float) -> None:
    database.execute(
        "insert into spending values (?, ?) "
        "on conflict (endpoint) do update set usd = usd + excluded.usd",
        (endpoint, usd),
    )
