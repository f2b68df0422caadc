"""Operator actions on the judges of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.errors import SubmitterError
from benchmarks.schema import Card
from leaderboard.accounts import Account
from leaderboard.governance.acts import checked_reason
from leaderboard.governance.rights import require_operator
from leaderboard.ledger.audit_log import JUDGES, Deed
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.judge_pins import ANY, OVERALL, PATH, Pin, Pins, read_pins
from leaderboard.ledger.ledger import Ledger
from leaderboard.store.interface import Store


def pin(store: Store, wanted: Pin, by: Account, known: Mapping[str, Card]) -> Pin:
    """Put a decision in force; an earlier one about the same is replaced."""
    require_operator(by, "decide who judges models")
    _check(wanted, known)
    reason = checked_reason(wanted.reason)
    made = wanted.model_copy(update={"reason": reason, "by": by.key, "at": store.clock()})
    _write(store, lambda pins: pins.with_pin(made), by, made, reason)
    return made


def unpin(store: Store, about: Pin, by: Account, reason: str) -> None:
    """Let the rule decide again."""
    require_operator(by, "decide who judges models")
    text = checked_reason(reason)

    def change(pins: Pins) -> Pins:
        if about.about not in {one.about for one in pins.pins}:
            raise SubmitterError(
                "not_pinned",
                f"Nothing is decided of {about.metric[:120]!r} on {about.prompt_set} ({about.skill}).",
                "`python -m evaluator judges SET` lists what is.",
            )
        return pins.without([about.about])

    _write(store, change, by, about, text)


def _check(wanted: Pin, known: Mapping[str, Card]) -> None:
    """Refuse a decision about what does not exist: it would never hold, and nobody would see why."""
    if wanted.prompt_set == ANY:
        skills = {skill for card in known.values() for skill in card.skills}
    elif wanted.prompt_set in known:
        skills = set(known[wanted.prompt_set].skills)
    else:
        raise SubmitterError(
            "unknown_prompt_set",
            f"There is no prompt set {wanted.prompt_set[:80]!r}.",
            f"Prompt sets: {', '.join(known)}; {ANY} means every one.",
        )
    if wanted.skill not in (ANY, OVERALL, *skills):
        raise SubmitterError(
            "unknown_skill",
            f"{wanted.prompt_set} has no skill {wanted.skill[:80]!r}.",
            f"Skills: {', '.join(sorted(skills))}; {OVERALL} is all prompts, {ANY} every one.",
        )


def _write(
    store: Store, change: Callable[[Pins], Pins], by: Account, about: Pin, reason: str
) -> None:
    def batch() -> Batch:
        content = change(read_pins(store.public)).model_dump_json(indent=1).encode()
        deed = Deed(store.clock(), by.key, JUDGES, about.metric, content, reason)
        return Batch(files=lambda _: {PATH: content}, deeds=[deed])

    Ledger(store).write(batch, f"judges {about.metric}"[:120])
