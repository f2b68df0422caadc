"""Which jobs are started, cancelled and accounted for; what they are given, and what is told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.settings.model import load
from evaluator.commands.worker import JobOptions
from evaluator.commands.worker_loop import name_of_worker
from evaluator.launching.launcher import last_lines, new_name, one_line, why_it_ended
from evaluator.launching.planning import Plan, SeenJob, accounted, plan
from leaderboard.records import Event, Kind, Status
from leaderboard.replay import fold
from leaderboard.states import TO_JUDGE, State
from leaderboard.store.opening import StoreName
from tests.evaluator.scorers.common import refusal
from tests.kit.worker import submission

T0 = datetime(2031, 1, 1, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def event(minutes: float, state: State, by: str = "ada", **more: object) -> Event:
    return Event.model_validate({"at": at(minutes), "state": state, "by": by, **more})


def claimed(worker: str, minutes: float = 1) -> tuple[Event, ...]:
    claim = event(minutes, State.CLAIMED, worker, lease_until=at(8 * 60))
    return (claim, event(minutes, State.SCORING, worker))


RECEIVED = (event(0, State.RECEIVED), event(0, State.QUEUED))
CLAIMED, ELSEWHERE = claimed("job-1"), claimed("w-elsewhere")
WITHDRAWN = event(2, State.WITHDRAWN)
FAILED = event(2, State.FAILED, "job-1", reason="x")
HANDED = event(5, State.SCORED, "job-1", code=TO_JUDGE)
GIVEN_BACK = event(2, State.QUEUED, "job-1", reason="stopped")


def status(
    name: str, *later: Event, account: str = "ada", kind: Kind = Kind.METRIC, sent: float = 0
) -> Status:
    known = {"kind": kind, "submitter": account, "account": account, "received_at": at(sent)}
    return fold(submission(name, **known), (*RECEIVED, *later))


def job(
    name: str, worker: str = "job-1", *, stage: str = "RUNNING", made: float = 1, number: int = 1
) -> SeenJob:
    return SeenJob(f"j{number}", f"{name}-00000000", worker, stage, "", at(made))


def planned(
    statuses: list[Status], live: list[SeenJob], *, minutes: float = 30, at_most: int = 4
) -> Plan:
    return plan(statuses, live, at(minutes), at_most=at_most, time_s=3600)


def names(statuses: Iterable[Status]) -> list[str]:
    return [each.submission.name for each in statuses]


def startable(found: Plan) -> list[str]:
    return names(found.waiting[: found.room])


# What is started ------------------------------------------------------------------------------


def test_what_waits_gets_a_job_in_the_order_of_its_turn() -> None:
    waiting = [status("a1"), status("a2", sent=1), status("b1", account="bob", sent=2)]
    assert startable(planned(waiting, [])) == ["a1", "b1", "a2"]


@pytest.mark.parametrize(("at_most", "more"), [(3, ["m2"]), (2, []), (1, [])])
@pytest.mark.parametrize("stage", ["SCHEDULING", "RUNNING"])
def test_no_more_jobs_than_allowed_are_live_and_one_for_a_submission(
    at_most: int, more: list[str], stage: str
) -> None:
    live = [job("m0", stage=stage), job("m1", "job-2", number=2, stage=stage)]
    found = planned([status(f"m{n}", sent=n) for n in range(5)], live, at_most=at_most)
    assert (startable(found), found.cancel, found.live) == (more, (), 2)


def test_scores_files_and_what_rests_or_is_unwanted_get_none() -> None:
    back = event(29.9, State.QUEUED, "job-9", fault="world", reason="x")
    waiting = [status("s", kind=Kind.SCORES), status("r", *claimed("job-9", 29), back)]
    assert startable(planned(waiting, [])) == []
    assert startable(planned(waiting, [], minutes=40)) == ["r"]
    found = plan(waiting, [], at(40), at_most=4, time_s=60, wanted=lambda _: False)
    assert startable(found) == []


# What is cancelled and what is lost -----------------------------------------------------------


@pytest.mark.parametrize(
    ("later", "minutes", "cancelled"),
    [
        pytest.param((WITHDRAWN,), 30, True, id="withdrawn"),
        pytest.param((*CLAIMED, WITHDRAWN), 30, True, id="withdrawn-in-work"),
        pytest.param((*CLAIMED, FAILED), 30, True, id="failed"),
        pytest.param(ELSEWHERE, 30, True, id="elsewhere"),
        pytest.param((*CLAIMED, HANDED), 30, False, id="handed-over"),
        pytest.param(CLAIMED, 1 + 74, False, id="in-time"),
        pytest.param(CLAIMED, 1 + 76, True, id="overtime"),
    ],
)
def test_a_job_nobody_needs_is_cancelled(
    later: tuple[Event, ...], minutes: float, cancelled: bool
) -> None:
    found = planned([status("m", *later)], [job("m")], minutes=minutes)
    assert [each.job.job_id for each in found.cancel] == ["j1"] * cancelled
    assert found.live == 1 - cancelled
    assert len(planned([], [job("m")]).cancel) == 1, "it is of no submission"


def test_of_two_jobs_for_one_submission_the_one_that_has_it_stays() -> None:
    both = [job("m", "job-1", made=1), job("m", "job-2", made=2, number=2)]
    waits = planned([status("m")], both).cancel
    assert [each.job.job_id for each in waits] == ["j2"]
    held = planned([status("m", *claimed("job-2", 3))], both).cancel
    assert [each.job.job_id for each in held] == ["j1"]


def test_what_a_dead_job_holds_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    held = status("m", *CLAIMED)
    assert names(planned([held], []).lost) == ["m"]
    assert names(planned([status("m", *claimed(new_name()))], []).lost) == ["m"]
    assert planned([held], [job("m")]).lost == ()
    assert planned([held], [], minutes=2).lost == (), "the Hub may not list it yet"
    assert planned([status("m", *ELSEWHERE)], []).lost == ()
    monkeypatch.setattr("socket.gethostname", lambda: "job-7")
    assert planned([status("m", *claimed(name_of_worker({})))], []).lost == (), "a machine's name"


@pytest.mark.parametrize(
    ("stage", "events", "known"),
    [
        pytest.param("ERROR", (), False, id="did-nothing"),
        pytest.param("COMPLETED", (), False, id="said-nothing"),
        pytest.param("ERROR", (*CLAIMED, GIVEN_BACK), False, id="given-back"),
        pytest.param("CANCELED", (), True, id="cancelled"),
        pytest.param(
            "COMPLETED",
            (*CLAIMED, event(2, State.QUEUED, "job-1", reason="x", fault="world")),
            True,
            id="spoilt-by-the-world",
        ),
        pytest.param(
            "COMPLETED",
            (*CLAIMED, HANDED, event(6, State.QUEUED, "judge", reason="damaged", fault="world")),
            True,
            id="handed-over",
        ),
        pytest.param(
            "COMPLETED", (*CLAIMED, FAILED, event(9, State.QUEUED, "root")), True, id="rerun"
        ),
    ],
)
def test_a_job_is_accounted_for_if_the_events_tell_its_end(
    stage: str, events: tuple[Event, ...], known: bool
) -> None:
    assert accounted(job("m", stage=stage), (*RECEIVED, *events)) is known


# What is told of a job that ended without scores ----------------------------------------------


def test_the_reason_names_the_job_its_end_and_its_last_words() -> None:
    ended = SeenJob("j1", "grey-00000000", "job-1", "ERROR", "exit code 3", T0)
    message = why_it_ended(ended, ("no memory left", "stopped")).message
    assert "Job j1 failed (exit code 3)" in message
    assert message.endswith("no memory left | stopped")
    assert "Hub" in why_it_ended(None, ()).message


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        pytest.param([str(n) for n in range(50)], "45 46 47 48 49", id="the last"),
        pytest.param(["Claimed.", "╭─ Traceback ─╮", "│ 101 │ x", "╰─────╯", "Name"], "Claimed. Name", id="boxes"),
        pytest.param(["\x1b[2J\x1b]0;title\x07gone\u202etxet", "\x00", "  \t "], "gonetxet", id="hostile"),
        pytest.param(["is:hf_secret", "hf_\x00sec\u200bret", "hf_secret_longer"], "is:*** *** ***", id="secrets"),
    ],
)  # fmt: skip
def test_the_last_lines_are_told_without_secrets_and_moving_no_cursor(
    printed: list[str], told: str
) -> None:
    found = last_lines(printed, ["hf_secret", "hf_secret_longer", ""])
    assert " ".join(found) == told


def test_not_much_is_told_of_long_lines_and_of_several_one() -> None:
    assert sum(map(len, last_lines(["x" * 5000] * 9, ()))) <= 600
    assert one_line("a\r\nb\n\nc") == "a b c"


# What an operator says about jobs, and what a job gets of this machine -------------------------

STORE = StoreName("hub:lab/board")
MACHINE = {
    "ASSAY_JOB_TOKEN": "hf_job",
    "HF_TOKEN": "hf_operator",
    "ASSAY_LIVE": "https://lab-board.hf.space",
    "ASSAY_LIVE_SECRET": "s3",
    "ASSAY_DATA": "/data",
    "ASSAY_KEYS": "/keys",
}


def test_a_job_gets_its_own_token_and_where_to_beat_and_no_data() -> None:
    made = JobOptions(image="lab/assay:1", hours=0.5).settings(STORE, MACHINE)
    assert dict(made.secrets) == {"HF_TOKEN": "hf_job", "ASSAY_LIVE_SECRET": "s3"}
    assert dict(made.variables) == {"ASSAY_LIVE": "https://lab-board.hf.space"}
    assert (made.namespace, made.timeout_s) == ("lab", 1800)
    assert "hf_job" not in repr(made)


def test_a_job_that_starts_later_gets_the_token_that_is_good_then(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_first")
    machine = {"ASSAY_JOB_TOKEN_FILE": str(tmp_path / "token")}
    load(machine, tmp_path)
    made = JobOptions(image="lab/assay:1").settings(STORE, machine)
    assert dict(made.secrets) == {"HF_TOKEN": "hf_first"}
    (tmp_path / "token").write_text("hf_second")
    assert dict(made.secrets) == {"HF_TOKEN": "hf_second"}


@pytest.mark.parametrize(
    ("options", "store", "without", "code"),
    [
        (JobOptions(image="lab/assay:1"), STORE, "ASSAY_JOB_TOKEN", "no_job_token"),
        (JobOptions(), STORE, "", "no_job_image"),
        (JobOptions(image="lab/assay:1"), StoreName(".assay/store"), "", "store_out_of_reach"),
        (JobOptions(image="lab/assay:1", questions="questions"), STORE, "", "bad_job_questions"),
    ],
)
def test_what_no_job_could_do_is_refused_before_any_starts(
    options: JobOptions, store: StoreName, without: str, code: str
) -> None:
    """The operator's own token is never passed on."""
    machine = {name: value for name, value in MACHINE.items() if name != without}
    with refusal(code):
        options.settings(store, machine)
