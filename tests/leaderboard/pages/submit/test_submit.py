"""The ways in: modules, scores and images, from a file or a repository, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from leaderboard.pages.mine.mine_page import Asked, mine
from leaderboard.pages.queue.queue_page import one_submission
from leaderboard.pages.submit.answers import examined, gate_notice, refused, worker_banner
from leaderboard.pages.submit.images import ImagesForm, check_images, send_images
from leaderboard.pages.submit.submit_page import warnings
from leaderboard.pages.submit.submitting import (
    MOST_RECEIPT_BYTES,
    ModuleForm,
    ScoresForm,
    check_metric,
    may_send,
    send_metric,
    send_scores,
    standing_of,
)

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from leaderboard.accounts import Account
from leaderboard.desk import Examination, Gate, Problem, SaidOfImages
from leaderboard.pages import site as site_module
from leaderboard.pages.page import Context
from leaderboard.pages.visitors import who
from leaderboard.records import ImagesSeen
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.calling import Caller
from tests.leaderboard.pages.parsed import Node, harmless, read
from tests.leaderboard.pages.serving import LOCAL, app_of, served
from tests.leaderboard.pages.synthetic import (
    NASTY,
    NOW,
    StubDesk,
    ban,
    cards,
    fill,
    pulse,
    site_of,
)
from tests.leaderboard.web.own_submissions import ADA, give

NAMED = "ada/grey@main"
COMMIT = f"hub:ada/grey@{'0' * 40}"
ZIP, CSV, PARQUET = "/tmp/mine.zip", "/tmp/mine.csv", "/tmp/images.parquet"
SHUT = Gate(ok=False, reason="No namespaces here.", remedy="Install bubblewrap.")
Act = Callable[[Context, Account | None, Any], str]


@pytest.fixture
def desk() -> StubDesk:
    return StubDesk()


@pytest.fixture
def site(desk: StubDesk) -> Context:
    return site_of(desk=desk)


def done(act: Act, site: Context, account: Account | None, form: object) -> Node:
    html = act(site, account, form)
    harmless(html)
    return read(html)


def code(page: Node) -> str:
    """Of a refusal."""
    return page.one("code").text


# What is taken.


@pytest.mark.parametrize(
    ("act", "form", "taken", "sent"),
    [
        (check_metric, ModuleForm(ZIP), "examined mine.zip", None),
        (check_metric, ModuleForm(None, repository=f" {NAMED} "), f"examined {NAMED}", None),
        (check_images, ImagesForm(PARQUET, None, " painter ", "", "demo_prompts"),
         "examined images.parquet", {"said": SaidOfImages("painter", "", "demo_prompts")}),
        (check_images, ImagesForm(None, "ada/images@main"),
         "examined datasets/ada/images@main", {"said": SaidOfImages()}),
        (check_images, ImagesForm(None, "datasets/ada/images@main"),
         "examined datasets/ada/images@main", {"said": SaidOfImages()}),
        (send_metric, ModuleForm(ZIP, submitter=" Somebody "), "mine.zip",
         {"account": ADA, "submitter": "Somebody", "receipt": None, "source": ""}),
        (send_metric, ModuleForm(None, None, " A group ", private=True, repository=NAMED),
         "grey@main", {"account": ADA, "submitter": "A group", "receipt": None, "source": COMMIT}),
        (send_scores, ScoresForm(CSV, "ratings", "Me"), "mine.csv",
         {"account": ADA, "submitter": "Me", "version": ""}),
        (send_images, ImagesForm("/tmp/a.zip", submitter=" A group ", private=True), "a.zip",
         {"account": ADA, "submitter": "A group", "said": SaidOfImages()}),
    ],
)  # fmt: skip
def test_what_a_form_says_reaches_the_desk(
    act: Act, form: object, taken: str, sent: object
) -> None:
    desk = StubDesk()
    page = done(act, site_of(desk=desk), ADA, form)
    assert (desk.taken, desk.sent) == ([taken], [] if sent is None else [sent])
    assert not page.all("[role=alert]")
    if not taken.startswith("examined"):
        assert page.links("./mine?submission=made-up-000")


def test_the_commit_of_a_repository_stands_in_the_history_for_everyone() -> None:
    store = fill(memory_store())
    site = site_of(store, StubDesk(store=store))
    send_metric(site, ADA, ModuleForm(None, repository=NAMED))
    shown = (one_submission(site, "sent-000001"), mine(site, ADA, Asked("sent-000001")).parts[1])
    assert all(COMMIT in read(html).texts("code") for html in shown)


def test_content_sent_before_and_notes_are_said(site: Context, desk: StubDesk) -> None:
    desk.recognised, desk.notes = True, ("Your torch is older.", NASTY)
    page = done(send_metric, site, ADA, ModuleForm(ZIP))
    assert "here already" in page and "Your torch is older." in page.texts("li")


def test_a_receipt_goes_along_and_a_long_one_is_refused(
    site: Context, desk: StubDesk, tmp_path: Path
) -> None:
    receipt = tmp_path / "mine.receipt.json"
    for size, found in ((MOST_RECEIPT_BYTES, ""), (MOST_RECEIPT_BYTES + 1, "bad_receipt")):
        receipt.write_bytes(b"x" * size)
        page = done(send_metric, site, ADA, ModuleForm(ZIP, str(receipt)))
        assert (code(page) if page.all("[role=alert]") else "") == found
    assert [len(sent["receipt"]) for sent in desk.sent] == [MOST_RECEIPT_BYTES]  # type: ignore[arg-type]


# What is refused, before anything is looked at.

EVERY = [(check_metric, ModuleForm(None, repository=NAMED)), (send_metric, ModuleForm(None, repository=NAMED)),
         (send_scores, ScoresForm(CSV, "ratings", "ada")), (check_images, ImagesForm("/tmp/a.zip")),
         (send_images, ImagesForm("/tmp/a.zip"))]  # fmt: skip


@pytest.mark.parametrize(("act", "form"), EVERY)
def test_guests_and_the_banned_can_hand_nothing_in(
    site: Context, desk: StubDesk, act: Act, form: object
) -> None:
    assert code(done(act, site, None, form)) == "not_signed_in"
    ban(site.store, ADA)
    if act in {check_metric, check_images}:
        page = done(act, site, ADA, form)  # The desk itself refuses what is sent.
        assert code(page) == "banned" and "Copied others." in page
        assert desk.taken == []


@pytest.mark.parametrize(
    ("act", "form", "found"),
    [
        *((act, ModuleForm(path, repository=named), found)
          for act in (check_metric, send_metric)
          for path, named, found in ((ZIP, NAMED, "two_sources"), (None, "", "no_file"),
                                     (None, "  ", "no_file"), (None, None, "no_file"))),
        *((act, form, found) for act in (check_images, send_images)
          for form, found in ((ImagesForm(None), "no_file"),
                              (ImagesForm("/tmp/a.zip", "a/b"), "two_sources"))),
        (send_scores, ScoresForm(None, "ratings", "Me"), "no_file"),
        (send_scores, ScoresForm("/tmp/a.csv", None, "Me"), "no_benchmark"),
        (send_scores, ScoresForm(f"/tmp/{NASTY}", "ratings", "Me"), "bad_file"),
    ],
)  # fmt: skip
def test_an_incomplete_or_wrong_form_is_refused_by_a_code(
    site: Context, desk: StubDesk, act: Act, form: object, found: str
) -> None:
    assert code(done(act, site, ADA, form)) == found
    assert desk.taken == []


def test_code_is_refused_with_reason_and_remedy_where_it_cannot_be_isolated() -> None:
    desk = StubDesk(SHUT)
    site = site_of(desk=desk)
    for form in (ModuleForm(ZIP), ModuleForm(None, repository=NAMED)):
        page = done(send_metric, site, ADA, form)
        assert SHUT.reason in page and SHUT.remedy in page and desk.taken == []
    assert not done(send_scores, site, ADA, ScoresForm(CSV, "ratings", "Me")).all("[role=alert]")
    assert SHUT.reason in gate_notice(SHUT) and gate_notice(Gate(ok=True)) == ""


@pytest.mark.parametrize(
    ("kind", "said"),
    [(SubmitterError, "Not accepted"), (TransientError, "try again"), (PlatformError, "our fault")],
)
def test_the_answer_says_whose_fault_an_error_is(kind: type[AssayError], said: str) -> None:
    assert said in refused(kind("a", "b", "c"))


# What a check tells.


def test_a_check_lists_every_problem_with_its_place(site: Context, desk: StubDesk) -> None:
    desk.found = Examination((
        Problem("bad_manifest", f"name is {NASTY}", "Write a name.", "assay.toml", 3),
        Problem("no_scorer", "There is no class Scorer.", "", "scorer.py"),
        Problem("too_large", "All is too large."),
    ))  # fmt: skip
    page = done(check_metric, site, ADA, ModuleForm(ZIP))
    assert "3 problems" in page and len(page.all("li")) == 3
    assert {"assay.toml:3", "scorer.py"} <= set(page.texts("code"))
    missing = (Problem("missing", NASTY, "Draw it.", file=f"{NASTY}{n}") for n in range(3))
    problems = (*missing, Problem("blank", "It is of one colour.", "Draw it again.", file="x.png"))
    html = examined(Examination(problems, counts={"missing": 500, "blank": 1}))
    harmless(html)
    for words in ("501 problems", "500 missing, 1 blank", "497 more"):
        assert words in read(html)
    assert html.count("Draw it.") == 1  # A hint is told once.


def test_a_check_that_finds_nothing_tells_what_it_found_and_that_nothing_was_run() -> None:
    html = examined(
        Examination((), NASTY, "1.0", ("ratings",), 2, 3_400, "ab" * 32, notes=("A note.", NASTY))
    )
    harmless(html)
    page = read(html)
    assert "not run" in page and "2 files, 3.4 kB" in page and "A note." in page.texts("li")
    images = ImagesSeen(
        prompt_set="demo_prompts", revision="1", seeds=(1, 2), wanted=10, present=8,
        withheld={"nsfw": 2}, n_bytes=5000, sizes={"512x512": 8},
    )  # fmt: skip
    of = Examination((), "painter", "1", ("demo_prompts",), 8, 5000, "0" * 64, {}, images)
    for words in ("8 of 10", "2 seeds", "2 nsfw", "8 of 512x512", "5.0 kB"):
        assert words in read(examined(of))


# Before anything is sent.


def test_the_allowance_or_the_ban_is_said(site: Context) -> None:
    give(site.store, ADA)
    page = read(standing_of(site, ADA))
    assert "3 of 10 scored, 6 left" in page and "1 of 3 waiting" in page
    assert may_send(site, ADA) and not may_send(site, None)
    ban(site.store, ADA)
    html = standing_of(site, ADA)
    harmless(html)
    assert "Copied others." in html and not may_send(site, ADA)


def test_a_banner_warns_while_no_worker_runs_unless_nothing_is_taken(site: Context) -> None:
    assert worker_banner([pulse(5)], NOW) == "" != worker_banner([pulse(90)], NOW)
    idle = replace(site, live=MemoryLive())
    assert "No worker" in warnings(idle)[0]
    closed = replace(idle, sign_in=idle.sign_in.reading_only("It <shows> the boards."))
    assert warnings(closed) == ("", "")
    said = read(who(closed.sign_in, None)).text
    assert "It <shows> the boards." in said and "not signed in" not in said


@pytest.mark.slow
def test_a_file_that_was_uploaded_and_left_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = app_of(memory_store(), cards(), LOCAL)
    assert app.delete_cache == (3600, 7200)
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    monkeypatch.setattr(site_module, "UPLOADS_SWEPT_EVERY_S", 1)
    monkeypatch.setattr(site_module, "UPLOADS_KEPT_S", 1)

    def left() -> list[Path]:
        return [path for path in tmp_path.rglob("left*") if path.is_file()]

    with served(*app_of(memory_store(), cards(), LOCAL)) as address:
        assert Caller(address).upload("gradio_api/upload").status_code == 200
        assert len(left()) == 1
        end = time.monotonic() + 120
        while left():
            assert time.monotonic() < end, "the upload is still there"
            time.sleep(0.2)
