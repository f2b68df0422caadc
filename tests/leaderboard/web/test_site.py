"""The site as a whole: what it loads, and what stays up while the store is out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import gradio as gr
import pytest

import leaderboard.web.site
from app import patiently
from benchmarks.errors import TransientError
from leaderboard.accounts import Account, Origin
from leaderboard.governance.authentication import Authentication, AuthenticationMethod
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.governance.rights import Action
from leaderboard.publication.reader import RETRY_AFTER_S, Reader
from leaderboard.web.submitting import act_on
from leaderboard.web.widgets import band, or_as_before, or_unread
from tests.kit import boards
from tests.kit.site import REPOSITORY, Caller, app_of, endpoints, served
from tests.kit.store import memory_store
from tests.leaderboard.web import own_submissions as sent
from tests.leaderboard.web.failing_store import Switch, failing

HERE = Authentication(AuthenticationMethod.LOCAL, local="root")
ROOT = Account(origin=Origin.LOCAL, name="root", operator=True)
OUT = "The Hub answers 503"


@pytest.mark.slow
def test_neither_the_site_nor_the_app_imports_torch_or_makes_a_store(tmp_path: Path) -> None:
    code = (
        "import sys, app; from tests.kit.site import *; from tests.kit.boards import *;"
        "app_of(fill(memory_store()), cards()); assert 'torch' not in sys.modules"
    )
    environment = {"PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path), "PATH": ""}
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment, timeout=280
    )
    assert not (tmp_path / ".assay").exists()


# While the store does not answer, pages stay up, say so, and never show old as new.


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
def site(switch: Switch) -> Iterator[tuple[gr.Blocks, str]]:
    app, options = app_of(
        failing(sent.give(boards.fill(memory_store()), ROOT), switch), boards.cards(), HERE
    )
    with served(app, options) as address:
        yield app, address


@pytest.mark.slow
def test_every_page_opens_while_the_store_is_out_and_says_of_when_it_is(
    site: tuple[gr.Blocks, str], switch: Switch
) -> None:
    app, address = site

    def opened(page: str) -> list[str]:
        """What the events answer that run when a page is opened."""
        caller = Caller(address)
        events = [e for e in endpoints(app) if e.page == page and not e.clicked and not e.queued]
        found = [caller.at_once(e.number, []) for e in events if e.inputs == 0]
        assert found, page
        return found

    pages = {event.page for event in endpoints(app)}
    for page in pages:
        assert not any("does not answer" in answer for answer in opened(page)), page
    switch.out = True
    for page in pages:
        answers = opened(page)
        assert all('"error"' not in answer for answer in answers), (page, answers)
        for words in ("as of 12:00 UTC", OUT):
            assert any(words in answer for answer in answers), page
    unread = "read at the moment.<"
    # Their content is kept; the others read when they are opened, and say that they cannot.
    for page in ("", "submit", "metric"):
        answers = opened(page)
        assert any("CLIPScore" in answer for answer in answers), page
        assert not any(unread in answer for answer in answers), page
    assert any(unread in answer for answer in opened("ledger"))


@pytest.mark.slow
def test_of_many_tabs_the_latest_hold_state_and_one_that_was_let_go_begins_anew(
    monkeypatch: pytest.MonkeyPatch, switch: Switch
) -> None:
    monkeypatch.setattr(leaderboard.web.site, "SESSIONS", 3)
    app, options = app_of(failing(boards.fill(memory_store()), switch), boards.cards())
    ticks = [
        number for number, event in app.fns.items()
        if event.page == "" and [type(one) for one in event.inputs] == [gr.State]
        and any(trigger == "tick" for _, trigger in event.targets)
    ]  # fmt: skip
    switch.out = True

    def says_the_outage(tab: Caller) -> bool:
        return any(OUT in tab.at_once(number, [None]) for number in ticks)

    with served(app, options) as address:
        first, *others = [Caller(address) for _ in range(8)]
        # A tab is told once; that it was is its state.
        assert [says_the_outage(first) for _ in range(2)] == [True, False]
        assert all(says_the_outage(tab) for tab in others)
        kept = app.app.state_holder.session_data
        assert len(kept) == 3
        assert not any(settings for tab in kept.values() for settings in tab.config_values.values())
        assert [says_the_outage(first) for _ in range(2)] == [True, False]


@pytest.mark.slow
def test_an_app_is_made_while_the_store_is_out_and_opening_the_store_waits_for_it(
    switch: Switch,
) -> None:
    paused: list[float] = []
    said: list[str] = []
    store = failing(boards.fill(memory_store()), switch)
    switch.out = True
    assert isinstance(app_of(store, boards.cards())[0], gr.Blocks)

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        switch.out = len(paused) < 7

    assert patiently(store.public.head, sleep=sleep, say=said.append) == store.public.head()
    assert paused == [5, 10, 20, 40, 60, 60, 60] and all(OUT in line for line in said)


def test_an_act_says_that_it_failed_and_nothing_is_changed(switch: Switch) -> None:
    store = failing(sent.give(boards.fill(memory_store()), ROOT), switch)
    context = boards.site_of(store, way=HERE)
    before = store.public.head()
    switch.out = True
    for action, own in ((Action.WITHDRAW, sent.QUEUED), (Action.HIDE, sent.NEW)):
        said = act_on(
            context,
            OperatorActions(store, boards.cards(), lambda: boards.NOW),
            ROOT,
            action,
            own,
            reason="why",
        )
        assert "outside failed" in said and OUT in said
    switch.out = False
    assert store.public.head() == before


def test_the_band_names_the_moment_of_which_things_are_shown(switch: Switch) -> None:
    steady, now = [0.0], [datetime(2026, 3, 1, 12, 3, tzinfo=UTC)]
    store = failing(boards.fill(memory_store()), switch)
    reader = Reader(store, boards.cards(), clock=lambda: now[0], steady=lambda: steady[0])
    assert band(reader, now[0]) == ""
    switch.out = True
    now[0] += timedelta(minutes=50)
    assert "since 12:03 UTC; shown as of 12:03 UTC" in band(reader, now[0])
    now[0] += timedelta(days=1)
    assert "as of 2026-03-01 12:03 UTC" in band(reader, now[0])
    switch.out = False
    steady[0] += RETRY_AFTER_S
    assert band(reader, now[0]) == ""


def test_what_is_shown_stays_where_it_cannot_be_renewed() -> None:
    def fails(*given: object) -> tuple[str, str]:
        raise TransientError("hub_unavailable", OUT)

    assert or_as_before(fails, 2)() == or_as_before(fails, 2)(1)
    assert len(or_as_before(fails, 2)(1)) == 2 and or_as_before(fails, 2)()[0] == gr.skip()
    with gr.Blocks():
        outputs = [gr.State(""), gr.HTML()]
    first, second = or_unread(fails, outputs)()
    assert first == gr.skip() and OUT in second
    assert or_unread(lambda: "fine", gr.HTML())() == "fine"
