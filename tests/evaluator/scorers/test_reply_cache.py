"""The file of replies: a reply and its price are there together, or neither is."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.scorers.endpoints import Endpoint, EndpointModel
from evaluator.scorers.models.endpoint_requests import Budget
from evaluator.scorers.models.reply_cache import KeptReply, ReplyCache
from tests.evaluator.scorers.common import refusal

REPLY = KeptReply("digest", "here", "model", "{}", '{"a": 1}', 3.5, "2026-01-01T00:00:00+00:00")


def test_a_reply_whose_price_cannot_be_counted_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "replies.sqlite"
    kept = ReplyCache(file)
    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "create trigger stopped before insert on spending begin select raise(abort, 'no'); end"
        )
    with refusal("replies_unusable", "replies.sqlite", kind=PlatformError):
        kept.add(REPLY)
    assert (kept.find("digest"), kept.spent_usd("here")) == (None, 0.0)
    with closing(sqlite3.connect(file)) as database:
        database.execute("drop trigger stopped")
    kept.add(REPLY)
    assert (kept.find("digest"), kept.spent_usd("here")) == ((REPLY.reply, 3.5), 3.5)


def test_a_reply_that_is_there_counts_on_and_both_were_paid(tmp_path: Path) -> None:
    kept = ReplyCache(tmp_path / "replies.sqlite")
    for _ in range(2):
        kept.add(REPLY)
    kept.spend("here", 1.0)
    assert (kept.find("digest"), kept.spent_usd("here")) == ((REPLY.reply, 3.5), 8.0)


@pytest.mark.parametrize(("each_usd", "counted"), [(None, 3.5), (0.25, 0.25), (0.0, 0.0)])
def test_a_request_without_a_price_counts_as_the_dearest_reply_that_is_kept(
    tmp_path: Path, each_usd: float | None, counted: float
) -> None:
    kept = ReplyCache(tmp_path / "replies.sqlite")
    kept.add(REPLY)
    kept.add(replace(REPLY, digest="other", endpoint="there", usd=7.0))
    priced = EndpointModel(input_usd=1.0, output_usd=1.0)
    endpoint = Endpoint(
        name="here", address="http://127.0.0.1", budget_usd=9.0, models={"model": priced}
    )
    budget = Budget(endpoint, kept, each_usd)
    with budget.request():
        budget.count_dearest()
    assert budget.spent_usd() == REPLY.usd + counted


def test_a_request_whose_price_is_counted_is_under_way_no_more(tmp_path: Path) -> None:
    """Else it would count twice until its thread goes on, and the budget end too early."""
    priced = EndpointModel(input_usd=1.0, output_usd=1.0)
    endpoint = Endpoint(
        name="here", address="http://127.0.0.1", budget_usd=2 * REPLY.usd, models={"model": priced}
    )
    budget = Budget(endpoint, ReplyCache(tmp_path / "replies.sqlite"))

    def another(digest: str) -> None:
        with budget.request():
            budget.keep(replace(REPLY, digest=digest))

    with ThreadPoolExecutor(1) as pool, budget.request():
        budget.keep(REPLY)
        pool.submit(another, "second").result()
        with refusal("budget_spent", "here", kind=PlatformError):
            pool.submit(another, "third").result()
    assert budget.spent_usd() == 2 * REPLY.usd
