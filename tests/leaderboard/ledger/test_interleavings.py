"""Two who act at the same moment leave what they would one after the other, whoever they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

from benchmarks.errors import AssayError
from leaderboard.ledger.audit_log import verify
from leaderboard.ledger.cleanup import tidy
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import PRIVATE_ID
from leaderboard.ledger.versions import standing_over
from leaderboard.states import FINISHED, State
from tests.kit.governed import ADA, OLGA, House
from tests.kit.store import Meddled
from tests.kit.tiers import led_by

Names = Mapping[str, str]  # `old` and `new` to the ids of two versions of one thing


def published(house: House) -> Names:
    return {"old": house.done(), "new": house.done()}


def waiting(house: House) -> Names:
    return {"old": house.done(), "new": house.send()}


def at_work(house: House) -> Names:
    names = waiting(house)
    house.claim(names["new"])
    return names


def held(house: House) -> Names:
    return {"old": house.done(), "new": house.done(private=True)}


def both_at_work(house: House) -> Names:
    old = house.done()
    house.acts.rerun(old, OLGA, "New data.")
    house.claim(old)
    new = house.send(private=True)
    house.claim(new)
    return {"old": old, "new": new}


def finish(house: House, submission_id: str) -> None:
    """As a worker does, which leaves nothing where its submission was taken away meanwhile."""
    try:
        house.finish(submission_id)
    finally:
        tidy(house.store, submission_id)


Deed = Callable[[House, Names], object]
DEEDS: Mapping[str, Deed] = {
    "withdraw old": lambda house, names: house.acts.withdraw(names["old"], ADA),
    "withdraw new": lambda house, names: house.acts.withdraw(names["new"], ADA),
    "hide old": lambda house, names: house.acts.hide(names["old"], OLGA, "x"),
    "hide new": lambda house, names: house.acts.hide(names["new"], OLGA, "x"),
    "rerun new": lambda house, names: house.acts.rerun(names["new"], OLGA, "x"),
    "publish": lambda house, names: house.acts.publish(names["new"], ADA),
    "ban": lambda house, names: house.acts.ban(ADA.key, OLGA, "x"),
    "claim new": lambda house, names: house.claim(names["new"]),
    "finish old": lambda house, names: finish(house, names["old"]),
    "finish new": lambda house, names: finish(house, names["new"]),
    "fail old": lambda house, names: house.fail(names["old"]),
    "newest": lambda house, names: house.done(),
}


def left(house: House, names: Names) -> object:
    """What everyone sees in the end, and what is held."""
    states = [status.state for status in Ledger(house.store).statuses()]
    roles = {submission_id: role for role, submission_id in names.items()}
    shown = sorted(roles.get(submission_id, "newest") for submission_id in house.shown())
    results = [p.rpartition("/")[2] for p in house.store.private.list("held/") if "/results/" in p]
    return states, shown, sorted(results)


def check(house: House) -> None:
    statuses = Ledger(house.store).whole_statuses()
    assert verify(house.store.public) == ()
    on_boards = {s.submission.submission_id for s in statuses if s.on_boards}
    assert house.shown() == on_boards
    for status in statuses:
        settled = status.on_boards and status.state in FINISHED - {State.FAILED}
        assert not settled or standing_over(status.submission, statuses) is None
        name = status.submission.submission_id
        if PRIVATE_ID.fullmatch(name) and not status.submission.private:
            assert house.store.private.list(f"held/{name}/results/") == ()


def in_turn(begun: House, names: Names, first: Deed, second: Deed) -> object:
    house = begun.copy()
    for deed in (first, second):
        with suppress(AssayError):
            deed(house, names)
    return left(house, names)


def at_once(begun: House, names: Names, slow: Deed, quick: Deed) -> tuple[object, bool]:
    """The quick one commits between the reading and the commit of the slow one."""
    quickly = begun.copy()
    plain = quickly.store
    public, private = Meddled(plain.public), Meddled(plain.private, message="receive")
    slowly = House(replace(plain, public=public, private=private), quickly.clock, sent=begun.sent)
    quickly.sent += 10  # its submissions are others
    acted: list[bool] = []

    def rival() -> None:
        if not acted:
            acted.append(True)
            with suppress(AssayError):
                quick(quickly, names)

    public.act = private.act = rival
    with suppress(AssayError):
        slow(slowly, names)
    refused = not acted
    rival()
    check(quickly)
    return left(quickly, names), refused


CASES: Mapping[Callable[[House], Names], str] = {
    published: "withdraw old, withdraw new, hide new, rerun new, ban, newest",
    waiting: "withdraw new, claim new, ban, newest",
    at_work: "withdraw new, hide old, ban, finish new, newest",
    held: "withdraw new, hide new, rerun new, publish, newest",
    both_at_work: "withdraw old, withdraw new, finish old, finish new, fail old, newest",
}
"""What can happen at each start; the rest is refused whoever comes first."""


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "start",
    led_by(CASES, lambda start: start is waiting),
    ids=lambda start: start.__name__,
)
def test_who_comes_second_is_judged_by_what_the_first_left(start: Callable[[House], Names]) -> None:
    begun = House()
    names = start(begun)
    for slow, quick in product(CASES[start].split(", "), repeat=2):
        outcome, refused = at_once(begun, names, DEEDS[slow], DEEDS[quick])
        turns = (slow, quick) if refused else (quick, slow)
        assert outcome == in_turn(begun, names, *(DEEDS[t] for t in turns)), (slow, quick)
