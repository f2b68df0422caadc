"""`docs/reference/states.md`: the states of a submission and the ways between them."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.documenting.markdown import code, page, table
from leaderboard.states import FINISHED, IN_WORK, LEGEND, TRANSITIONS, State

_INTRODUCTION = """\
A submission has one state at a time: what its events, read from the first to the last, come to.
Each change is one event in the public ledger, with the time, who caused it and, where something was
refused or failed, a code, a reason and what to do. `python -m evaluator status ID` shows the state,
`python -m evaluator logs ID` the events."""

_NOTES = """\
- A state with **lease** is held by a worker for a limited time. If the worker dies, the lease runs
  out and another worker claims the submission; finished shards of scores are kept where both see the
  same scratch folder. After three attempts it fails, with the reason of each.
- A state that is **final** changes only when somebody acts: its author (`publish`, `withdraw`, a
  newer version) or an operator (`rerun`, `hide`, `show`), or when a new revision of a benchmark or a
  new metric queues it again.
- What is withdrawn stays withdrawn."""


def states_page() -> str:
    """The document."""
    rows = (
        [code(state.value), LEGEND[state], _kind(state), _names(sorted(TRANSITIONS[state]))]
        for state in State
    )
    heads = ("state", "what it means", "", "what may follow")
    return page("States of a submission", _INTRODUCTION, _diagram(), table(heads, rows), _NOTES)


def _kind(state: State) -> str:
    return "lease" if state in IN_WORK else "final" if state in FINISHED else ""


def _names(states: list[State]) -> str:
    return ", ".join(code(state.value) for state in states) or "nothing"


def _diagram() -> str:
    """The usual way and where it may end, in Mermaid, which GitHub draws; the table has all ways."""
    return "\n".join(["```mermaid", "stateDiagram-v2", *_arrows(), "```"])


def _arrows() -> Iterator[str]:
    for before, afters in TRANSITIONS.items():
        for after in State:
            # Ways back and ways out of work are in the table; drawn, they would hide the rest.
            forward = before is None or _PLACE[after] > _PLACE[before]
            if after in afters and forward and (after not in _ENDS or (before, after) in _DRAWN):
                start = before.value if before is not None else "[*]"
                yield f"    {start} --> {after.value}"


_PLACE = {state: number for number, state in enumerate(State)}
_ENDS = frozenset({State.WITHDRAWN, State.FAILED, State.REJECTED, State.HIDDEN, State.SUPERSEDED})
_DRAWN = frozenset(
    {
        (State.RECEIVED, State.REJECTED),
        (State.SCORING, State.FAILED),
        (State.JUDGING, State.FAILED),
        (State.PUBLISHED, State.WITHDRAWN),
        (State.PUBLISHED, State.HIDDEN),
        (State.PUBLISHED, State.SUPERSEDED),
    }
)
