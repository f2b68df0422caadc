"""What anybody can see of a trial's service, and what its processes wrote down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.end_to_end.trial.ground import Ground
from tests.end_to_end.trial.submissions import OPEN_TO_CODE
from tests.end_to_end.trial.waiting import fetched


def public_answers(site: str) -> Mapping[str, bytes]:
    """What the app tells anybody: the programs' side and the pages."""
    paths = ["/", "/health", "/metrics", "/as-of", "/v1/", "/v1/entries", "/v1/queue?per_page=1000"]
    paths += ["/v1/ledger?per_page=1000", "/v1/ledger.jsonl", "/v1/index", "/v1/models"]
    paths += ["/v1/models/demo_prompts", "/submit", "/ledger", "/status", "/live/pulses"]
    for board in OPEN_TO_CODE:
        paths += [f"/v1/boards/{board}", f"/v1/boards/{board}/pairs", f"/?tab=benchmark:{board}"]
    return {path: fetched(f"{site}{path}")[1] for path in paths}


def logs_of(ground: Ground) -> Iterator[Path]:
    """What processes of this machine wrote down."""
    yield from ground.place.glob("*.log")
    yield from (ground.belongings / "scratch" / "logs").rglob("*.*")
