"""`serve`: what a program sends to a metric behind HTTP, gets, and is told."""

from __future__ import annotations

import asyncio
import base64
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from PIL import Image
from starlette.testclient import TestClient

from benchmarks.errors import PlatformError
from evaluator.metric import Metric, load_metric
from evaluator.metric_service import ScoringQueue, ServiceLimits, metric_service
from evaluator.scoring.contract import Verdict
from tests.conftest import REPOSITORY
from tests.evaluator.commands.submitting import code_of, typed
from tests.evaluator.scorers.tiny_models import pictures
from tests.kit.pictures import encoded
from tests.kit.processes import await_answer, free_port, running

NAME = "clipscore-hessel"
PROMPTS = ["two dogs", "a red cube", "two dogs"]
TOKEN = "a-token-of-the-loop"


def coded(content: bytes) -> str:
    return base64.b64encode(content).decode()


IMAGES = [encoded(image) for image in pictures(3)]
BODY = {"images": [coded(image) for image in IMAGES], "prompts": PROMPTS}


@pytest.fixture(scope="module")
def metric(clip: Path) -> Metric:
    return load_metric(NAME, checkpoints={"model": clip}, offline=True)


@pytest.fixture(scope="module")
def client(metric: Metric) -> TestClient:
    limits = ServiceLimits(pairs=4, body_mib=1)
    return TestClient(metric_service(metric, token=TOKEN, limits=limits), headers=bearer(TOKEN))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def told(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


def test_pairs_have_the_scores_of_the_metric_in_json_and_in_a_form(
    client: TestClient, metric: Metric
) -> None:
    expected = metric.score(pictures(3), PROMPTS)
    files = [("images", (f"{n}.png", image)) for n, image in enumerate(IMAGES)]
    for reply in (
        client.post("/score", json=BODY),
        client.post("/score", files=files, data={"prompts": PROMPTS}),
    ):
        found = reply.json()
        assert (reply.status_code, found["metric"], found["problems"]) == (200, NAME, [""] * 3)
        assert found["scores"] == pytest.approx(expected, abs=1e-6)


def test_an_image_that_cannot_be_read_has_no_score_and_a_reason(client: TestClient) -> None:
    bomb = encoded(Image.new("1", (5000, 5000)))
    sent = [IMAGES[0], b"no image", IMAGES[1][:99], bomb]
    body = {"images": [coded(one) for one in sent], "prompts": ["two dogs"] * 4}
    found = client.post("/score", json=body).json()
    assert [score is None for score in found["scores"]] == [False, True, True, True]
    assert [bool(problem) for problem in found["problems"]] == [False, True, True, True]
    assert not any("'" in problem for problem in found["problems"]), (
        "names no place among all who wait"
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("POST", "/scores", 404), ("GET", "/score", 405), ("PUT", "/health", 405)],
)
def test_another_address_or_method_is_refused_in_the_same_shape(
    client: TestClient, method: str, path: str, status: int
) -> None:
    assert told(client.request(method, path)) == (status, "no_such_route")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_request"),
        (b"[" * 99_999, 400, "bad_request"),
        ({"images": []}, 400, "bad_request"),
        ({**BODY, "more": 1}, 400, "bad_request"),
        ({"images": ["/etc/passwd"], "prompts": ["x"]}, 400, "bad_request"),
        ({"images": [1], "prompts": [None]}, 400, "bad_request"),
        (b'{"images": ["aaaa"], "prompts": ["\\ud800"]}', 400, "bad_request"),
        ({"images": [], "prompts": []}, 400, "no_pairs"),
        ({**BODY, "prompts": PROMPTS[:2]}, 400, "lengths_differ"),
        ({"images": ["aaaa"] * 5, "prompts": ["x"] * 5}, 400, "too_many_pairs"),
        (b" " * (2**20 + 1), 413, "too_large"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_request_is_refused(
    client: TestClient, body: Any, status: int, code: str
) -> None:
    given = {"content": body} if isinstance(body, bytes) else {"json": body}
    assert told(client.post("/score", **given)) == (status, code)


@pytest.mark.parametrize(
    "given",
    [
        {"files": [("images", ("a.png", b"x"))], "data": {"prompts": ["a"], "else": ["b"]}},
        {"files": [("prompts", ("a.png", b"x"))]},
        {"content": b"--x", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
        {"content": b"", "headers": {"Content-Type": "multipart/form-data"}},
    ],
    ids=["unknown field", "file for a prompt", "cut", "no boundary"],
)
def test_a_form_that_is_none_is_refused(client: TestClient, given: dict[str, Any]) -> None:
    reply = client.post("/score", **given)
    assert reply.status_code == 400 and reply.json()["error"]["code"] in ("bad_request", "no_pairs")


def test_a_client_that_hangs_up_is_no_defect(metric: Metric) -> None:
    pieces = iter([{"type": "http.request", "body": b"{", "more_body": True}])
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return next(pieces, {"type": "http.disconnect"})

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/score",
        "query_string": b"", "headers": [], "scheme": "http", "server": ("x", 1), "client": ("y", 1),
    }  # fmt: skip
    asyncio.run(metric_service(metric)(scope, receive, send))
    assert sent[0]["status"] == 408


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Bearer \xe9"])
def test_without_the_token_nothing_is_scored(client: TestClient, header: str) -> None:
    reply = client.post("/score", json=BODY, headers=[(b"Authorization", header.encode("latin-1"))])
    assert told(reply) == (401, "wrong_token")
    assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_health_says_what_is_served(client: TestClient) -> None:
    found = client.get("/health", headers={"Authorization": ""}).json()
    assert (found["metric"], found["low"], found["high"], found["waiting"]) == (NAME, 0.0, 2.5, 0)


# Batches and backpressure.


class Held:
    """A metric that scores a prompt by its number, once it is let go; `fail` is not scored."""

    name, title, low, high, higher_is_better = "held", "Held", None, None, True

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def verdicts(self, images: Sequence[Any], pairs: Sequence[tuple[int, str]]) -> list[Verdict]:
        self.begun.set()
        assert self.go.wait(30)
        self.batches.append(len(pairs))
        assert [images[place]() for place, _ in pairs] == [text.encode() for _, text in pairs]
        if any(text == "fail" for _, text in pairs):
            raise PlatformError("device_failed", "The device is gone.")
        return [Verdict(float(text)) for _, text in pairs]

    def close(self) -> None:
        self.batches.append(-1)


@pytest.fixture
def held() -> Iterator[Held]:
    one = Held()
    yield one
    one.go.set()


def put(queue: ScoringQueue, *texts: str) -> Any:
    return queue.put([text.encode() for text in texts], texts)


def test_requests_that_wait_are_scored_together_each_gets_its_own(held: Held) -> None:
    queue = ScoringQueue(cast(Metric, held), batch=4)
    first = put(queue, "0")
    assert held.begun.wait(10)
    rest = [put(queue, "1", "2"), put(queue, "3", "4"), put(queue, "5"), put(queue, *"678901")]
    rest[2].cancel()
    held.go.set()
    queue.close()
    scores = [
        [one.score for one in asked.result(0)] for asked in (first, rest[0], rest[1], rest[3])
    ]
    assert scores == [[0], [1, 2], [3, 4], [6, 7, 8, 9, 0, 1]]
    assert held.batches == [1, 4, 6]


def test_of_those_scored_together_only_the_one_at_fault_fails(held: Held) -> None:
    queue = ScoringQueue(cast(Metric, held))
    put(queue, "0")
    assert held.begun.wait(10)
    good, bad = put(queue, "1"), put(queue, "fail")
    held.go.set()
    queue.close()
    assert good.result(0)[0].score == 1.0
    with pytest.raises(PlatformError, check=lambda error: error.code == "device_failed"):
        bad.result(0)


def body_of(*texts: str) -> dict[str, list[str]]:
    return {"images": [coded(text.encode()) for text in texts], "prompts": list(texts)}


def test_more_than_may_wait_are_told_when_to_come_again(held: Held) -> None:
    service = metric_service(cast(Metric, held), limits=ServiceLimits(waiting=3, requests=4))
    with TestClient(service) as client, ThreadPoolExecutor(4) as pool:
        first = pool.submit(client.post, "/score", json=body_of("0"))
        assert held.begun.wait(10)
        # One that is larger than the line is taken where nobody waits.
        second = pool.submit(client.post, "/score", json=body_of(*"12345"))
        while client.get("/health").json()["waiting"] < 5:
            time.sleep(0.01)
        third = client.post("/score", json=body_of("6"))
        assert told(third) == (503, "busy") and int(third.headers["Retry-After"]) > 0
        held.go.set()
        assert first.result(30).json()["scores"] == [0]
        assert second.result(30).json()["scores"] == [1, 2, 3, 4, 5]
        failed = client.post("/score", json=body_of("fail"))
        assert told(failed) == (500, "device_failed")
    assert held.batches[-1] == -1


def test_requests_beyond_those_that_may_be_read_are_turned_away(held: Held) -> None:
    service = metric_service(cast(Metric, held), limits=ServiceLimits(requests=1))
    with TestClient(service) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/score", json=body_of("0"))
        assert held.begun.wait(10)
        assert told(client.post("/score", json=body_of("1"))) == (503, "busy")
        held.go.set()
        assert first.result(30).status_code == 200


# The command.


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("words", "token", "code"),
    [
        (["--host", "0.0.0.0"], None, "token_missing"),
        ([], "short", "token_too_short"),
    ],
)
def test_what_would_be_open_to_strangers_does_not_start(
    tmp_path: Path, words: list[str], token: str | None, code: str
) -> None:
    if token:
        (tmp_path / "token").write_text(token)
        words = [*words, "--token-file", str(tmp_path / "token")]
    assert code_of(typed("serve", "colour-reader", *words)) == code


