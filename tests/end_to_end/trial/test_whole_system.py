"""A service as its operator runs it, for one eventful hour in short: and then every figure of it.

Two workers and the page, all of an ordinary user in a clean copy of the project, with the store on a
Hub; eleven accounts send what people send. A worker is killed, the Hub fails, and in the end all
must stand as if nothing had happened. See `course`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.rebuilding import queue_differences
from leaderboard.records import Event
from leaderboard.states import NEW_METRIC, State, allowed
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.interface import Store
from tests.end_to_end.trial.course import REFUSED_AT_LEAST, Trial, trial
from tests.end_to_end.trial.figures import (
    Expected,
    check_board,
    check_datasets,
    check_means,
    check_rows,
)
from tests.end_to_end.trial.ground import STORE, fetched, told, until
from tests.end_to_end.trial.submissions import NAMES, ON, OPEN_TO_CODE, SECRET_NAME
from tests.end_to_end.trial.traces import answers_with, files_below, files_with, logs_of
from tests.hostile.attempts import ATTEMPTS

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.isolation,
    pytest.mark.browser,
    pytest.mark.slow,
]
ENDS = {
    **dict.fromkeys(("ada", "bob", "cyd", "dee", "eve", "fay", "mal"), State.PUBLISHED),
    **dict.fromkeys(("kit", "hugo"), State.FAILED),
}
FAULTS = {"kit": ("scorer_raised", "no more than three at a time"), "hugo": ("out_of_memory", "")}
BEGUN = [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING]
JUDGED = [State.SCORED, State.JUDGING, State.PUBLISHED]


@pytest.fixture(scope="module")
def course(chromium: str) -> Iterator[Trial]:
    with trial(chromium) as found:
        yield found


@pytest.fixture(scope="module")
def store(course: Trial, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("reader")
    return hub_store(
        STORE, folder, endpoint=course.hub.endpoint, token=course.tokens["keeper"], fresh_for_s=600
    )


@pytest.fixture(scope="module")
def expected(course: Trial) -> Expected:
    return Expected(course.ground.sent)


def events_of(course: Trial, store: Store, account: str) -> tuple[Event, ...]:
    return Ledger(store).whole_events(course.ids[account])


def states_of(course: Trial, store: Store, account: str) -> list[State]:
    return [event.state for event in events_of(course, store, account)]


def test_everything_was_an_ordinary_users(course: Trial) -> None:
    assert course.ground.run("-c", "import os; print(os.getuid())").stdout.strip() != "0"
    owners = {path.stat().st_uid for path in files_below(course.ground.belongings)}
    assert owners
    assert 0 not in owners


def test_each_submission_ends_as_it_must(course: Trial, store: Store) -> None:
    statuses = {s.submission.submission_id: s for s in Ledger(store).statuses()}
    assert set(statuses) == set(course.ids.values()), "what was refused is not there at all"
    assert {account: statuses[one].state for account, one in course.ids.items()} == ENDS
    for account, (code, said) in FAULTS.items():
        status = statuses[course.ids[account]]
        assert (status.code, status.fault) == (code, "submitter")
        assert said in status.reason
        assert status.reason
        assert status.hint


def test_what_cannot_be_taken_is_refused_in_words_and_leaves_nothing(course: Trial) -> None:
    assert "unsafe_name" in course.refused["ned"]
    assert "../../climbed.py" in course.refused["ned"]
    assert "1 GB" in course.refused["lea"]
    assert "no_store_access" in course.refused["dee"], (
        "a token that may only send publishes nothing"
    )
    places = (course.ground.code, course.ground.place / "tmp", course.ground.place / "home")
    assert not [path for path in files_below(*places) if path.name == "climbed.py"]
    assert not list(Path("/var/tmp").glob("climbed.py"))
    assert not [p for p in files_below(course.ground.belongings) if p.stat().st_size > 1 << 29]


def test_the_ledger_holds_and_no_transition_is_missing(course: Trial, store: Store) -> None:
    assert verify(store.public) == ()
    assert queue_differences(store) == ()
    for account in course.ids:
        found = [None, *states_of(course, store, account)]
        assert all(allowed(a, b) for a, b in pairwise(found) if b is not None), (account, found)
    counted = sum(len(events_of(course, store, account)) for account in course.ids)
    assert (
        len([line for line in read_lines(store.public) if line.subject in course.ids.values()])
        == counted
    )


def test_the_work_of_the_killed_worker_was_taken_over_and_nothing_else_was_done_twice(
    course: Trial, store: Store
) -> None:
    slow = events_of(course, store, "ada")
    # That scoring began is told with the next commit, which the dead one never made.
    told_ = [e.state for e in slow if e.state is not State.SCORING]
    assert told_ == [*BEGUN[:-1], State.CLAIMED, *JUDGED]
    assert slow[-4].state is State.SCORING
    claims = [e.by for e in slow if e.state is State.CLAIMED]
    assert claims == [course.notes["killed"], course.notes["heir"]]
    assert claims[0] != claims[1]
    for account in set(ENDS) - {"ada", "eve", "dee"}:
        events = [e for e in events_of(course, store, account) if e.state is not State.SCORING]
        ends = [State.FAILED] if ENDS[account] is State.FAILED else JUDGED
        # What the killed worker had taken with it was claimed once more, by somebody else.
        claims = [e.by for e in events if e.state is State.CLAIMED]
        assert len(set(claims)) == len(claims)
        assert set(claims[:-1]) <= {course.notes["killed"]}
        found = [e.state for e in events]
        assert found == [State.RECEIVED, State.QUEUED, *([State.CLAIMED] * len(claims)), *ends]
    private = states_of(course, store, "dee")
    assert private[-3:] == [State.JUDGING, State.HELD, State.PUBLISHED]


def test_nothing_was_published_twice(course: Trial, store: Store) -> None:
    for account, end in ENDS.items():
        found = events_of(course, store, account)
        published = [e for e in found if e.state is State.PUBLISHED]
        again = [e for e in found if e.code == NEW_METRIC]
        wanted = len(again) + 1 if account == "eve" else int(end is State.PUBLISHED)
        assert len(published) == wanted, (account, [e.state for e in found])
    for account, benchmarks in ON.items():
        files = store.public.list(f"results/{course.ids[account]}/")
        results = {name.split("/")[-1] for name in files if name.endswith(".json")}
        assert {f"{name}.json" for name in benchmarks} <= results, results


def test_while_the_hub_was_out_the_page_went_on_and_work_was_refused(course: Trial) -> None:
    assert course.notes["refused"] >= REFUSED_AT_LEAST
    seen = course.ground.log(course.notes["left"]).read_text()
    assert "Traceback" not in seen
    assert "Traceback" not in course.ground.log("app").read_text()


def test_what_was_private_was_nowhere_before_its_author_published_it(course: Trial) -> None:
    place = course.ground.place
    assert course.notes["files_before"] > 50
    assert files_with([SECRET_NAME], files_below(place / "before")) == []
    assert answers_with(SECRET_NAME, course.notes["answers_before"]) == []
    assert len(course.notes["answers_before"]) > 20
    assert all(course.notes["answers_before"].values()), "each was answered"
    shown = {row["metric"] for row in course.api("boards/demo_ts2")["rows"]}
    assert SECRET_NAME in shown


def test_no_secret_is_in_public_nor_in_any_log(course: Trial) -> None:
    secrets = [*course.tokens.values(), course.decoys.secret]
    place = course.ground.place
    assert files_with(secrets, files_below(place / "after", place / "before")) == []
    assert files_with(secrets, logs_of(course.ground)) == []


def test_the_burglar_got_nowhere_and_left_nothing(course: Trial, store: Store) -> None:
    log = course.ground.evaluator("logs", course.ids["mal"], user="mal")
    assert "GOT " not in log
    # A log is kept from its end, so of many lines the first few may be gone.
    untold = [one.name for one in ATTEMPTS if f"refused {one.name}" not in log]
    assert untold == [one.name for one in ATTEMPTS[: len(untold)]]
    assert len(untold) < len(ATTEMPTS) / 2
    assert course.decoys.heard == []
    assert course.decoys.canary.read_text() == course.decoys.secret
    assert list((course.decoys.folder / "free").iterdir()) == []
    scratch = course.ground.belongings / "scratch"
    left = [str(p) for name in ("unpacked", "outbox", "shards") for p in (scratch / name).glob("*")]
    assert [path for path in left if course.ids["mal"] in path] == []


def test_only_results_are_charged(course: Trial) -> None:
    for account in ("ada", "dee", "eve", "kit", "hugo", "ned"):
        told_ = json.loads(course.ground.evaluator("quota", "--json", user=account))
        assert told_["account"] == f"local:{account}"
        scored = sum(line["scored"] for line in told_["standings"])
        assert scored == int(ENDS.get(account) is State.PUBLISHED), account
        assert not any(line["unfinished"] for line in told_["standings"])


def test_every_published_row_comes_out_again_from_the_published_scores(course: Trial) -> None:
    """`report --recompute`, with the scores of the Hub's datasets."""
    for account, benchmarks in ON.items():
        words = ("report", course.ids[account], "--recompute", "--json")
        record = json.loads(course.ground.evaluator(*words, user=account))
        again = {each["benchmark"]: each for each in record["recomputed"]}
        assert set(again) == set(benchmarks)
        assert all(each["same"] and each["rows"] > 0 for each in again.values()), again


