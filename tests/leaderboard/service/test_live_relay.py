"""Pulses and running logs over HTTP, with the real client and a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.sources.client import httpx
from leaderboard.service.live_routes import GRACE_S, MESSAGES_PER_S, routes
from leaderboard.store.live.folder import FolderLive
from leaderboard.store.live.interface import MemoryLive, Pulse
from leaderboard.store.live.opening import live_of
from leaderboard.store.live.outbox import Outbox
from leaderboard.store.live.relay import RelayLive
from leaderboard.store.live.text import SAID_BYTES
from leaderboard.store.live.wire import MOST_BYTES, MOST_PULSES, SECRET_HEADER, Told
from tests.leaderboard.service.serving import serving
from tests.processes import free_port

SECRET = "a-secret-of-the-house"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    """A steady clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def memory() -> MemoryLive:
    return MemoryLive()


@pytest.fixture
def app(memory: MemoryLive) -> Iterator[str]:
    with serving(routes(memory, SECRET, lambda: NOON)) as address:
        yield address


def pulse(worker: str = "w1", **more: object) -> Pulse:
    wrong = NOON - timedelta(hours=1)  # by the worker's own clock
    return Pulse.model_validate(
        {"worker": worker, "at": wrong, "isolation_ok": True, "isolation": "x", **more}
    )


def wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not until():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def told(**more: object) -> bytes:
    record = {"teller": "t1", "number": 1, **more}
    return json.dumps(record, default=lambda pulse: pulse.model_dump(mode="json")).encode()


def post(app: str, content: bytes, secret: str = SECRET) -> httpx.Response:
    return httpx.post(f"{app}/live/told", content=content, headers={SECRET_HEADER: secret})


def test_what_a_worker_tells_is_known_to_the_app_by_the_app_s_time(
    app: str, memory: MemoryLive
) -> None:
    worker = RelayLive(app, SECRET, every_s=0.02)
    worker.say("metric-0001", "loading\n")
    worker.say("metric-0001", "scoring\n")
    worker.beat(pulse(done=3, last_line="scoring", attempt=2, claimed=("metric-0001",)))
    wait(memory.pulses)
    (kept,) = memory.pulses()
    assert kept == pulse(at=NOON, done=3, last_line="scoring", attempt=2, claimed=("metric-0001",))
    wait(lambda: memory.said("metric-0001"))
    assert worker.said("metric-0001") == memory.said("metric-0001") == "loading\nscoring\n"
    worker.forget("metric-0001")
    wait(lambda: not memory.said("metric-0001"))


def test_everybody_may_see_the_pulses_but_no_word_of_a_scorer(app: str, memory: MemoryLive) -> None:
    memory.beat(pulse(at=NOON, last_line="my secret", done=5))
    memory.say("metric-0001", "my secret\n")
    guest = RelayLive(app, "")
    assert guest.pulses() == (pulse(at=NOON, done=5),)
    with pytest.raises(SubmitterError, match="their authors"):
        guest.said("metric-0001")
    assert "secret" not in httpx.get(f"{app}/live/pulses").text
    assert httpx.get(f"{app}/live/said/metric-0001").status_code == 401


@pytest.mark.parametrize("secret", ["", "wrong", SECRET[:-1], SECRET + "x", SECRET.upper()])
def test_without_the_secret_nothing_is_taken(app: str, memory: MemoryLive, secret: str) -> None:
    reply = post(app, told(pulses=[pulse()], words=[]), secret)
    assert (reply.status_code, memory.pulses()) == (401, ())


def _at_least(tried: list[httpx.Response], number: int) -> bool:
    return len(tried) >= number


def test_the_secret_follows_no_redirect(app: str, memory: MemoryLive) -> None:
    async def away(_: Request) -> Response:
        return RedirectResponse(f"{app}/live/pulses", 307)

    with serving([Route("/live/pulses", away)]) as elsewhere:
        assert RelayLive(elsewhere, SECRET).pulses() == ()
        with pytest.raises(TransientError, match="answers 307"):
            RelayLive(elsewhere, SECRET)._request("GET", "/pulses")


def test_an_app_without_a_secret_takes_nothing(memory: MemoryLive) -> None:
    with serving(routes(memory, "", lambda: NOON)) as app:
        for secret in ("", SECRET):
            assert post(app, told(pulses=[pulse()]), secret).status_code == 403
        assert httpx.get(f"{app}/live/said/metric-0001").status_code == 403
        assert httpx.get(f"{app}/live/pulses").json() == {"pulses": []}
    assert memory.pulses() == ()


