"""Rights of accounts over submissions: whose they are, and who may do what with them."""

from __future__ import annotations

from enum import StrEnum

from benchmarks.errors import SubmitterError, TransientError
from leaderboard.accounts import Account
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.results import read_results
from leaderboard.records import Event, RunResult, Status
from leaderboard.states import LEGEND, State
from leaderboard.store.interface import Store


class Action(StrEnum):
    """What can be done with a submission."""

    WITHDRAW = "withdraw"
    PUBLISH = "publish"
    HIDE = "hide"
    SHOW = "show"
    RERUN = "rerun"


class Role(StrEnum):
    """What an account is to a submission."""

    OWNER = "owner"
    OPERATOR = "operator"


_WITHDRAW = (Action.WITHDRAW,)
_UNDER_WAY: dict[Role, tuple[Action, ...]] = {Role.OWNER: _WITHDRAW, Role.OPERATOR: _WITHDRAW}

ACTIONS: dict[State, dict[Role, tuple[Action, ...]]] = {
    State.RECEIVED: _UNDER_WAY,
    State.REJECTED: {Role.OWNER: (), Role.OPERATOR: ()},
    State.QUEUED: _UNDER_WAY,
    State.CLAIMED: _UNDER_WAY,
    State.SCORING: _UNDER_WAY,
    State.SCORED: _UNDER_WAY,
    State.JUDGING: _UNDER_WAY,
    # Operators do not publish: private means until its author says otherwise.
    State.HELD: {
        Role.OWNER: (Action.WITHDRAW, Action.PUBLISH),
        Role.OPERATOR: (Action.WITHDRAW, Action.HIDE, Action.RERUN),
    },
    State.PUBLISHED: {
        Role.OWNER: _WITHDRAW,
        Role.OPERATOR: (Action.WITHDRAW, Action.HIDE, Action.RERUN),
    },
    State.FAILED: {
        Role.OWNER: _WITHDRAW,
        # Hidden can be only what is on the boards, from before a rerun that failed.
        Role.OPERATOR: (Action.WITHDRAW, Action.HIDE, Action.RERUN),
    },
    State.WITHDRAWN: {Role.OWNER: (), Role.OPERATOR: ()},
    State.HIDDEN: {Role.OWNER: _WITHDRAW, Role.OPERATOR: (Action.WITHDRAW, Action.SHOW)},
    State.SUPERSEDED: {
        Role.OWNER: _WITHDRAW,
        Role.OPERATOR: (Action.WITHDRAW, Action.HIDE),
    },
}
"""Whoever is both owner and operator may do what either may."""

OPERATORS_ONLY = frozenset({Action.HIDE, Action.SHOW, Action.RERUN})


def owns(status: Status, account: Account) -> bool:
    """Whether a submission is an account's own. The status must have the whole record."""
    return status.submission.account == account.key


def roles(status: Status, account: Account | None) -> tuple[Role, ...]:
    """What an account (None: nobody signed in) is to a submission."""
    if account is None:
        return ()
    found = [Role.OWNER] if owns(status, account) else []
    return tuple([*found, Role.OPERATOR] if account.operator else found)


def actions(status: Status, account: Account | None) -> tuple[Action, ...]:
    """What an account may do with a submission now, in the order of `Action`."""
    may = {action for role in roles(status, account) for action in ACTIONS[status.state][role]}
    if status.state is State.FAILED and not status.on_boards:
        may.discard(Action.HIDE)
    return tuple(action for action in Action if action in may)


def require(action: Action, status: Status, account: Account | None) -> None:
    """Refuse what an account may not do with a submission now."""
    if account is None:
        raise SubmitterError(
            "not_signed_in", f"To {action} a submission you must be signed in.", "Sign in first."
        )
    possible = actions(status, account)
    if action in possible:
        return
    if action in OPERATORS_ONLY:
        require_operator(account, f"{action} a submission")
    elif not (owns(status, account) if action is Action.PUBLISH else roles(status, account)):
        raise SubmitterError(
            "not_yours",
            f"{status.submission.submission_id} was not submitted by you, so you cannot {action} it.",
            "Sign in with the account that submitted it.",
        )
    possibly = f"You may {' or '.join(possible)} it." if possible else "Nothing can be done now."
    raise SubmitterError(
        "not_now",
        f"{status.submission.submission_id} is {status.state}, so you cannot {action} it: "
        f"{LEGEND[status.state]}",
        possibly,
    )


def require_operator(account: Account | None, what: str) -> None:
    """Refuse whoever is not an operator."""
    if account is None:
        raise SubmitterError("not_signed_in", f"To {what} you must be signed in.", "Sign in first.")
    if not account.operator:
        raise SubmitterError(
            "not_operator",
            f"Only an operator may {what}; {account.key} is none.",
            "Ask an operator of this installation.",
        )


class Own:
    """The submissions an account may see whole."""

    def __init__(self, store: Store, account: Account) -> None:
        self._store = store
        self._account = account
        self._ledger = Ledger(store)
        self._statuses: tuple[Status, ...] | None = None

    def statuses(self) -> tuple[Status, ...]:
        """All of them with their whole records, oldest first.

        While the store cannot be read, they are as they were read last.
        """
        try:
            self._statuses = self._ledger.whole_statuses(
                lambda status: roles(status, self._account)
            )
        except TransientError:
            if self._statuses is None:
                raise
        return self._statuses

    def status(self, submission_id: str) -> Status:
        """One of them."""
        try:
            found = self._ledger.whole_status(submission_id)
        except SubmitterError as error:
            raise _unknown_here() from error
        if not roles(found, self._account):
            raise _unknown_here()
        return found

    def events(self, submission_id: str) -> tuple[Event, ...]:
        """What happened to one of them, with reasons and logs, oldest first."""
        self.status(submission_id)
        return self._ledger.whole_events(submission_id)

    def results(self, submission_id: str) -> tuple[RunResult, ...]:
        """Results of one of them, in the order of benchmarks; held ones included."""
        return read_results(self._store, self.status(submission_id).submission)


def _unknown_here() -> SubmitterError:
    return SubmitterError(
        "not_yours",
        "You have no submission of that id here.",
        "List yours with: python -m evaluator status",
    )
