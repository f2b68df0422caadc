"""The course of a trial: who sends what, what goes wrong meanwhile, and what is left to look at."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import expect, sync_playwright

from leaderboard.states import FINISHED
from leaderboard.store.live.interface import FolderLive, Heartbeat
from tests.end_to_end.trial.ground import STORE, Ground, clean_ground, fetched, told, until
from tests.end_to_end.trial.submissions import MODEL, NAMES, write_all
from tests.end_to_end.trial.traces import public_answers
from tests.hostile.decoys import Decoys, decoys
from tests.kit.hub.accounts import Account
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.processes import free_port

WORKERS = ("first", "second")
WAIT_MS = 60_000
REFUSED_AT_LEAST = 6
_ID = re.compile(r"^([a-z0-9-]+): (?:queued|received)", re.MULTILINE)


@dataclass
class Trial:
    """What happened, and what can be asked about it."""

    ground: Ground
    hub: HubServer
    decoys: Decoys  # what hostile submissions were after
    site: str = ""  # address of the app
    tokens: dict[str, str] = field(default_factory=dict)  # by who has them
    ids: dict[str, str] = field(default_factory=dict)  # account to its submission
    refused: dict[str, str] = field(default_factory=dict)  # account to what it was told
    notes: dict[str, Any] = field(default_factory=dict)  # what was seen on the way, by name

    def api(self, path: str) -> Any:
        """An answer of the app at `/v1`."""
        return told(f"{self.site}/v1/{path}")

    def states(self) -> dict[str, str]:
        """Submission to state, as the public queue tells it."""
        rows = self.api("queue?per_page=1000")["rows"]
        return {row["submission_id"]: row["state"] for row in rows}

    def pulses(self) -> tuple[Heartbeat, ...]:
        """Of all workers."""
        return FolderLive(self.ground.belongings / "live").pulses()


@contextmanager
def trial(browser: str) -> Iterator[Trial]:
    """The whole course, with a Chromium at a path; the app goes on until the block is left."""
    with clean_ground() as ground, running_hub() as hub, decoys(ground.place / "decoys") as laid:
        course = Trial(ground, hub, laid)
        _make_store(course)
        write_all(ground, laid)
        _serve(course)
        _send_from_command_line(course)
        _send_from_form(course, browser)
        _work(course)
        _publish_private(course)
        yield course
        for name in list(ground.children):
            assert ground.stop(name) in {0, -15}, ground.log(name).read_text()[-4000:]


def _make_store(course: Trial) -> None:
    """Tokens with no more rights than each needs, and the three repositories."""
    parts = {part: f"{STORE}-{part}" for part in ("requests", "submissions", "results")}
    keeper = dict.fromkeys(parts.values(), "write")
    sender = {**dict.fromkeys(parts.values(), "read")}
    sender |= {parts["requests"]: "write", parts["submissions"]: "write"}
    enrolled = {"worker": keeper, "sender": sender}
    for name, only in enrolled.items():
        course.tokens[name] = course.hub.enroll(
            f"hf_{secrets.token_hex(17)}", Account(name, only=only)
        )
    course.tokens["keeper"] = course.hub.token
    course.tokens["live"] = secrets.token_hex(16)
    settings = {
        "HF_ENDPOINT": course.hub.endpoint,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "ASSAY_STORE": f"hub:{STORE}",
        # The Hub of a trial lets everybody commit; nobody rests for a budget.
        "ASSAY_COMMITS_PER_HOUR": "5000",
        "HF_TOKEN": course.tokens["sender"],
    }
    course.ground.settings.update(settings)
    token = course.tokens["keeper"]
    course.ground.evaluator("store", "create", f"hub:{STORE}", HF_TOKEN=token)


def _serve(course: Trial) -> None:
    port = free_port()
    course.site = f"http://127.0.0.1:{port}"
    course.ground.start("app", "app.py", user="fay", PORT=str(port))
    until(course.ground, "the app answers", lambda: fetched(f"{course.site}/")[0] == 200)


def _send_from_command_line(course: Trial) -> None:
    """Several at once, as on a busy day."""
    sent = course.ground.sent
    sendings: Mapping[str, tuple[object, ...]] = {
        "ada": (sent / "ada",),
        "bob": (sent / "bob",),
        "cyd": (sent / "cyd.csv", "--kind", "scores", "--benchmark", "demo_evalmuse"),
        "dee": (sent / "dee", "--private"),
        "eve": (sent / "eve", "--kind", "generations"),
        "mal": (sent / "mal",),
        "kit": (sent / "kit",),
        "hugo": (sent / "hugo",),
    }
    refused = {"ned": sent / "ned.zip", "lea": sent / "lea"}
    with ThreadPoolExecutor(2) as pool:
        asked = {
            account: pool.submit(
                course.ground.evaluator, "submit", *words, "--no-wait", "--json", user=account
            )
            for account, words in sendings.items()
        }
        turned = {
            account: pool.submit(
                course.ground.evaluator, "submit", path, "--no-wait", user=account, code=1
            )
            for account, path in refused.items()
        }
        for account, answer in asked.items():
            course.ids[account] = json.loads(answer.result())["submission"]["submission_id"]
        for account, told_ in turned.items():
            course.refused[account] = told_.result()


def _send_from_form(course: Trial, browser: str) -> None:
    """A visitor fills in the form of the page."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page()
        page.goto(f"{course.site}/submit")
        check = page.get_by_role("button", name="Check").first
        expect(check).to_be_enabled(timeout=WAIT_MS)
        page.locator("input[type=file]").first.set_input_files(course.ground.sent / "fay.zip")
        expect(page.locator(".file-preview").first).to_be_visible(timeout=WAIT_MS)
        page.get_by_label("Signed as").first.fill("Fay of the form")
        check.click()
        send = page.get_by_role("button", name="Submit module")
        expect(send).to_be_enabled(timeout=WAIT_MS)
        send.click()
        expect(page.get_by_text("is in.")).to_be_visible(timeout=WAIT_MS)
        opened.close()
    rows = course.api("queue?per_page=1000")["rows"]
    course.ids["fay"] = next(
        row["submission_id"] for row in rows if row["submission_id"].startswith(NAMES["fay"])
    )


