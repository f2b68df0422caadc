"""Pulses and running logs over HTTP, with the real client and a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.settings.model import load
from benchmarks.settings.rotation import SecretRotation
from benchmarks.sources.client import httpx
from leaderboard.service.live_routes import GRACE_S, MESSAGES_PER_S, routes
from leaderboard.store.live.interface import SAID_BYTES, FolderLive, Heartbeat, MemoryLive
from leaderboard.store.live.relay import RelayLive, live_of
from leaderboard.store.live.wire import (
    MOST_BYTES,
    MOST_LOGS,
    MOST_PULSES,
    SECRET_HEADER,
    checked_secret,
)
from tests.kit.processes import free_port
from tests.kit.records import a_pulse
from tests.kit.serving import serving

SECRET = "a-secret-of-the-house"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def memory() -> MemoryLive:
    return MemoryLive()


@pytest.fixture
def app(memory: MemoryLive) -> Iterator[str]:
    with serving(routes(memory, SECRET, lambda: NOON)) as address:
        yield address


@pytest.fixture
def silent() -> Iterator[str]:
    """An address at which somebody listens and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def pulse(
    worker: str = "w1", at: datetime = NOON - timedelta(hours=1), **more: object
) -> Heartbeat:
    """A heartbeat with the time of the worker's own clock, which is wrong."""
    return a_pulse(worker, at, **more)


def wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not until():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def told(**more: Any) -> bytes:
    record = {"pulses": [pulse()], **more}
    return json.dumps(record, default=lambda one: one.model_dump(mode="json")).encode()


def post(app: str, content: bytes | Iterator[bytes], secret: str = SECRET) -> httpx.Response:
    return httpx.post(f"{app}/live/told", content=content, headers={SECRET_HEADER: secret})


def test_what_a_worker_tells_is_known_by_the_app_s_time(app: str, memory: MemoryLive) -> None:
    more: dict[str, Any] = {
        "done": 3,
        "last_line": "scoring",
        "attempt": 2,
        "claimed": ("metric-0001",),
    }
    worker = RelayLive(app, SECRET, every_s=0.02)
    worker.set_log("metric-0001", "loading\n")
    worker.set_log("metric-0001", "loading\nscoring\n")
    worker.beat(pulse(**more))
    wait(memory.pulses)
    assert memory.pulses() == (pulse(at=NOON, **more),)
    wait(lambda: memory.log_end("metric-0001"))
    assert worker.log_end("metric-0001") == memory.log_end("metric-0001") == "loading\nscoring\n"
    worker.forget("metric-0001")
    wait(lambda: not memory.log_end("metric-0001"))


# Who may tell and ask


def test_everybody_may_see_the_pulses_but_no_word_of_a_scorer(app: str, memory: MemoryLive) -> None:
    memory.beat(pulse(at=NOON, last_line="my secret", done=5))
    memory.set_log("metric-0001", "my secret\n")
    guest = RelayLive(app, "")
    assert guest.pulses() == (pulse(at=NOON, done=5),)
    with pytest.raises(SubmitterError, match="authors"):
        guest.log_end("metric-0001")
    assert "secret" not in httpx.get(f"{app}/live/pulses").text
    assert httpx.get(f"{app}/live/said/metric-0001").status_code == 401


@pytest.mark.parametrize("secret", ["", "wrong", SECRET[:-1], SECRET + "x", SECRET.upper()])
def test_without_the_secret_nothing_is_taken(app: str, memory: MemoryLive, secret: str) -> None:
    assert (post(app, told(), secret).status_code, memory.pulses()) == (401, ())


def test_the_secret_follows_no_redirect(app: str) -> None:
    async def away(_: Request) -> Response:
        return RedirectResponse(f"{app}/live/pulses", 307)

    with serving([Route("/live/pulses", away)]) as elsewhere:
        assert RelayLive(elsewhere, SECRET).pulses() == ()
        with pytest.raises(TransientError, match="307"):
            RelayLive(elsewhere, SECRET)._request("GET", "/pulses")


def test_an_app_without_a_secret_takes_nothing(memory: MemoryLive) -> None:
    with serving(routes(memory, "", lambda: NOON)) as app:
        assert {post(app, told(), secret).status_code for secret in ("", SECRET)} == {403}
        assert httpx.get(f"{app}/live/said/metric-0001").status_code == 403
        assert httpx.get(f"{app}/live/pulses").json() == {"pulses": []}
    assert memory.pulses() == ()


def test_a_wrong_secret_is_said_once_clearly(app: str, caplog: pytest.LogCaptureFixture) -> None:
    tried: list[httpx.Response] = []

    def client() -> httpx.Client:
        return httpx.Client(event_hooks={"response": [tried.append]})

    worker = RelayLive(app, "another-secret-altogether", client=client, every_s=0.01)
    with caplog.at_level(logging.WARNING, "leaderboard.store.live.relay"):
        for number in range(1, 5):
            worker.beat(pulse())
            wait(lambda number=number: len(tried) >= number)  # type: ignore[misc]
    assert {reply.status_code for reply in tried} == {401}
    (line,) = [record.getMessage() for record in caplog.records]
    assert "ASSAY_LIVE_SECRET" in line