def test_an_address_that_is_taken_is_told_before_a_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "evaluator.commands.serve.opened_metric", lambda *_: pytest.fail("it was loaded")
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = typed("serve", NAME, "--port", port)
    assert code_of(done) == "address_unavailable" and port in str(done.exception)
    free = typed("serve", NAME, "--port", "0", "--host", "::1.nowhere")
    assert code_of(free) in {"address_unavailable", "token_missing"}


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    port, log = free_port(), tmp_path / "log"
    words = ("colour-reader", "--device", "cpu", "--port", port, "--token-file", tmp_path / "token")
    command = [sys.executable, "-m", "evaluator", "serve", *words]
    with log.open("wb") as out, running(command, cwd=REPOSITORY, stderr=out) as server:
        address = f"http://127.0.0.1:{port}"
        await_answer(f"{address}/health", server, log)
        red = coded(encoded(Image.new("RGB", (32, 32), (222, 46, 52))))
        body = {"images": [red] * 2, "prompts": ["a red disc", "a blue disc"]}
        reply = httpx.post(f"{address}/score", json=body, headers=bearer(TOKEN), timeout=60)
        of_red, of_blue = reply.json()["scores"]
        assert reply.status_code == 200 and of_red > of_blue
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) in (0, -signal.SIGTERM)
