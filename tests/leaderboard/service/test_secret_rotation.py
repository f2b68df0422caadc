"""Secrets between site, workers and Hub are changed while all of them run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import pytest

from benchmarks.settings.rotation import SecretRotation
from benchmarks.settings.sources import load
from leaderboard.service.live_routes import routes
from leaderboard.service.webhooks import webhook_from
from leaderboard.store.live.interface import MemoryLive, Pulse
from leaderboard.store.live.opening import live_of
from leaderboard.store.live.wire import checked_secret
from tests.leaderboard.service.serving import serving

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST, SECOND = "the-first-secret-of-all", "the-second-secret-of-all"
DELIVERY = (
    b'{"event":{"action":"update","scope":"repo.content"},'
    b'"repo":{"type":"dataset","name":"lab/assay-requests"}}'
)


def loaded(folder: Path, variable: str, secret: str, old: str = "") -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "secret").write_text(secret)
    (folder / "old").write_text(old)
    environment = {
        f"{variable}_FILE": str(folder / "secret"), f"{variable}_OLD_FILE": str(folder / "old"),
    }  # fmt: skip
    load(environment, folder)
    return environment


@pytest.fixture
def memory() -> MemoryLive:
    return MemoryLive()


@pytest.fixture
def site(tmp_path: Path, memory: MemoryLive) -> Iterator[str]:
    environment = loaded(tmp_path / "site", "ASSAY_LIVE_SECRET", FIRST)
    secrets = SecretRotation("ASSAY_LIVE_SECRET", environment, checked_secret, every_s=0.0)
    with serving(routes(memory, secrets, lambda: NOON)) as address:
        yield address


def wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not until():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@pytest.mark.slow
def test_no_heartbeat_is_lost_while_the_secret_of_site_and_worker_is_changed(
    tmp_path: Path, site: str, memory: MemoryLive
) -> None:
    environment = loaded(tmp_path / "worker", "ASSAY_LIVE_SECRET", FIRST)
    worker = live_of(tmp_path, {**environment, "ASSAY_LIVE": site})

    def told(done: int) -> bool:
        worker.beat(Pulse(worker="w", at=NOON, isolation_ok=True, isolation="x", done=done))
        wait(lambda: [p.done for p in memory.pulses()] == [done])
        return True

    assert told(1)
    (tmp_path / "site" / "old").write_text(FIRST)
    (tmp_path / "site" / "secret").write_text(SECOND)
    assert told(2), "the old one is good while both are given"
    (tmp_path / "worker" / "secret").write_text(SECOND)
    assert told(3)
    (tmp_path / "site" / "old").write_text("")
    assert told(4), "the worker read its file again when it was refused"


def test_a_webhook_takes_both_during_a_rotation_by_variables() -> None:
    environment = {"ASSAY_WEBHOOK_SECRET": SECOND, "ASSAY_WEBHOOK_SECRET_OLD": FIRST}
    hook = webhook_from(environment, ("lab/assay-requests",), lambda: None)
    assert hook is not None
    assert hook.answer(FIRST, DELIVERY).status is HTTPStatus.ACCEPTED
    assert hook.answer(SECOND, DELIVERY).status is HTTPStatus.ACCEPTED
    assert hook.answer(FIRST + SECOND, DELIVERY).status is HTTPStatus.UNAUTHORIZED
    assert hook.answer("", DELIVERY).status is HTTPStatus.UNAUTHORIZED