def test_boards_and_queue_are_what_events_and_results_add_up_to(course: Trial) -> None:
    words = ("-m", "evaluator", "doctor", "--rebuild", "--json")
    rows = json.loads(course.ground.run(*words, user="operator").stdout)
    assert "as events and results add up to" in [row["state"] for row in rows], rows


def test_pages_and_health_answer(course: Trial) -> None:
    ids = [f"metric?id={course.ids['ada']}", "?tab=benchmark:demo_ts2", "models", "compare"]
    for page in ("", "submit", "ledger", "status", "as-of", *ids):
        status, body = fetched(f"{course.site}/{page}")
        assert (status, len(body) > 500) == (200, True), page
    assert NAMES["ada"].encode() in fetched(f"{course.site}/as-of")[1]
    until(course.ground, "all is well", lambda: told(f"{course.site}/health")["status"] == "ok")


def test_every_value_on_every_board_is_what_another_computation_gives(
    course: Trial, store: Store, expected: Expected
) -> None:
    for benchmark in OPEN_TO_CODE:
        check_rows(course, store, expected, benchmark)
        check_board(course, store, expected, benchmark)


def test_means_of_the_model_are_what_each_metric_gives_its_images(
    course: Trial, expected: Expected
) -> None:
    check_means(course, expected)


def test_datasets_reads_what_the_boards_show(course: Trial) -> None:
    check_datasets(course)
