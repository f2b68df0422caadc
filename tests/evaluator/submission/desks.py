"""What happens at a desk, shared by the tests of what it takes."""

from __future__ import annotations

from collections.abc import Callable

from leaderboard.records import Event
from leaderboard.states import State
from tests.kit.worker import MODULE, Files, Rig

SCORES = "pair_id,score\na,1\nb,2\nc,3\n"


def module(name: str = "grey", version: str = "1", more: bytes = b"") -> Files:
    manifest = f'name = "{name}"\nversion = "{version}"'.encode()
    return {**MODULE, "assay.toml": manifest, "more.py": more}


def events(rig: Rig, *states: State) -> list[Event]:
    facts = {"at": rig.clock(), "by": "w", "reason": "It was wrong.", "fault": "platform"}
    return [Event.model_validate({**facts, "state": state}) for state in states]


def happen(rig: Rig, submission_id: str, *states: State) -> None:
    rig.ledger.append(submission_id, events(rig, *states))


def overtaken(rig: Rig, act: Callable[[], object]) -> None:
    """Let something happen between the checks and the commit of the next request."""
    repository = rig.store.private
    commit = repository.commit

    def late(*args: object, **named: object) -> str:
        repository.commit = commit  # type: ignore[method-assign]
        act()
        return commit(*args, **named)  # type: ignore[arg-type]

    repository.commit = late  # type: ignore[method-assign]
