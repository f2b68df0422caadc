"""Health of a store on the Hub: figures without a burst of requests, and an outage told as one."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.sources.client import httpx
from leaderboard.service.health import DiskSpace, Health, Level
from leaderboard.service.health_routes import routes as health_routes
from leaderboard.service.polling import HealthWatch
from leaderboard.store.hub.hub_store import hub_store
from tests.kit.governed import House
from tests.kit.hub.repositories import Repository
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.hub_store import NAME, NOWHERE, created, parts_of, store_of
from tests.kit.serving import serving

ROOMY = DiskSpace(free_bytes=100 << 30, total_bytes=200 << 30)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def published() -> dict[str, Repository]:
    """The repositories of a store in which one submission is published."""
    with running_hub() as hub:
        House(store_of(created(hub, NOWHERE)), clock=now).done()
        return dict(hub.repositories)


@pytest.fixture
def house(hub: HubServer, tmp_path: Path, published: dict[str, Repository]) -> House:
    hub.add_copies(published)
    return House(store_of(parts_of(hub, tmp_path / "writer")), clock=now, sent=1)


def requests(hub: HubServer, ask: Callable[[], object]) -> int:
    before = len(hub.served)
    ask()
    return len(hub.served) - before


def watch_of(
    hub: HubServer, folder: Path, clock: Callable[[], datetime] | None = now, **more: float
) -> HealthWatch:
    parts = parts_of(hub, folder)
    store = store_of(parts, clock=clock or parts.client.clock)
    return HealthWatch(store, folder, disk=lambda _: ROOMY, **more)  # type: ignore[arg-type]


def outage(health: Health) -> bool:
    return (health.status, health.problems[0].code) == (Level.DOWN, "store_unreadable")


def test_requests_do_not_grow_with_the_store_and_are_two_where_nothing_changed(
    hub: HubServer, house: House, tmp_path: Path
) -> None:
    watch = watch_of(hub, tmp_path / "one", fresh_for_s=0.0)
    first = requests(hub, watch.health)
    assert watch.health().submissions == {"published": 1}
    assert requests(hub, watch.health) <= 2, "the versions of two repositories"
    for number in range(2):
        house.done(name=f"m{number}")
    again = requests(hub, watch.health)
    assert watch.health().submissions == {"published": 3}
    other = watch_of(hub, tmp_path / "two")
    assert requests(hub, other.health) <= first
    assert again <= first <= 20


@pytest.mark.usefixtures("house")
def test_an_outage_is_told_and_no_old_figures(hub: HubServer, tmp_path: Path) -> None:
    watch = watch_of(hub, tmp_path / "one", fresh_for_s=0.0)
    never_reached = watch_of(hub, tmp_path / "two", clock=None)
    assert watch.health().status is Level.OK
    away = hub.spoil("/", status=503, times=10_000)
    down = watch.health()
    assert outage(down)
    assert down.submissions == {}
    assert hub.token not in down.model_dump_json()
    assert outage(never_reached.health())  # and no fault of whoever looks
    away.times = 0
    assert watch.health().status is Level.OK


OUTAGES: dict[str, tuple[str, Callable[[HubServer], object]]] = {
    "token revoked": ("token_refused", lambda hub: hub.revoke(hub.token)),
    "Hub away": ("store_unreachable", lambda hub: hub.spoil("/", status=503, times=10_000)),
    "rate limit": (
        "store_busy",
        lambda hub: hub.spoil("/", status=429, headers={"Retry-After": "900"}, times=10_000),
    ),
    "repository deleted": ("store_gone", lambda hub: hub.repositories.clear()),
}


@pytest.mark.usefixtures("house")
@pytest.mark.parametrize("what", OUTAGES)
def test_an_outage_is_told_with_its_cause_and_a_remedy(
    hub: HubServer, tmp_path: Path, what: str
) -> None:
    cause, happen = OUTAGES[what]
    watch = watch_of(hub, tmp_path / "one", fresh_for_s=0.0)
    assert watch.health().status is Level.OK
    happen(hub)
    down = watch.health()
    assert outage(down)
    assert (down.problems[0].cause, bool(down.problems[0].remedy)) == (cause, True)
    assert hub.token not in down.model_dump_json()


def test_a_store_that_never_was_and_a_token_that_never_fitted_are_causes(
    hub: HubServer, tmp_path: Path
) -> None:
    assert watch_of(hub, tmp_path / "none").health().problems[0].cause == "no_store"
    created(hub, tmp_path / "made")
    for repository in hub.repositories.values():
        repository.private = True
    store = hub_store(NAME, tmp_path / "bad", endpoint=hub.endpoint, token="hf_nobodys")
    assert HealthWatch(store, tmp_path).health().problems[0].cause == "no_store_access"


@pytest.mark.usefixtures("house")
def test_who_asks_while_a_silent_hub_is_asked_is_told_soon(hub: HubServer, tmp_path: Path) -> None:
    watch = watch_of(hub, tmp_path / "one", patience_s=0.05)
    silence = hub.spoil("/resolve/", wait_s=60.0)
    assert all(outage(watch.soon()) for _ in range(3))
    assert len(silence.seen) <= 1, "one look is enough"
    silence.released.set()
    assert watch.health().status is Level.OK
    end = time.monotonic() + 120
    while watch.soon().status is not Level.OK:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_the_site_says_in_seconds_that_its_hub_is_away(tmp_path: Path, how: str) -> None:
    """As it is opened by the app, with its own pauses and timeouts."""
    with socket.socket() as away:
        away.bind(("127.0.0.1", 0))
        if how == "silent":
            away.listen(50)
        endpoint = f"http://127.0.0.1:{away.getsockname()[1]}"
        store = hub_store(NAME, tmp_path, endpoint=endpoint, token="hf_any")
        with serving(health_routes(HealthWatch(store, tmp_path, patience_s=1.0))) as site:
            began = time.monotonic()
            replies = [
                httpx.get(f"{site}/{path}", timeout=60.0)
                for path in ("health", "metrics", "health")
            ]
            assert time.monotonic() - began < 30.0, "it would wait for minutes"
        store.wait_no_more()
    assert [reply.status_code for reply in replies] == [503, 200, 503]
    assert outage(Health.model_validate(replies[-1].json()))