def test_a_wrong_secret_is_said_clearly_and_once(
    app: str, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[httpx.Response] = []

    def client() -> httpx.Client:
        return httpx.Client(event_hooks={"response": [tried.append]})

    worker = RelayLive(app, "another-secret-altogether", client=client, every_s=0.01)
    with caplog.at_level(logging.WARNING, "leaderboard.store.live.relay"):
        for number in range(1, 5):
            worker.beat(pulse())
            wait(partial(_at_least, tried, number))
    assert {reply.status_code for reply in tried} == {401}
    (line,) = [record.getMessage() for record in caplog.records]
    assert "refuses the secret" in line
    assert "ASSAY_LIVE_SECRET" in line


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b'{"teller":"t1"}', b'{"teller":"t1","number":1,"more":2}',
        b'{"teller":"../x","number":1}',
        b'{"teller":"t1","number":1,"words":[{"submission_id":"../../x","text":"y"}]}',
        b'{"teller":"t1","number":1,"forgotten":["a/b"]}',
        b'{"teller":"t1","number":1,"pulses":[{"worker":"w1"}]}',
        b'{"teller":"t1","number":1,"words":[{"submission_id":"m","text":"%s"}]}' % (
            b"x" * (SAID_BYTES + 1)
        ),
    ],
)  # fmt: skip
def test_a_message_of_another_form_is_refused(app: str, memory: MemoryLive, content: bytes) -> None:
    assert post(app, content).status_code == 422
    assert memory.pulses() == ()


def test_a_pulse_beyond_all_measure_is_refused(app: str, memory: MemoryLive) -> None:
    record = pulse().model_dump(mode="json")
    for wrong in (
        {"stage": "x" * 201}, {"done": -1}, {"eta_s": "NaN"}, {"claimed": ["m"] * 65},
        {"worker": "W 1"},
    ):  # fmt: skip
        content = Told(teller="t1", number=1).model_dump(mode="json") | {"pulses": [record | wrong]}
        assert (
            httpx.post(
                f"{app}/live/told", json=content, headers={SECRET_HEADER: SECRET}
            ).status_code
            == 422
        ), wrong
    assert memory.pulses() == ()


@pytest.mark.parametrize(("secret", "status"), [(SECRET, 413), ("wrong", 401)])
def test_a_message_too_large_is_not_read_to_its_end(app: str, secret: str, status: int) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 50 * MOST_BYTES:
            sent += 1 << 16
            yield b"x" * (1 << 16)

    with httpx.Client() as client:
        try:
            reply = client.post(
                f"{app}/live/told", content=endless(), headers={SECRET_HEADER: secret}
            )
            assert reply.status_code == status
        except httpx.TransportError:
            pass  # The server hung up, which is as good.
    assert sent < 20 * MOST_BYTES


@pytest.mark.slow
def test_too_many_messages_are_turned_away(memory: MemoryLive) -> None:
    steady = Clock()
    with serving(routes(memory, SECRET, lambda: NOON, steady=steady)) as app:
        with httpx.Client(headers={SECRET_HEADER: SECRET}) as client:

            def status() -> int:
                return client.post(f"{app}/live/told", content=told()).status_code

            codes = [status() for _ in range(110)]
            assert codes == [200] * 100 + [429] * 10
            steady.now += 3 / MESSAGES_PER_S
            assert [status() for _ in range(4)] == [200, 200, 200, 429]
        assert httpx.get(f"{app}/live/pulses").status_code == 200


def test_words_that_come_twice_are_taken_once(app: str, memory: MemoryLive) -> None:
    content = told(words=[{"submission_id": "metric-0001", "text": "once\n"}], pulses=[pulse()])
    for _ in range(2):
        assert post(app, content).status_code == 200
    assert memory.said("metric-0001") == "once\n"


