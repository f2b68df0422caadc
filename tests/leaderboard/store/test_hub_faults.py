"""What is read from a Hub that fails, and how long it is left alone: never old in new clothes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from tests.hub.faults import Weather
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created, parts_of

pytestmark = pytest.mark.usefixtures("no_rests")
PRIVATE = f"{NAME}-submissions"


@pytest.mark.parametrize("target", ["tree/", "commits/"])
def test_a_page_of_something_else_in_place_of_a_listing_is_asked_for_again(
    hub: HubServer, tmp_path: Path, target: str
) -> None:
    repository = created(hub, tmp_path).private
    repository.commit({"b/a": b"1"}, parent=repository.head(), message="m")
    fault = hub.spoil(f"{PRIVATE}/{target}", status=200)  # with an empty body
    other = parts_of(hub, tmp_path / "other").private
    assert other.list("b/") == ("b/a",)
    assert len(list(other.client.history(other.name))) == 3
    assert len(fault.seen) == 1


def test_an_outage_is_an_error_and_never_an_old_file(hub: HubServer, tmp_path: Path) -> None:
    parts = created(hub, tmp_path)
    public = parts.public
    public.commit(
        {"queue.json": b"old", "snapshot.parquet": b"old"}, parent=public.head(), message="m"
    )
    assert (public.read("queue.json"), public.read("snapshot.parquet")) == (b"old", b"old")
    hub.faults.weather(Weather(1.0))
    for ask in (public.head, lambda: public.read("queue.json"), lambda: public.list("results/")):
        with pytest.raises(TransientError, match="cannot be reached") as failed:
            ask()
        assert failed.value.code == "store_unreachable"
    with pytest.raises(TransientError):
        public.commit({"queue.json": b"new"}, parent=public.decisive.name, message="m")
    hub.faults.clear()
    assert public.read("queue.json") == b"old"


def test_a_version_is_remembered_for_a_moment_only(hub: HubServer, tmp_path: Path) -> None:
    now = [0.0]
    parts = created(hub, tmp_path, fresh_for_s=2.0)
    repository = parts.private
    repository._steady = lambda: now[0]
    repository.forget_head()
    repository.commit({"a": b"1"}, parent=repository.fresh_head(), message="m")
    asked = len(hub.served)
    assert repository.read("a") == b"1"
    assert len(hub.served) == asked
    hub.faults.weather(Weather(1.0))
    now[0] = 2.5
    with pytest.raises(TransientError):
        repository.read("a")


def test_an_answer_to_what_was_asked_before_a_change_is_not_remembered_after_it(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = created(hub, tmp_path, fresh_for_s=60.0).private
    old, ask = repository.fresh_head(), repository.client.head

    def told_meanwhile(name: str) -> str:
        answer = ask(name)
        other = parts_of(hub, tmp_path / "other").private
        other.commit({"a": b"1"}, parent=other.head(), message="m")
        repository.forget_head()  # a webhook
        return answer

    monkeypatch.setattr(repository.client, "head", told_meanwhile)
    assert repository.fresh_head() == old
    monkeypatch.undo()
    assert repository.head() != old
    assert repository.read("a") == b"1"


@pytest.mark.parametrize("cut", [0, 1, 700_000, 1_500_000])
def test_a_download_that_is_cut_goes_on_where_it_stopped(
    hub: HubServer, tmp_path: Path, cut: int
) -> None:
    repository = created(hub, tmp_path).private
    content = bytes(range(256)) * 8000
    repository.commit({"a.zip": content}, parent=repository.head(), message="m")
    hub.spoil("/content/", method="GET", cut_after=cut, times=2)
    repository.fetch("a.zip", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert hub.sent("/content/") < len(content) + 3 * 65536


def test_a_download_that_fails_for_good_leaves_no_file(hub: HubServer, tmp_path: Path) -> None:
    repository = created(hub, tmp_path).private
    repository.commit({"a.zip": bytes(300_000)}, parent=repository.head(), message="m")
    hub.spoil("/content/", method="GET", cut_after=10, times=50)
    with pytest.raises(TransientError):
        repository.fetch("a.zip", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_hub_that_asks_for_a_pause_gets_it(hub: HubServer, tmp_path: Path) -> None:
    slept: list[float] = []
    created(hub, tmp_path)
    repository = parts_of(hub, tmp_path, sleep=slept.append).private
    hub.spoil(f"{PRIVATE}/resolve/", status=429, headers={"Retry-After": "7"})
    repository.head()
    assert slept == [7.0]
    slept.clear()
    hub.spoil(
        f"{PRIVATE}/commit/",
        status=429,
        headers={"RateLimit": '"commits";r=0;t=31', "Retry-After": "2"},
    )
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    assert slept == [32.0]


def test_a_hub_that_asks_for_a_long_pause_is_left_alone(hub: HubServer, tmp_path: Path) -> None:
    class Budget:
        told: float = 0.0

        def wait(self) -> None:
            pass

        def ready(self, commits: int = 1) -> None:
            pass

        def delay(self, commits: int = 1) -> float:
            return 0.0

        def penalise(self, seconds: float) -> None:
            self.told = seconds

    budget = Budget()
    created(hub, tmp_path)
    repository = parts_of(hub, tmp_path, budget=budget).private
    hub.commit_limit.quota = 1
    repository.commit({"a": b"0"}, parent=repository.head(), message="m")
    hub.commit_limit.says = "rate limit for repository commits ({quota} per hour)"
    head, asked = repository.head(), len(hub.asked(f"{PRIVATE}/commit/", "POST"))
    with pytest.raises(TransientError, match="takes no more requests") as refused:
        repository.commit({"a": b"1"}, parent=head, message="m")
    assert refused.value.code == "store_busy"
    assert len(hub.asked(f"{PRIVATE}/commit/", "POST")) == asked + 1
    assert budget.told > 3000
