"""What `python app.py` serves beside the pages, and that the pages are still there."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest

from benchmarks.errors import SubmitterError
from leaderboard.store.live.folder import FolderLive
from leaderboard.store.live.relay import RelayLive
from tests.leaderboard.pages.running_app import running_app

SECRET = "a-secret-of-the-house"


def test_one_process_serves_pages_health_metrics_and_what_workers_tell(tmp_path: Path) -> None:
    with running_app(tmp_path, ASSAY_LIVE_SECRET=SECRET) as address:
        health = httpx.get(f"{address}health")
        assert health.status_code in {200, 503}
        assert json.loads(health.text)["queue_length"] == 0
        assert "assay_" in httpx.get(f"{address}metrics").text

        worker = RelayLive(address, SECRET)
        worker.say("metric-0001", "loading\n")
        end = time.monotonic() + 120
        while worker.said("metric-0001") != "loading\n":
            assert time.monotonic() < end, "it was not told"
            time.sleep(0.05)
        # The pages read the very same files.
        assert FolderLive(tmp_path / "store" / "live").said("metric-0001") == "loading\n"

        api = httpx.get(f"{address}v1/", headers={"Origin": "https://else.example"})
        assert "demo_croc" in {one["name"] for one in api.json()["benchmarks"]}
        assert api.headers["Access-Control-Allow-Origin"] == "*"
        tag = {"If-None-Match": api.headers["ETag"]}
        assert httpx.get(f"{address}v1/", headers=tag).status_code == 304
        assert httpx.get(f"{address}v1/nothing").json()["error"]["code"] == "no_such_route"
        assert httpx.get(f"{address}v1/images/demo/nothing").status_code == 404
        assert httpx.get(f"{address}mcp").status_code == 405

        page = httpx.get(f"{address}queue")
        assert page.status_code == 200
        assert "gradio" in page.text
        assert page.text.count('property="og:title"') == 1
        shared = httpx.get(f"{address}share.png?page=boards")
        assert shared.headers["Content-Type"] == "image/png"
        # Nothing is published in a new store, and the route says so itself.
        assert httpx.get(f"{address}as-of").text == "Nothing is published yet.\n"
        assert httpx.get(f"{address}config").json()["enable_queue"] is True
        assert httpx.post(f"{address}live/told", content=b"{}").status_code == 401
        assert httpx.get(f"{address}gradio_api/upload").status_code in {403, 404, 405}


def test_a_secret_that_can_be_guessed_is_refused_at_the_start() -> None:
    from app import Settings

    with pytest.raises(SubmitterError, match="ASSAY_LIVE_SECRET"):
        Settings.read({"ASSAY_LIVE_SECRET": "1234"}, "me")
