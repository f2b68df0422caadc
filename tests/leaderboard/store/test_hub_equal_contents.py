"""Several files of one content in one commit: the content goes up once, and all are there."""

from __future__ import annotations

from pathlib import Path

from leaderboard.store.interface import transact
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import created


def test_files_of_equal_content_go_up_together(hub: HubServer, tmp_path: Path) -> None:
    public = created(hub, tmp_path).public
    for round_ in range(5):
        content = bytes([round_]) * 200_000
        files = {f"boards/{round_}-{name}.parquet": content for name in range(4)}
        transact(public, lambda files=files: files, "equal contents")  # type: ignore[misc]
        assert all(public.read(path) == content for path in files)
    puts = [each for each in hub.served if each.method == "PUT"]
    assert len(puts) == 5
    assert all(each.status == 200 for each in puts)