def test_an_app_that_is_away_holds_nobody_up_and_is_told_the_latest_when_it_is_back(
    memory: MemoryLive, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    worker = RelayLive(f"http://127.0.0.1:{port}", SECRET, every_s=0.02)
    for number in range(500):
        worker.beat(pulse(done=number))
        worker.say("metric-0001", f"line {number}\n")
    wait(lambda: caplog.records)
    assert worker.pulses() == ()  # Nobody is known to be silent.
    with pytest.raises(TransientError, match="does not answer"):
        worker.said("metric-0001")
    with serving(routes(memory, SECRET, lambda: NOON), port):
        wait(lambda: memory.said("metric-0001").endswith("line 499\n"))
    assert [kept.done for kept in memory.pulses()] == [499]
    lines = memory.said("metric-0001").splitlines()
    assert lines == [f"line {n}" for n in range(500)]


def test_an_app_that_never_answers_holds_nobody_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        worker = RelayLive(
            f"http://127.0.0.1:{silent.getsockname()[1]}", SECRET,
            client=lambda: httpx.Client(timeout=0.3),
        )  # fmt: skip
        started = time.monotonic()
        for number in range(200):
            worker.beat(pulse(done=number))
        assert worker.pulses() == ()
        for _ in range(1000):
            worker.pulses()  # Asked for every submission of the queue.
        assert time.monotonic() - started < 60, "each question would take 0.3 s"


def test_who_asks_an_app_that_never_answers_holds_up_nobody_who_tells() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        worker = RelayLive(f"http://127.0.0.1:{silent.getsockname()[1]}", SECRET)
        asking = threading.Thread(target=worker.pulses, daemon=True)
        asking.start()
        wait(worker._asking.locked)
        worker.beat(pulse())
        worker.say("metric-0001", "at work\n")
        assert asking.is_alive()


def test_nobody_waits_while_the_app_asks_the_store_for_the_time(memory: MemoryLive) -> None:
    def clock() -> datetime:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()  # Where all others wait meanwhile.
        return NOON

    with serving(routes(memory, SECRET, clock)) as app:
        assert post(app, told(pulses=[pulse()])).json() == {"at": NOON.isoformat()}


def test_after_a_restart_nobody_is_called_silent_who_had_no_time_to_tell() -> None:
    live, steady = MemoryLive(), Clock()
    live.beat(pulse(at=NOON - timedelta(minutes=10)))
    with serving(routes(live, SECRET, lambda: NOON, steady=steady)) as app:

        def seen() -> set[str]:
            return {found["worker"] for found in httpx.get(f"{app}/live/pulses").json()["pulses"]}

        assert seen() == set()
        post(app, told(pulses=[pulse("w2")]))
        assert seen() == {"w2"}
        steady.now += GRACE_S
        assert seen() == {"w1", "w2"}


def test_a_store_that_fails_is_said_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    broken = FolderLive(tmp_path / "file" / "live")
    with serving(routes(broken, SECRET, lambda: NOON)) as app:
        reply = post(app, told(pulses=[pulse()]))
    assert reply.status_code == 503
    assert str(tmp_path) not in reply.text


def test_several_tellers_do_not_disturb_each_other(app: str, memory: MemoryLive) -> None:
    def work(name: str) -> None:
        worker = RelayLive(app, SECRET, every_s=0.02)
        for number in range(60):
            worker.say(f"metric-{name}", f"{number}\n")
            worker.beat(pulse(name, done=number))
            time.sleep(0.01)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait(lambda: {(p.worker, p.done) for p in memory.pulses()} == {(f"w{n}", 59) for n in range(6)})
    for number in range(6):
        wait(partial(_has_all, memory, f"metric-w{number}"))


def _has_all(memory: MemoryLive, submission_id: str) -> bool:
    return memory.said(submission_id) == "".join(f"{n}\n" for n in range(60))


def test_what_waits_to_be_told_is_bounded() -> None:
    outbox = Outbox()
    for number in range(500):
        outbox.say(f"metric-{number:04d}", "\x01" * SAID_BYTES)
        outbox.beat(pulse(f"w{number}", isolation="\x01" * 10_000, last_line="\x01" * 10_000))
        outbox.forget(f"other-{number:04d}")
    message = outbox.next()
    assert message is not None
    assert len(message.pulses) == MOST_PULSES
    assert len(message.model_dump_json().encode()) <= MOST_BYTES
    seen = set()
    while message is not None:
        assert len(message.model_dump_json().encode()) <= MOST_BYTES
        seen |= {words.submission_id for words in message.words}
        outbox.sent()
        message = outbox.next()
    assert len(seen) == 64
    assert "metric-0499" in seen


@pytest.mark.parametrize(
    "address", ["", "app", "ftp://x", "http://", "https://u:p@app", "http://["]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(SubmitterError, match="ASSAY_LIVE"):
        RelayLive(address, SECRET)


@pytest.mark.parametrize("secret", ["short", "with a\nbreak in its middle", "ünïcödé-ünïcödé-x"])
def test_a_secret_that_can_be_guessed_or_not_sent_is_refused(secret: str) -> None:
    with pytest.raises(SubmitterError, match="ASSAY_LIVE_SECRET"):
        RelayLive("http://127.0.0.1:9", secret)


def test_the_environment_says_where_pulses_go(tmp_path: Path) -> None:
    assert isinstance(live_of(tmp_path, {}), FolderLive)
    assert isinstance(live_of(tmp_path, {"ASSAY_LIVE_SECRET": SECRET}), FolderLive)
    named = {"ASSAY_LIVE": "https://app.example/", "ASSAY_LIVE_SECRET": SECRET}
    assert isinstance(live_of(tmp_path, named), RelayLive)
    assert isinstance(live_of(tmp_path, {"ASSAY_LIVE": "https://app.example"}), RelayLive)
