"""The command `worker`: probes, webhooks, one submission alone, and a stop in good order."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi

from benchmarks.errors import TransientError
from evaluator.commands.worker_loop import name_of_worker, poll_of
from evaluator.worker.publishing import judge
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import read_marks
from leaderboard.states import IN_WORK, State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store, transact
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.opening import StoreName
from leaderboard.submission_service import ScoresForm
from tests.evaluator.commands.submitting import SCORES, Run, id_of, sent, submit_words
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, created, parts_of
from tests.kit.processes import free_port
from tests.kit.toy import Toy
from tests.kit.worker import ADA, desk_of

SECRET = "a-secret-that-is-long-enough"
HUB_STORE = f"hub:{NAME}"
JOBS = ("--launcher", "jobs", "--job-image", "image")


@pytest.fixture
def worker(run: Run) -> Iterator[Run]:
    before = signal.getsignal(signal.SIGTERM)
    yield lambda *words: run("worker", "--role", "judge", *words)
    signal.signal(signal.SIGTERM, before)


def waiting(run: Run, folder: Path, name: str = "s") -> str:
    text = SCORES.replace("m,n", f"{name}1,{name}2")
    return id_of(run(*submit_words(folder, text=text, name=name), "--no-wait").json)


def state_of(folder: Path, submission_id: str) -> State:
    return Ledger(folder_store(folder / "store")).status(submission_id).state


def asked(
    port: int, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:  # It does not listen yet.
        return 0, b""
    finally:
        connection.close()


def until(done: Callable[[], Any], at_most_s: float = 90.0) -> Any:
    end = time.monotonic() + at_most_s
    while not (found := done()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
    return found


@contextmanager
def beside(what: Callable[[], None]) -> Iterator[None]:
    """Do this while the worker works, then tell the process to end; what it raises is raised."""
    failed: list[Exception] = []

    def do() -> None:
        try:
            what()
        except Exception as error:  # noqa: BLE001 (raised again where the test sees it)
            failed.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=do)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]


def test_one_submission_is_worked_on_alone(run: Run, worker: Run, tmp_path: Path) -> None:
    first, second = waiting(run, tmp_path, "s"), waiting(run, tmp_path, "t")
    assert worker("--submission", second).code == 0
    states = [state_of(tmp_path, one) for one in (first, second)]
    assert states == [State.QUEUED, State.PUBLISHED]
    again = worker("--submission", second)
    assert again.code == 0 and "already" in again.err
    told = run("worker", "--role", "score", "--submission", first, "--isolation", "none")
    assert told.code == 3 and "not_claimed" in told.err


def test_lines_are_json_and_in_a_file_for_a_submission(
    run: Run, worker: Run, tmp_path: Path
) -> None:
    only = waiting(run, tmp_path)
    told = worker("--once", "--log-format", "json", "--scratch", tmp_path / "elsewhere")
    assert told.code == 0
    lines = [json.loads(line) for line in told.err.splitlines()]
    assert any(line["submission"] == only for line in lines)
    assert len({line["worker"] for line in lines}) == 1
    assert (tmp_path / "elsewhere" / "logs" / f"{only}.jsonl").is_file()
    assert not (tmp_path / "store" / "scratch").exists()


@pytest.mark.slow
def test_a_worker_that_starts_marks_what_no_submission_needs(run: Run, tmp_path: Path) -> None:
    sent(run, tmp_path)
    private = folder_store(tmp_path / "store").private
    transact(private, lambda: {"uploads/left.csv": b"x"}, "of a request that crashed")
    assert run("worker", "--once").code == 0
    assert set(read_marks(private)) == {"uploads/left.csv"}


def test_a_worker_answers_probes_until_it_is_told_to_end(worker: Run, tmp_path: Path) -> None:
    port = free_port()
    seen: dict[str, Any] = {}

    def probe() -> None:
        status, body = until(lambda: (a := asked(port, "GET", "/health"))[0] == 200 and a)
        seen["health"] = status, [w["alive"] for w in json.loads(body)["workers"]]
        seen["metrics"] = asked(port, "GET", "/metrics")[1]
        seen["webhook"] = asked(port, "POST", "/webhook", b"{}")[0]

    with beside(probe):
        told = worker("--health-port", port, "--poll", 300)
    assert told.code == 0 and "Stopped." in told.err
    assert (seen["health"], seen["webhook"]) == ((200, [True]), 404)
    assert b"assay_workers_alive 1.0" in seen["metrics"]
    assert asked(port, "GET", "/health") == (0, b"")


def test_a_taken_port_is_told_before_a_claim(run: Run, worker: Run, tmp_path: Path) -> None:
    only = waiting(run, tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = worker("--once", "--health-port", taken.getsockname()[1])
    assert told.code == 1 and "port_unavailable" in told.err
    assert state_of(tmp_path, only) is State.QUEUED


def test_a_webhook_wakes_a_worker_that_would_look_in_an_hour(
    hub: HubServer, worker: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", SECRET)
    port, live = free_port(), MemoryLive()

    def store_of(folder: Path) -> Store:
        # With a version that is believed for an hour, as long as nobody says that it changed.
        parts = parts_of(hub, folder, fresh_for_s=3600.0)
        opened = folder_store(tmp_path / "clock")
        return Store(
            parts.public, parts.private, live, opened.clock, look_anew=parts.forget_heads
        )  # fmt: skip

    def submit() -> None:
        until(lambda: asked(port, "GET", "/health")[0] == 200)
        until(live.pulses)
        store = store_of(tmp_path / "author")
        path = tmp_path / "s.csv"
        path.write_text(SCORES)
        desk = desk_of(store, {"toy": Toy()})
        sent = desk.submit_scores(path, ScoresForm("toy"), account=ADA).status.submission
        event = {"action": "update", "scope": "repo.content"}
        told = {"event": event, "repo": {"type": "dataset", "name": f"{NAME}-requests"}}
        body = json.dumps(told).encode()
        assert asked(port, "POST", "/webhook", body)[0] == 401
        assert asked(port, "POST", "/webhook", body, **{"X-Webhook-Secret": SECRET})[0] == 202

        def published() -> bool:
            store.look_anew()
            return Ledger(store).status(sent.submission_id).state is State.PUBLISHED

        until(published)

    created(hub, tmp_path / "maker")
    monkeypatch.setattr(StoreName, "open", lambda _: store_of(tmp_path / "worker"))
    with beside(submit):
        told = worker("--store", HUB_STORE, "--health-port", port, "--poll", 3600)
    assert told.code == 0, told.err
    assert SECRET not in told.err


class Ended(BaseException):
    """What a signal is that nobody handles."""


def _end(*_: object) -> None:
    raise Ended


@pytest.fixture
def signals() -> Iterator[None]:
    """Signals end a command at once unless it handles them."""
    before = [(number, signal.signal(number, _end)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


class NoJobs:
    """The jobs of a namespace that runs none."""

    def list_jobs(self, **_: object) -> list[object]:
        return []


@pytest.mark.first_quick
@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["worker", "one", "launcher", "submit", "demo"])
def test_every_command_that_runs_a_worker_hands_back_what_it_holds_when_it_is_ended(
    command: str,
    number: signal.Signals,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = replace(folder_store(tmp_path / "store"), jobs_per_commit=4)
    held: list[int] = []

    def told_to_end(*words: Any, **more: Any) -> Any:
        held.append(len([s for s in Ledger(opened).statuses() if s.state in IN_WORK]))
        os.kill(os.getpid(), number)
        return judge(*words, **more)

    waits = [waiting(run, tmp_path, name) for name in "abc"]
    monkeypatch.setattr(StoreName, "open", lambda _: opened)
    monkeypatch.setattr("leaderboard.store.hub.maintenance.write_cards", lambda *_: ())  # no Hub
    monkeypatch.setattr("evaluator.worker.publishing.judge", told_to_end)
    monkeypatch.setattr("evaluator.commands.demo.load_registry", lambda: {"toy": Toy()})
    for queue in ("_queue_metrics", "_queue_models"):
        monkeypatch.setattr(f"evaluator.commands.demo.{queue}", lambda *_: None)
    words = {
        "worker": ("worker", "--role", "judge", "--once"),
        "one": ("worker", "--role", "judge", "--submission", waits[0]),
        "launcher": ("worker", "--store", HUB_STORE, *JOBS, "--once"),
        "submit": submit_words(tmp_path, name="d"),
        "demo": ("demo", "--no-serve"),
    }
    monkeypatch.setenv("ASSAY_JOB_TOKEN", "hf_of_the_jobs_alone")
    monkeypatch.setattr("evaluator.launching.hub_jobs.HfApi", NoJobs)
    told = run(*words[command])
    assert told.code == (130 if command in ("submit", "demo") else 0)
    assert held == [1 if command in ("one", "submit") else 3]
    statuses = Ledger(opened).statuses()
    assert {s.state for s in statuses} <= {State.QUEUED, State.PUBLISHED}
    assert {s.attempts for s in statuses if s.state is State.QUEUED} == {0}


@pytest.mark.parametrize("shared", [True, False])
def test_a_worker_that_nobody_hears_says_how_long_a_lost_machine_would_hold_its_work(
    worker: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    opened = replace(folder_store(tmp_path / "store"), heartbeats_shared=shared)
    monkeypatch.setattr(StoreName, "open", lambda _: opened)
    told = worker("--once")
    assert told.code == 0
    assert ("22 minutes" in told.err) is not shared


@pytest.mark.parametrize(
    ("store", "woken", "given", "seconds"),
    [
        ("folder", False, None, 1.0),
        (HUB_STORE, False, None, 15.0),
        (HUB_STORE, True, None, 60.0),
        (HUB_STORE, True, 5.0, 5.0),
    ],
)
def test_how_often_a_worker_looks_depends_on_what_a_look_costs(
    store: str, woken: bool, given: float | None, seconds: float
) -> None:
    assert poll_of(given, StoreName(store), woken=woken) == seconds


def test_a_worker_in_a_job_has_the_name_it_was_given() -> None:
    assert name_of_worker({"ASSAY_WORKER": "job-1"}) == "job-1"
    assert name_of_worker({}) != name_of_worker({})


def test_how_many_to_claim_is_chosen(
    worker: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    opened = replace(folder_store(tmp_path / "store"), jobs_per_commit=1)
    monkeypatch.setattr(StoreName, "open", lambda _: opened)

    def made(store: Store, *_: object, **__: object) -> None:
        seen.append(store.jobs_per_commit)
        raise TransientError("seen", "That is all.")

    monkeypatch.setattr("evaluator.commands.worker_loop.make_worker", made)
    assert worker("--once", "--claim", 5).code == 3
    assert seen == [5]


def test_jobs_need_an_image_and_a_store_they_can_reach_and_are_not_run_here_too(
    worker: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no_job_image" in worker(*JOBS[:2]).err
    monkeypatch.setenv("ASSAY_JOB_TOKEN", "hf_of_the_jobs_alone")
    told = worker(*JOBS)
    assert told.code == 1 and "store_out_of_reach" in told.err
    assert "wrong_launcher" in worker("--store", HUB_STORE, *JOBS, "--submission", "x").err


def test_a_launcher_judges_what_came_back_and_ends_where_nothing_waits(
    hub: HubServer, run: Run, worker: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_JOB_TOKEN", "hf_of_the_jobs_alone")
    waits = waiting(run, tmp_path)
    opened = folder_store(tmp_path / "store")
    monkeypatch.setattr(StoreName, "open", lambda _: opened)
    api = HfApi(endpoint=hub.endpoint, token=hub.token)
    monkeypatch.setattr("evaluator.launching.hub_jobs.HfApi", lambda: api)
    told = run("worker", "--store", HUB_STORE, *JOBS, "--once")
    assert told.code == 0, told.err
    assert state_of(tmp_path, waits) is State.PUBLISHED
