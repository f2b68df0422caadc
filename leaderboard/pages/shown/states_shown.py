"""Words and colours for the states of a submission."""

from __future__ import annotations

from leaderboard.pages.shown.markup import Tone, text
from leaderboard.records import Kind
from leaderboard.states import LEGEND, WAITING, State

_TONES: dict[State, Tone] = {
    State.PUBLISHED: "good",
    State.HELD: "good",
    State.REJECTED: "bad",
    State.FAILED: "bad",
    State.WITHDRAWN: "plain",
    State.HIDDEN: "warn",
    State.SUPERSEDED: "plain",
}

FAULTS = {
    "submitter": "to be mended by the submitter",
    "world": "something outside failed; it is tried again",
    "platform": "our fault; the submitter loses nothing by it",
}

_KINDS = {
    Kind.METRIC: "scoring module",
    Kind.SCORES: "scores file",
    Kind.GENERATIONS: "generations",
}


def chip(state: State) -> str:
    """A state in its colour, with its meaning on hover."""
    tone = _TONES.get(state, "plain" if state in WAITING else "info")
    return f'<span class="as-chip as-{tone}" title="{text(LEGEND[state])}">{state.value}</span>'


def legend() -> str:
    """What the states mean."""
    lines = "".join(f"<dt>{chip(state)}</dt><dd>{text(LEGEND[state])}</dd>" for state in State)
    return f'<dl class="as-states">{lines}</dl>'


def kind_of(kind: Kind) -> str:
    """What was submitted, in words."""
    return _KINDS[kind]
