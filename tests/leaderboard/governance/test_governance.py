"""Any sequence of acts by anyone leaves boards, queue and chronicle in agreement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from benchmarks.errors import SubmitterError
from leaderboard.accounts import Account
from leaderboard.governance.rights import Action, Own, actions
from leaderboard.ledger.audit_log import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import read_bans
from leaderboard.ledger.versions import standing_over
from leaderboard.states import IN_WORK, State
from tests.kit.governed import ADA, BOB, OLGA, House
from tests.kit.tiers import nightly

ACCOUNTS = st.sampled_from([ADA, BOB, OLGA])
AUTHORS = st.sampled_from([ADA, ADA, BOB])
NAMES = st.sampled_from(["grey", "grey", "grey", "blue"])
BENCHMARKS = st.sampled_from([("open",), ("closed",), ("open", "closed")])
REFUSALS = {
    "not_yours",
    "not_operator",
    "not_now",
    "reason_missing",
    "already_banned",
    "not_banned",
    "bad_account",
}


class Governance(RuleBasedStateMachine):
    """Authors, an operator and a worker, all at it."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House()
        # Two versions and a third that is private, so that few steps lead far.
        self.names = [self.house.done(private=private) for private in (False, False, True)]

    @rule(account=ACCOUNTS, name=NAMES, benchmarks=BENCHMARKS, private=st.booleans())
    def send(self, account: Account, name: str, benchmarks: tuple[str, ...], private: bool) -> None:
        self.names.append(self.house.send(account, name, private=private, benchmarks=benchmarks))

    @rule(account=AUTHORS, name=NAMES, benchmarks=BENCHMARKS, private=st.booleans())
    def send_and_finish(
        self, account: Account, name: str, benchmarks: tuple[str, ...], private: bool
    ) -> None:
        self.names.append(self.house.done(account, name, private=private, benchmarks=benchmarks))

    @rule(data=st.data(), account=AUTHORS | st.just(OLGA))
    def act_within_rights(self, data: st.DataObject, account: Account) -> None:
        """Most acts drawn at random are refused; of these none is."""
        may = [
            (name, action)
            for name in self.names
            for action in actions(self.house.ledger.whole_status(name), account)
        ]
        if may:
            name, action = data.draw(st.sampled_from(may))
            self.try_to(action, name, account)

    @rule(ends=st.sampled_from(["finish", "finish", "finish", "fail", ""]))
    def work(self, ends: str) -> None:
        for name in self.names:
            state = self.house.state(name)
            if state is State.QUEUED:
                self.house.claim(name)
            elif state not in IN_WORK:
                continue
            if ends:
                getattr(self.house, ends)(name)
            return

    @rule(data=st.data(), account=ACCOUNTS, action=st.sampled_from(Action))
    def act(self, data: st.DataObject, account: Account, action: Action) -> None:
        self.try_to(action, data.draw(st.sampled_from(self.names)), account)

    def try_to(self, action: Action, name: str, account: Account) -> None:
        status = self.house.ledger.whole_status(name)
        may = action in actions(status, account)
        more: tuple[Any, ...] = ("For a reason.",) if action is not Action.PUBLISH else ()
        try:
            after = getattr(self.house.acts, action)(name, account, *more)
        except SubmitterError as error:
            assert error.code in REFUSALS
            assert not may
        else:
            assert may
            assert after.state is not status.state

    @rule(
        act=st.sampled_from(["ban", "unban"]),
        account=ACCOUNTS,
        whom=ACCOUNTS,
        reason=st.sampled_from(["", "For a reason."]),
    )
    def bar(self, act: str, account: Account, whom: Account, reason: str) -> None:
        try:
            getattr(self.house.acts, act)(whom.key, account, reason)
        except SubmitterError as error:
            assert error.code in REFUSALS
        else:
            assert account.operator
            assert reason
            assert (whom.key in read_bans(self.house.store.public)) == (act == "ban")

    @invariant()
    def the_chronicle_holds(self) -> None:
        assert verify(self.house.store.public) == ()

    @invariant()
    def the_boards_show_what_the_queue_says(self) -> None:
        statuses = Ledger(self.house.store).statuses()
        assert self.house.shown() == {s.submission.submission_id for s in statuses if s.on_boards}

    @invariant()
    def nothing_private_is_on_boards_or_named(self) -> None:
        for status in Ledger(self.house.store).statuses():
            if status.submission.private:
                assert not status.on_boards
                assert status.submission.name == "private submission"
                assert not self.house.store.public.list(
                    f"results/{status.submission.submission_id}/"
                )

    @invariant()
    def superseded_is_just_what_a_later_version_covers(self) -> None:
        statuses = Ledger(self.house.store).statuses()
        for status in statuses:
            covered = standing_over(status.submission, statuses) is not None
            if status.state is State.SUPERSEDED:
                assert covered
            elif status.state is State.PUBLISHED:
                assert not covered

    @invariant()
    def authors_see_whole_what_is_theirs(self) -> None:
        for account in (ADA, BOB):
            for status in Own(self.house.store, account).statuses():
                assert status.submission.account == account.key
                assert status.submission.name in {"grey", "blue"}


Governance.TestCase.settings = settings(
    max_examples=20 if nightly() else 8,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestGovernance = pytest.mark.slow(Governance.TestCase)
