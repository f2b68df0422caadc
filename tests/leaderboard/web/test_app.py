"""`python app.py`: its settings, what it serves beside the pages, a secret changed while it serves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app import Settings, main
from benchmarks.errors import SubmitterError
from leaderboard.governance.authentication import Authentication, AuthenticationMethod
from leaderboard.store.folder import folder_store
from leaderboard.store.live.interface import FolderLive
from leaderboard.store.live.relay import RelayLive
from leaderboard.store.live.wire import SECRET_HEADER
from leaderboard.store.opening import StoreName
from leaderboard.votes.service import VOTES
from leaderboard.votes.storing import read_votes
from tests.kit.site import running_app
from tests.leaderboard.votes.made_up_polls import SET, Booth, voter

FIRST, SECOND = "the-first-secret-of-all", "the-second-secret-of-all"


def until(holds: Callable[[], bool], pause_s: float = 0.05) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "it never did"
        time.sleep(pause_s)


def settings(store: str, *more: Any, operators: frozenset[str] = frozenset()) -> Settings:
    data, host, port, name, *secret = more
    way = Authentication(AuthenticationMethod.LOCAL, local=name, operators=operators)
    return Settings(StoreName(store), data, host, port, way, *secret)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, settings(".assay/store", None, "127.0.0.1", 7860, "me")),
        ({"GRADIO_SERVER_NAME": "0.0.0.0"}, settings(".assay/store", None, "0.0.0.0", 7860, "me")),
        (
            {"ASSAY_STORE": "s", "ASSAY_DATA": "d", "ASSAY_HOST": "0.0.0.0", "PORT": "80",
             "ASSAY_USER": "ada", "ASSAY_OPERATORS": "hub:grace, local:ada",
             "ASSAY_LIVE_SECRET": FIRST},
            settings("s", Path("d"), "0.0.0.0", 80, "ada", FIRST,
                     operators=frozenset({"hub:grace", "local:ada"})),
        ),
    ],
)  # fmt: skip
def test_settings_come_from_the_environment(given: dict[str, str], expected: Settings) -> None:
    assert Settings.read(given, "me") == expected


@pytest.mark.parametrize(("words", "status"), [(["--help"], 0), (["--store", "s"], 2), (["s"], 2)])
def test_words_are_no_settings(words: list[str], status: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == status


@pytest.mark.parametrize(
    ("name", "value"),
    [*(("PORT", port) for port in ("", "http", "-1", "0", "65536")), ("ASSAY_LIVE_SECRET", "1234")],
)
def test_a_setting_that_is_none_or_can_be_guessed_is_refused(name: str, value: str) -> None:
    with pytest.raises(SubmitterError, match=name):
        Settings.read({name: value}, "me")


@pytest.mark.slow
def test_one_process_serves_pages_health_metrics_and_what_workers_tell(tmp_path: Path) -> None:
    with running_app(tmp_path, ASSAY_LIVE_SECRET=FIRST) as address:
        health = httpx.get(f"{address}health")
        assert health.status_code in {200, 503} and health.json()["queue_length"] == 0
        assert "assay_" in httpx.get(f"{address}metrics").text

        worker = RelayLive(address, FIRST)
        worker.set_log("metric-0001", "loading\n")
        until(lambda: worker.log_end("metric-0001") == "loading\n")
        # The pages read the very same files.
        assert FolderLive(tmp_path / "store" / "live").log_end("metric-0001") == "loading\n"

        api = httpx.get(f"{address}v1/", headers={"Origin": "https://else.example"})
        assert "demo_croc" in {one["name"] for one in api.json()["benchmarks"]}
        assert api.headers["Access-Control-Allow-Origin"] == "*"
        tag = {"If-None-Match": api.headers["ETag"]}
        assert httpx.get(f"{address}v1/", headers=tag).status_code == 304
        assert httpx.get(f"{address}v1/nothing").json()["error"]["code"] == "no_such_route"

        page = httpx.get(f"{address}submit")
        assert "gradio" in page.text and page.text.count('property="og:title"') == 1
        shared = httpx.get(f"{address}share.png?page=submit")
        assert shared.headers["Content-Type"] == "image/png"
        # Nothing is published in a new store, and the route says so itself.
        assert "Nothing is" in httpx.get(f"{address}as-of").text
        assert httpx.get(f"{address}config").json()["enable_queue"] is True
        codes = {path: httpx.get(f"{address}{path}").status_code
                 for path in ("v1/images/demo/nothing", "mcp", "submit")}  # fmt: skip
        assert codes == {"v1/images/demo/nothing": 404, "mcp": 405, "submit": 200}
        assert httpx.post(f"{address}live/told", content=b"{}").status_code == 401
        assert httpx.get(f"{address}gradio_api/upload").status_code in {403, 404, 405}


@pytest.mark.slow
def test_a_site_that_is_told_to_end_first_brings_its_votes_to_the_store(tmp_path: Path) -> None:
    store = folder_store(tmp_path / "store")
    booth = Booth(tmp_path / "store" / VOTES, store=store)
    booth.open()
    ballot = booth.vote(voter("ada"))
    with running_app(tmp_path):
        assert read_votes(store.private, SET) == [], "it is not yet time"
    assert [one.ballot for one in read_votes(store.private, SET)] == [ballot]


@pytest.mark.slow
def test_the_site_is_set_by_a_file_and_reads_its_secret_again(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(FIRST)
    file = tmp_path / "settings.toml"
    file.write_text(
        f'data = "{tmp_path}"\n[hub]\nhome = "{tmp_path / "hub"}"\n'
        f'[live]\nsecret_file = "{tmp_path / "secret"}"\n'
    )

    def taken(secret: str) -> bool:
        """Whether the site knows a secret: what is told beside it cannot be read."""
        headers = {SECRET_HEADER: secret}
        told = httpx.post(f"{address}live/told", content=b"[]", headers=headers).status_code
        assert told in {401, 422}
        return told == 422

    with running_app(tmp_path, ASSAY_SETTINGS=str(file), ASSAY_OPERATOR="x") as address:
        assert taken(FIRST) and not taken(SECOND)
        (tmp_path / "secret").write_text(SECOND)
        until(lambda: taken(SECOND), 0.5)
        assert not taken(FIRST)
    said = (tmp_path / "app.log").read_text()
    assert said.count("ASSAY_OPERATORS?") == 1 and FIRST not in said and SECOND not in said
