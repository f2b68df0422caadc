"""While the store does not answer, pages stay up, say so, and never show old as new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import gradio as gr
import pytest

from app import patiently
from benchmarks.errors import TransientError
from leaderboard.governance.accounts import Account, Origin
from leaderboard.governance.acts import Acts
from leaderboard.governance.rights import Action
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.pages.mine.acts import Deed, act_on
from leaderboard.pages.outage import band, or_as_before, or_unread
from leaderboard.pages.page import Context
from leaderboard.pages.reading import RETRY_AFTER_S, Reader
from leaderboard.pages.site import create_app, launch_options
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.calling import Caller, endpoints
from tests.leaderboard.pages.failing_store import Switch, failing
from tests.leaderboard.pages.mine.own_submissions import NEW, QUEUED, give
from tests.leaderboard.pages.synthetic import NOW, StubDesk, cards, fill

pytestmark = pytest.mark.slow

HERE = SignIn(Way.LOCAL, local="root")
ROOT = Account(origin=Origin.LOCAL, name="root", operator=True)
SHOWS_WHAT_WAS_READ = ("", "queue", "boards", "index", "trust")
"""Pages whose content is kept; the others read when they are opened, and say that they cannot."""


@dataclass
class Site:
    """A served site whose store can be put out.

    Attributes:
        app: what is served.
        address: where.
        switch: puts the store out.
    """

    app: gr.Blocks
    address: str
    switch: Switch

    def opened(self, page: str) -> list[str]:
        """What the events answer that run when a page is opened."""
        caller = Caller(self.address)
        loads = [
            e for e in endpoints(self.app)
            if e.page == page and not e.clicked and e.inputs == 0 and not e.queued
        ]  # fmt: skip
        assert loads, page
        return [caller.at_once(load.number, []) for load in loads]


@pytest.fixture
def site() -> Iterator[Site]:
    switch = Switch()
    store = failing(give(fill(memory_store()), ROOT), switch)
    app = create_app(store, StubDesk(), cards(), clock=lambda: NOW, sign_in=HERE)
    _, address, _ = app.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **launch_options(HERE)
    )
    yield Site(app, str(address), switch)
    app.close()


def pages(site: Site) -> set[str]:
    return {event.page for event in endpoints(site.app)}


def test_every_page_opens_while_the_store_is_out_and_says_of_when_it_is(site: Site) -> None:
    before = {page: site.opened(page) for page in pages(site)}
    assert not any("does not answer" in answer for all_ in before.values() for answer in all_)
    site.switch.out = True
    for page in pages(site):
        answers = site.opened(page)
        assert all('"error"' not in answer for answer in answers), (page, answers)
        assert any("shown as of 12:00 UTC" in answer for answer in answers), page
        assert any("The Hub answers 503" in answer for answer in answers), page
    for page in SHOWS_WHAT_WAS_READ:
        answers = site.opened(page)
        assert any("CLIPScore" in answer or "No index yet" in answer for answer in answers), page
        assert not any("cannot be read at the moment.<" in answer for answer in answers), page
    assert any("cannot be read at the moment.<" in answer for answer in site.opened("ledger"))


def test_an_app_that_is_started_while_the_store_is_out_waits_for_it() -> None:
    switch = Switch()
    paused: list[float] = []
    said: list[str] = []
    store = failing(fill(memory_store()), switch)
    switch.out = True

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        switch.out = len(paused) < 7

    app = patiently(
        lambda: create_app(store, StubDesk(), cards(), clock=lambda: NOW),
        sleep=sleep, say=said.append,
    )  # fmt: skip
    assert isinstance(app, gr.Blocks)
    assert paused == [5, 10, 20, 40, 60, 60, 60]
    assert all("The Hub answers 503" in line for line in said)


def test_an_act_says_that_it_failed_and_nothing_is_changed() -> None:
    switch = Switch()
    store = failing(give(fill(memory_store()), ROOT), switch)
    context = Context(
        Reader(store, cards()), store.live, StubDesk(), cards(), lambda: NOW, store, HERE
    )
    before = store.public.head()
    switch.out = True
    for action, own in ((Action.WITHDRAW, QUEUED), (Action.HIDE, NEW)):
        said = act_on(context, Acts(store, cards(), lambda: NOW), ROOT, Deed(action, own, "why"))
        assert "Something outside failed" in said
        assert "The Hub answers 503" in said
    switch.out = False
    assert store.public.head() == before


def test_the_band_names_the_moment_of_which_things_are_shown_until_the_store_answers() -> None:
    switch, steady = Switch(), [0.0]
    now = [datetime(2026, 3, 1, 12, 3, tzinfo=UTC)]
    store = failing(fill(memory_store()), switch)
    reader = Reader(store, cards(), clock=lambda: now[0], steady=lambda: steady[0])
    assert band(reader, now[0]) == ""
    switch.out = True
    now[0] += timedelta(minutes=50)
    assert "does not answer since 12:03 UTC; shown as of 12:03 UTC" in band(reader, now[0])
    now[0] += timedelta(days=1)
    assert "as of 2026-03-01 12:03 UTC" in band(reader, now[0])
    switch.out = False
    steady[0] += RETRY_AFTER_S
    assert band(reader, now[0]) == ""


def test_what_is_shown_stays_where_it_cannot_be_renewed() -> None:
    def fails(*given: object) -> tuple[str, str]:
        raise TransientError("hub_unavailable", "The Hub answers 503.")

    assert len(or_as_before(fails, 2)(1)) == 2
    assert all(kept == gr.skip() for kept in or_as_before(fails, 2)())
    with gr.Blocks():
        outputs = [gr.State(""), gr.HTML()]
    first, second = or_unread(fails, outputs)()
    assert first == gr.skip()
    assert "The Hub answers 503" in second
    assert or_unread(lambda: "fine", gr.HTML())() == "fine"
