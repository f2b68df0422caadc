"""Answers of the live views of the Metrics place: which are kept, until when, and what a warm one costs."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from starlette.datastructures import QueryParams

from leaderboard.web.pages.metrics_page import MetricsPlace
from tests.conftest import REPOSITORY
from tests.kit.boards import fill, keep, site_of
from tests.kit.store import memory_store
from tests.leaderboard.web.failing_store import Switch, failing

SITE = "http://made.up/"
MOST_MODULES = 15
TABS = ("", "tab=skill:counting", "tab=benchmark:ratings", "tab=benchmark:ratings&skill=counting")


@pytest.mark.parametrize("query", TABS)
def test_the_same_address_is_answered_once_until_something_is_published(query: str) -> None:
    store, params = fill(memory_store()), QueryParams(query)
    place = MetricsPlace(site_of(store))
    first, below = place.first(params), place.second(params, SITE)
    assert place.first(QueryParams(query)) is first
    assert place.second(params, SITE) == below
    assert (place.second(params, SITE) is below) == bool(query)  # The first tells the time.
    assert place.first(QueryParams(f"{query}&q=clip&search=clip")) != first
    keep(store, {"policy/made-up.txt": b"1"})
    again = place.first(params)
    assert again is not first
    # Citations name the revision of the store; nothing else has changed.
    revision = r"Revision \d+|version = &#123;\d+&#125;|version: \S+"
    assert re.sub(revision, "", again.html) == re.sub(revision, "", first.html)
    assert replace(again, html="") == replace(first, html="")


def test_programs_name_the_address_by_which_a_visitor_came() -> None:
    place = MetricsPlace(site_of(fill(memory_store())))
    params = QueryParams("tab=benchmark:ratings")
    for site in (SITE, "http://another.one/"):
        assert site in place.second(params, site).html


def test_what_is_very_long_and_what_is_read_during_an_outage_is_not_kept() -> None:
    switch = Switch()
    place = MetricsPlace(site_of(failing(fill(memory_store()), switch)))
    long, short = QueryParams(f"q={'x' * 600}"), QueryParams("")
    first = place.first(short)
    assert place.first(long) is not place.first(long)
    switch.out = True
    during = place.first(short)
    assert during == first and during is not first
    assert place.first(short) is not during


@pytest.mark.parametrize("query", TABS)
def test_a_warm_answer_enters_few_modules(query: str) -> None:
    place, params = MetricsPlace(site_of(fill(memory_store()))), QueryParams(query)
    place.first(params)
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(REPOSITORY / "leaderboard"):
            entered.add(str(path.relative_to(REPOSITORY)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        place.first(params)
    finally:
        sys.setprofile(before)
    assert 0 < len(entered) <= MOST_MODULES, sorted(entered)