def _work(course: Trial) -> None:
    """Two workers, of which one is killed while it scores, and a Hub that fails the other."""
    for name in WORKERS:
        _start_worker(course, name)
    slow = course.ids["ada"]
    pids = {f"-{course.ground.children[name].pid}-": name for name in WORKERS}

    def in_the_middle() -> Heartbeat | None:
        found = [p for p in course.pulses() if p.submission_id == slow]
        return next((p for p in found if "scoring" in p.stage and 0 < p.done < p.total), None)

    seen = until(course.ground, "somebody is in the middle of it", in_the_middle)
    killed = next(name for pid, name in pids.items() if pid in seen.worker)
    course.ground.kill(killed)
    course.notes |= {"killed": seen.worker, "at": (seen.done, seen.total)}
    (left,) = set(WORKERS) - {killed}
    course.notes["left"] = left

    def taken_over() -> Heartbeat | None:
        found = (p for p in course.pulses() if p.submission_id == slow)
        return next((p for p in found if p.worker != seen.worker), None)

    course.notes["heir"] = until(course.ground, "another takes it over", taken_over).worker
    _outage(course)
    until(course.ground, "all is done", lambda: _all_done(course, {"ada", "bob", "fay", "mal"}))


def _start_worker(course: Trial, name: str) -> None:
    secret = {"ASSAY_TOKEN": course.decoys.secret, "HF_TOKEN": course.tokens["worker"]}
    words = ("--isolation", "bubblewrap", "--claim", "2", "--poll", "1", "--log-format", "json")
    course.ground.start(name, "-m", "evaluator", "worker", *words, **secret)


def _outage(course: Trial) -> None:
    """The Hub answers 503, then not at all, then as before; the page goes on meanwhile."""
    course.notes["refused"] = 0
    hub = course.hub
    for status in (503, 0):
        hub.faults.clear()
        hub.spoil("*", times=1_000_000, status=status, drop=not status)
        until(
            course.ground,
            "enough is refused",
            lambda: _refused(hub) >= REFUSED_AT_LEAST // 2 and _board_answers(course),
        )
        course.notes["refused"] += _refused(hub)
    hub.faults.clear()


def _refused(hub: HubServer) -> int:
    """How many requests met the fault that began last."""
    return sum(len(fault.seen) for fault in hub.faults.waiting())


def _board_answers(course: Trial) -> bool:
    """Whether the page answers; what it cannot ask for anew it has from before."""
    return fetched(f"{course.site}/")[0] == 200


def _all_done(course: Trial, judges: set[str]) -> bool:
    states = course.states()  # without private ones, which nobody else is told of
    seen = [states[one] for one in course.ids.values() if one in states]
    if not all(state in FINISHED for state in seen):
        return False
    if judges_of(course) != {NAMES[account] for account in judges}:
        return False
    told_ = course.ground.evaluator("status", course.ids["dee"], "--json", user="dee")
    return json.loads(told_)[0]["state"] in FINISHED


def judges_of(course: Trial) -> set[str]:
    """Metrics that have scored the model."""
    board = course.api("models/demo_prompts")
    metrics = (row["metric"] for row in board["rows"] if row["model"] == MODEL)
    return {metric.rpartition("/")[2] for metric in metrics if metric}


def _publish_private(course: Trial) -> None:
    """What is public before its author says so is kept for a look at it; then they say so."""
    ground = course.ground
    before = ground.place / "before"
    before.mkdir()
    course.notes["files_before"] = write_everything_public(course.hub, before)
    course.notes["answers_before"] = public_answers(course.site)
    publish = ("publish", course.ids["dee"])
    # It changes the boards, for which a token that may only send is not enough.
    course.refused["dee"] = ground.evaluator(*publish, user="dee", code=1)
    ground.evaluator(*publish, user="dee", HF_TOKEN=course.tokens["worker"])
    everybody = {"ada", "bob", "dee", "fay", "mal"}
    until(ground, "it judges models as well", lambda: _all_done(course, everybody))
    after = ground.place / "after"
    after.mkdir()
    write_everything_public(course.hub, after)


def write_everything_public(hub: HubServer, folder: Path) -> int:
    """Write what any commit of an open repository ever held, and what it says; how many files."""
    written = 0
    for repository in list(hub.repositories.values()):
        if repository.private:
            continue
        place = folder / repository.name.replace("/", "--")
        for commit in list(repository.commits.values()):
            at = place / commit.sha
            at.mkdir(parents=True)
            (at / "said.txt").write_text(f"{commit.title}\n{commit.message}\n")
            before = repository.files(commit.parent)
            for path, file in commit.files.items():
                if before.get(path) is file:
                    continue
                target = at / "files" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.content)
                written += 1
    return written