def given_in_files(folder: Path, secret: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "secret").write_text(secret)
    (folder / "old").write_text("")
    names = {"ASSAY_LIVE_SECRET_FILE": "secret", "ASSAY_LIVE_SECRET_OLD_FILE": "old"}
    environment = {name: str(folder / file) for name, file in names.items()}
    load(environment, folder)
    return environment


@pytest.mark.slow
def test_no_heartbeat_is_lost_while_secrets_change(tmp_path: Path, memory: MemoryLive) -> None:
    site, own = tmp_path / "site", tmp_path / "worker"
    first, second = "the-first-secret-of-all", "the-second-secret-of-all"
    given = given_in_files(site, first)
    secrets = SecretRotation("ASSAY_LIVE_SECRET", given, checked_secret, every_s=0.0)
    changes = [
        ((own / "secret", first),),
        # The old one is good while both are given.
        ((site / "old", first), (site / "secret", second)),
        ((own / "secret", second),),
        # The worker read its file again when it was refused.
        ((site / "old", ""),),
    ]
    with serving(routes(memory, secrets, lambda: NOON)) as address:
        worker = live_of(tmp_path, {**given_in_files(own, first), "ASSAY_LIVE": address})
        for done, files in enumerate(changes):
            for file, secret in files:
                file.write_text(secret)
            worker.beat(pulse("w", done=done))
            wait(lambda done=done: [p.done for p in memory.pulses()] == [done])  # type: ignore[misc]


# What is refused


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b'{"logs":[{"submission_id":"../../x","text":"y"}]}',
        b'{"forgotten":["a/b"]}', b'{"pulses":[{"worker":"w1"}]}',
        b'{"logs":[{"submission_id":"m","text":"%s"}]}' % (b"x" * (SAID_BYTES + 1)),
        *(
            told(pulses=[pulse().model_dump(mode="json") | wrong]) for wrong in (
                {"stage": "x" * 201}, {"done": -1}, {"eta_s": "NaN"}, {"claimed": ["m"] * 65},
                {"worker": "W 1"},
            )
        ),
    ],
)  # fmt: skip
def test_a_message_of_another_form_is_refused(app: str, memory: MemoryLive, content: bytes) -> None:
    assert (post(app, content).status_code, memory.pulses()) == (422, ())


@pytest.mark.parametrize(("secret", "status"), [(SECRET, 413), ("wrong", 401)])
def test_a_message_too_large_is_not_read_to_its_end(app: str, secret: str, status: int) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 50 * MOST_BYTES:
            sent += 1 << 16
            yield b"x" * (1 << 16)

    with suppress(httpx.TransportError):  # The server may hang up, which is as good.
        assert post(app, endless(), secret).status_code == status
    assert sent < 20 * MOST_BYTES


@pytest.mark.slow
def test_too_many_messages_are_turned_away(memory: MemoryLive) -> None:
    now = [0.0]
    with serving(routes(memory, SECRET, lambda: NOON, steady=lambda: now[0])) as app:
        with httpx.Client(headers={SECRET_HEADER: SECRET}) as client:

            def codes(n: int) -> list[int]:
                return [
                    client.post(f"{app}/live/told", content=told()).status_code for _ in range(n)
                ]

            assert codes(110) == [200] * 100 + [429] * 10
            now[0] += 3 / MESSAGES_PER_S
            assert codes(4) == [200, 200, 200, 429]
        assert httpx.get(f"{app}/live/pulses").status_code == 200


def test_what_a_worker_of_another_version_tells_besides_is_passed_over(
    app: str, memory: MemoryLive
) -> None:
    assert post(app, told(teller="t1", number=1, words=[])).status_code == 200
    assert [kept.worker for kept in memory.pulses()] == ["w1"]


@pytest.mark.parametrize(
    ("address", "secret", "word"),
    [
        *((one, SECRET, "ASSAY_LIVE") for one in (
            "", "app", "ftp://x", "http://", "https://u:p@app", "http://[",
        )),
        *(("http://127.0.0.1:9", one, "ASSAY_LIVE_SECRET") for one in (
            "short", "with a\nbreak in its middle", "ünïcödé-ünïcödé-x",
        )),
    ],
)  # fmt: skip
def test_a_wrong_address_or_weak_secret_is_refused(address: str, secret: str, word: str) -> None:
    with pytest.raises(SubmitterError, match=word):
        RelayLive(address, secret)


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({}, FolderLive),
        ({"ASSAY_LIVE_SECRET": SECRET}, FolderLive),
        ({"ASSAY_LIVE": "https://app.example/", "ASSAY_LIVE_SECRET": SECRET}, RelayLive),
        ({"ASSAY_LIVE": "https://app.example"}, RelayLive),
    ],
)
def test_the_environment_names_the_way(
    tmp_path: Path, environment: dict[str, str], kind: type
) -> None:
    assert isinstance(live_of(tmp_path, environment), kind)


