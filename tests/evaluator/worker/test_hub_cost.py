"""What a submission costs on the Hub: commits, of which it takes few in an hour, and requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leaderboard.publication.publisher import table_schemas
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.hub.maintenance import create, write_cards
from leaderboard.store.live.interface import FolderLive
from tests.kit.hub.server import running_hub
from tests.kit.worker import BOB, SCORES, Rig

NAME = "lab/assay"
COMMITS = {"requests": 2, "results": 1, "submissions": 1}
"""It is claimed and published; what is published; what was uploaded and received."""
REQUESTS = 60


@pytest.mark.parametrize("kind", ["module", "scores"])
def test_a_submission_alone_is_four_commits_from_upload_to_board(tmp_path: Path, kind: str) -> None:
    with running_hub() as hub:
        access: dict[str, Any] = {"endpoint": hub.endpoint, "token": hub.token}
        parts = HubParts(NAME, tmp_path / "made", **access)
        list(create(parts))
        list(write_cards(parts, {}, table_schemas()))
        live = FolderLive(tmp_path / "live")
        store = replace(hub_store(NAME, tmp_path / "w", **access), live=live, look_every_s=0.0)
        rig = Rig(tmp_path, store=store)
        worker = rig.worker()
        rig.send_scores(SCORES.replace("a,1", "a,9"), account=BOB, name="first")
        worker.run_all()  # What a start and a first result write is no later submission's.
        hub.tally.reset()
        hub.served.clear()
        sent = rig.send() if kind == "module" else rig.send_scores(SCORES)
        worker.run_all()
        assert rig.status(sent.submission.submission_id).on_boards
        commits = {part: hub.tally.commits(f"{NAME}-{part}") for part in COMMITS}
        asked = Counter(one.method for one in hub.served)
        print(f"\n{kind}: {commits}, {asked.total()} requests: {dict(asked)}")
        assert commits == COMMITS
        assert asked.total() <= REQUESTS
