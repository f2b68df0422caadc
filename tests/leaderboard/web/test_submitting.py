"""The three forms: what reaches the intake, what a check says, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.problems import Problem
from leaderboard.accounts import Account
from leaderboard.records import ImagesSeen, Kind
from leaderboard.store.live.interface import MemoryLive
from leaderboard.submission_service import (
    ManifestOverrides,
    Plan,
    SandboxAvailability,
    ScoresForm,
    ValidationReport,
)
from leaderboard.views.submit import SubmitQuery
from leaderboard.web.page import Context
from leaderboard.web.submission_controls import head, submit_parts
from leaderboard.web.submitting import (
    MOST_LISTED,
    MOST_RECEIPT_BYTES,
    Answer,
    FileForm,
    Form,
    ImagesForm,
    ModuleForm,
    check,
    check_page,
    may_send,
    send,
)
from tests.kit.boards import NASTY, StubDesk, ban, site_of
from tests.kit.html import Node, harmless, parse, read
from tests.leaderboard.web.own_submissions import ADA, give

NAMED = "ada/grey@main"
COMMIT = f"hub:ada/grey@{'0' * 40}"
ZIP, CSV, PARQUET = "/tmp/mine.zip", "/tmp/mine.csv", "/tmp/images.parquet"
SHUT = SandboxAvailability(ok=False, reason="No namespaces here.", remedy="Install bubblewrap.")
Act = Callable[[Context, Account | None, Form], Answer]


@pytest.fixture
def desk() -> StubDesk:
    return StubDesk()


@pytest.fixture
def site(desk: StubDesk) -> Context:
    return site_of(desk=desk)


def page_of(answer: Answer) -> Node:
    return parse(answer.html)


def code(answer: Answer) -> str:
    """Of a refusal; empty where nothing is refused."""
    page = page_of(answer)
    return page.one("code").text if page.all("[role=alert]") else ""


# What is taken.


@pytest.mark.parametrize(
    ("act", "form", "taken", "sent"),
    [
        (check, ModuleForm(ZIP), "examined mine.zip", None),
        (check, ModuleForm(None, f" {NAMED} "), f"examined {NAMED}", None),
        (check, FileForm(CSV, "ratings", " m ", lower=" a, b ,"), "examined mine.csv",
         {"form": ScoresForm("ratings", "m", "", "", ("a", "b"))}),
        (check, ImagesForm(PARQUET, None, " painter ", "", "demo_prompts"),
         "examined images.parquet", {"said": ManifestOverrides("painter", "", "demo_prompts")}),
        (check, ImagesForm(None, "ada/images@main"),
         "examined datasets/ada/images@main", {"said": ManifestOverrides()}),
        (check, ImagesForm(None, "datasets/ada/images@main"),
         "examined datasets/ada/images@main", {"said": ManifestOverrides()}),
        (send, ModuleForm(ZIP, submitter=" Somebody "), "mine.zip",
         {"account": ADA, "submitter": "Somebody", "receipt": None, "source": ""}),
        (send, ModuleForm(None, NAMED, None, " A group ", private=True), "grey@main",
         {"account": ADA, "submitter": "A group", "receipt": None, "source": COMMIT}),
        (send, FileForm(CSV, "ratings", submitter="Me"), "mine.csv",
         {"account": ADA, "submitter": "Me", "version": ""}),
        (send, ImagesForm("/tmp/a.zip", submitter=" A group ", private=True), "a.zip",
         {"account": ADA, "submitter": "A group", "said": ManifestOverrides()}),
    ],
)  # fmt: skip
def test_what_a_form_says_reaches_the_intake(
    act: Act, form: Form, taken: str, sent: object
) -> None:
    desk = StubDesk()
    site = site_of(desk=desk)
    answer = act(site, ADA, form)
    assert (desk.taken, desk.sent) == ([taken], [] if sent is None else [sent])
    assert code(answer) == ""
    if act is send:
        assert answer.submission_id.startswith("made-up-000")
        assert page_of(answer).links("./submit?kind=")[0].endswith(answer.submission_id)
    else:
        assert answer.passed


def test_content_sent_before_and_notes_are_said(site: Context, desk: StubDesk) -> None:
    desk.recognised, desk.notes = True, ("Your torch is older.", NASTY)
    page = page_of(send(site, ADA, ModuleForm(ZIP)))
    assert "here already" in page and "Your torch is older." in page.texts("li")


def test_a_receipt_goes_along_and_a_long_one_is_refused(
    site: Context, desk: StubDesk, tmp_path: Path
) -> None:
    receipt = tmp_path / "mine.receipt.json"
    for size, found in ((MOST_RECEIPT_BYTES, ""), (MOST_RECEIPT_BYTES + 1, "bad_receipt")):
        receipt.write_bytes(b"x" * size)
        assert code(send(site, ADA, ModuleForm(ZIP, None, str(receipt)))) == found
    assert [len(sent["receipt"]) for sent in desk.sent] == [MOST_RECEIPT_BYTES]  # type: ignore[arg-type]


# What is refused, before anything is looked at.

EVERY: list[tuple[Act, Form]] = [
    (check, ModuleForm(None, NAMED)), (send, ModuleForm(None, NAMED)),
    (check, FileForm(CSV, "ratings")), (send, FileForm(CSV, "ratings")),
    (check, ImagesForm("/tmp/a.zip")), (send, ImagesForm("/tmp/a.zip")),
]  # fmt: skip


@pytest.mark.parametrize(("act", "form"), EVERY)
def test_guests_and_the_banned_can_hand_nothing_in(
    site: Context, desk: StubDesk, act: Act, form: Form
) -> None:
    assert code(act(site, None, form)) == "not_signed_in"
    ban(site.store, ADA)
    if act is check:  # The intake itself refuses what is sent.
        answer = act(site, ADA, form)
        assert code(answer) == "banned" and "Copied others." in answer.html
        assert (desk.taken, answer.passed) == ([], False)


@pytest.mark.parametrize("act", [check, send])
@pytest.mark.parametrize(
    ("form", "found"),
    [
        *((made(path, named), found) for made in (ModuleForm, ImagesForm)
          for path, named, found in ((ZIP, NAMED, "two_sources"), (None, "", "no_file"),
                                     (None, "  ", "no_file"), (None, None, "no_file"))),
        (FileForm(None, "ratings"), "no_file"),
        (FileForm("/tmp/a.csv", None), "no_benchmark"),
    ],
)  # fmt: skip
def test_an_incomplete_form_is_refused_by_a_code(
    site: Context, desk: StubDesk, act: Act, form: Form, found: str
) -> None:
    assert code(act(site, ADA, form)) == found
    assert desk.taken == []


def test_code_is_refused_with_reason_and_remedy_where_it_cannot_be_isolated() -> None:
    desk = StubDesk(SHUT)
    site = site_of(desk=desk)
    for form in (ModuleForm(ZIP), ModuleForm(None, NAMED)):
        page = page_of(send(site, ADA, form))
        assert SHUT.reason in page and SHUT.remedy in page and desk.taken == []
    assert code(send(site, ADA, FileForm(CSV, "ratings"))) == ""
    for kind in Kind:
        assert (SHUT.reason in head(site, ADA, kind)) is (kind is Kind.METRIC)


# What a check tells.


def test_76_missing_images_are_one_row_with_their_number_an_example_and_the_remedy(
    site: Context, desk: StubDesk
) -> None:
    missing = [Problem("missing", f"There is none {NASTY}.", "Generate it.", file=f"p{n}_{NASTY}")
               for n in range(76)]  # fmt: skip
    blank = Problem("blank", "It is of one colour.", "Generate it again.", file="x.png")
    desk.found = ValidationReport((*missing, blank), counts={"missing": 500, "blank": 1})
    answer = check(site, ADA, ImagesForm("/tmp/a.zip"))
    page = page_of(answer)
    rows = page.all(".as-problems tbody tr")
    assert [row.texts("td")[0] for row in rows] == ["500", "1"]
    assert ["p0_" in rows[0].text, rows[1].texts("td")[1:]] == [
        True,
        ["x.png", "Generate it again."],
    ]
    assert "2 kinds of problems, 501 in all." in page and not answer.passed
    assert answer.html.count("Generate it.<") == 1  # The remedy is told once.
    (more,) = page.all("details")
    assert len(more.all("li")) == 76 and "first 76" in more


@pytest.mark.parametrize(
    ("n", "words"), [(MOST_LISTED, f"All {MOST_LISTED}"), (2840, f"first {MOST_LISTED}")]
)
def test_a_list_says_whether_it_holds_every_example(
    site: Context, desk: StubDesk, n: int, words: str
) -> None:
    places = tuple(f"pair-{k}" for k in range(n))
    missing = Problem("missing_pairs", f"{n} are missing.", examples=places)
    desk.found = ValidationReport((missing,), counts={"missing_pairs": n})
    (more,) = page_of(check(site, ADA, FileForm(CSV, "ratings"))).all("details")
    assert words in more and len(more.all("li")) == MOST_LISTED


@pytest.mark.parametrize(
    "form",
    [ModuleForm(ZIP, submitter="<b>"), FileForm(CSV, "ratings", submitter="<b>"),
     ImagesForm(PARQUET, submitter="<b>")],
)  # fmt: skip
def test_a_signature_that_would_be_refused_is_among_the_problems_of_a_check(
    site: Context, desk: StubDesk, form: Form
) -> None:
    desk.wrong = (Problem("bad_submitter", "It is too long."),)
    desk.found = ValidationReport((Problem("blank", "It is of one colour."),))
    answer = check(site, ADA, form)
    assert page_of(answer).texts(".as-problems .as-code") == ["blank", "bad_submitter"]
    desk.found = ValidationReport(())
    assert not check(site, ADA, form).passed
    assert check(site, ADA, replace(form, submitter=" ")).passed  # type: ignore[type-var]


def test_a_check_names_the_only_metric_that_boards_will_show(site: Context, desk: StubDesk) -> None:
    desk.found = ValidationReport((), "clipscore", plan=Plan(("mine",), {"ratings": 480}))
    page = page_of(check(site, ADA, FileForm(CSV, "ratings", "clipscore")))
    assert dict(zip(page.texts("dt"), page.texts("dd"), strict=True))["Metric"] == "mine"


def test_every_key_of_a_manifest_has_a_row_with_its_place(site: Context, desk: StubDesk) -> None:
    desk.found = ValidationReport((
        Problem("bad_manifest", f"name is {NASTY}", "Correct that key.", "assay.toml", 3),
        Problem("bad_manifest", "version is wrong", "Correct that key.", "assay.toml", 4),
        Problem("too_large", "All is too large."),
    ))  # fmt: skip
    page = page_of(check(site, ADA, ModuleForm(ZIP)))
    assert page.texts("code.as-place") == ["assay.toml:3", "assay.toml:4"]
    assert len(page.all("tbody tr")) == 3


def test_a_check_that_passes_says_what_a_worker_would_do_and_which_boards_it_enters(
    site: Context, desk: StubDesk
) -> None:
    desk.found = ValidationReport(
        (), NASTY, "1.0", ("ratings", "graphs"), 1, 3_400, "ab" * 32, notes=("A note.", NASTY),
        plan=Plan(("a", "b"), {"ratings": 480}, {"tiny": "no images"}, ("scores as submitted",)),
    )  # fmt: skip
    answer = check(site, ADA, FileForm(CSV, "ratings"))
    page = page_of(answer)
    assert answer.passed and "A note." in page.texts(".as-remark")
    entered = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    for term, words in (("Enters", "Ratings, 480 pairs: "), ("Enters", "Error graphs"),
                        ("Marked", "scores as submitted"), ("Metrics", "a, b"),
                        ("Leaves out", "tiny: no images"), ("Does", "no code is run"),
                        ("Takes", "1 submission ahead"), ("Content", "1 file, 3.4 kB")):  # fmt: skip
        assert words in entered[term], term
    assert "untrusted code isolated" in read(check_page(site, Kind.METRIC, desk.found))


def test_checked_images_are_counted_and_what_is_withheld_is_said(site: Context) -> None:
    images = ImagesSeen(
        prompt_set="demo_prompts", revision="1", seeds=(1, 2), wanted=10, present=8,
        withheld={"nsfw": 2}, n_bytes=5000, sizes={"512x512": 8},
    )  # fmt: skip
    of = ValidationReport((), "painter", "1", ("demo_prompts",), 8, 5000, "0" * 64, {}, images)
    page = read(check_page(site, Kind.GENERATIONS, of))
    for words in ("8 of 10", "2 seeds", "2 nsfw", "8 of 512x512", "5.0 kB", "qualified metrics"):
        assert words in page


# Before anything is sent.


def test_the_quota_or_the_ban_is_said(site: Context) -> None:
    give(site.store, ADA)
    quota = read(submit_parts(site, ADA, SubmitQuery()).html[3])
    assert "6 left: 3 of 10 used in 7 days; 1 of 3 waiting" in quota
    assert may_send(site, ADA) and not may_send(site, None)
    ban(site.store, ADA)
    html = head(site, ADA, Kind.SCORES)
    harmless(html)
    assert "Copied others." in html and not may_send(site, ADA)
    assert submit_parts(site, ADA, SubmitQuery()).html[3] == ""


def test_a_warning_stands_while_no_worker_runs_unless_nothing_is_taken(site: Context) -> None:
    assert "No worker" not in head(site, ADA, Kind.SCORES)
    idle = replace(site, store=replace(site.store, live=MemoryLive()))
    assert "No worker" in head(idle, ADA, Kind.SCORES)
    closed = replace(idle, sign_in=idle.sign_in.reading_only("It <shows> the boards."))
    said = read(head(closed, None, Kind.METRIC)).text
    assert "It <shows> the boards." in said
    assert "not signed in" not in said and "No worker" not in said