# Somebody is away or slow


def test_an_app_that_is_away_holds_nobody_up_and_is_told_the_latest_when_it_is_back(
    memory: MemoryLive, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    worker = RelayLive(f"http://127.0.0.1:{port}", SECRET, every_s=0.02)
    for number in range(500):
        worker.beat(pulse(done=number))
        worker.set_log("metric-0001", f"line {number}\n")
    wait(lambda: caplog.records)
    assert worker.pulses() == ()  # Nobody is known to be silent.
    with pytest.raises(TransientError):
        worker.log_end("metric-0001")
    with serving(routes(memory, SECRET, lambda: NOON), port):
        wait(lambda: memory.log_end("metric-0001") == "line 499\n")
    assert [kept.done for kept in memory.pulses()] == [499]


def test_an_app_that_never_answers_holds_nobody_up(silent: str) -> None:
    worker = RelayLive(silent, SECRET, client=lambda: httpx.Client(timeout=0.3))
    started = time.monotonic()
    for number in range(200):
        worker.beat(pulse(done=number))
    assert worker.pulses() == ()
    for _ in range(1000):
        worker.pulses()  # Asked for every submission of the queue.
    assert time.monotonic() - started < 60, "each question would take 0.3 s"


def test_who_asks_an_app_that_never_answers_holds_up_nobody_who_tells(silent: str) -> None:
    worker = RelayLive(silent, SECRET)
    asking = threading.Thread(target=worker.pulses, daemon=True)
    asking.start()
    wait(worker._asking.locked)
    worker.beat(pulse())
    worker.set_log("metric-0001", "at work\n")
    assert asking.is_alive()


def test_nobody_waits_while_the_app_asks_the_store_for_the_time(memory: MemoryLive) -> None:
    def clock() -> datetime:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()  # Where all others wait meanwhile.
        return NOON

    with serving(routes(memory, SECRET, clock)) as app:
        assert post(app, told()).json() == {"at": NOON.isoformat()}


def test_after_a_restart_nobody_is_silent_who_had_no_time_to_tell(memory: MemoryLive) -> None:
    now = [0.0]
    memory.beat(pulse(at=NOON - timedelta(minutes=10)))
    with serving(routes(memory, SECRET, lambda: NOON, steady=lambda: now[0])) as app:

        def seen() -> set[str]:
            return {found["worker"] for found in httpx.get(f"{app}/live/pulses").json()["pulses"]}

        assert seen() == set()
        post(app, told(pulses=[pulse("w2")]))
        assert seen() == {"w2"}
        now[0] += GRACE_S
        assert seen() == {"w1", "w2"}


def test_a_store_that_fails_is_said_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    broken = FolderLive(tmp_path / "file" / "live")
    with serving(routes(broken, SECRET, lambda: NOON)) as app:
        reply = post(app, told())
    assert reply.status_code == 503
    assert str(tmp_path) not in reply.text


def test_several_tellers_do_not_disturb_each_other(app: str, memory: MemoryLive) -> None:
    def work(name: str) -> None:
        worker = RelayLive(app, SECRET, every_s=0.02)
        for number in range(15):
            worker.set_log(f"metric-{name}", f"{number}\n")
            worker.beat(pulse(name, done=number))
            time.sleep(0.01)

    def has_last(name: str) -> bool:
        return memory.log_end(f"metric-{name}") == "14\n"

    names = [f"w{n}" for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, names))
    wait(lambda: {(p.worker, p.done) for p in memory.pulses()} == {(name, 14) for name in names})
    for name in names:
        wait(partial(has_last, name))


@pytest.mark.slow
def test_what_waits_to_be_told_is_bounded_and_goes_in_messages_the_app_takes(
    memory: MemoryLive,
) -> None:
    port = free_port()
    worker = RelayLive(f"http://127.0.0.1:{port}", SECRET, every_s=0.02)
    for number in range(100):
        worker.set_log(f"metric-{number:04d}", "x\x01" * SAID_BYTES)
        worker.beat(pulse(f"w{number}", isolation="\x01" * 10_000, last_line="\x01" * 10_000))
    with serving(routes(memory, SECRET, lambda: NOON), port):
        wait(lambda: memory.log_end("metric-0099") and len(memory.pulses()) >= MOST_PULSES)
    told_of = [n for n in range(100) if memory.log_end(f"metric-{n:04d}")]
    assert set(told_of) >= set(range(100 - MOST_LOGS, 100))
    assert len(told_of) <= MOST_LOGS + 1  # What was under way when the app did not answer.
    assert MOST_PULSES <= len(memory.pulses()) <= 2 * MOST_PULSES
