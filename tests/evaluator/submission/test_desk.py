"""What the desk takes, what makes two submissions one, and under which names they are shown."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.published import papers
from benchmarks.registry import load_registry
from benchmarks.released import bundle
from benchmarks.released.bundle import ReleasedScores, read_manifest
from evaluator.bundled import bundled_modules
from evaluator.submission import service as desk_module
from evaluator.submission.archives.entries import ArchiveLimits
from evaluator.submission.intake import MAX_DESCRIPTION, Identity, checked_signature
from evaluator.submission.service import SubmissionService
from leaderboard.accounts import ASSAY, Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Submission
from leaderboard.states import State
from leaderboard.submission_service import (
    UNNAMED,
    SandboxAvailability,
    ScoresForm,
    SubmissionReceipt,
)
from tests.evaluator.submission import desks
from tests.kit.hub.server import HubServer
from tests.kit.refusals import refused
from tests.kit.toy import Toy
from tests.kit.worker import ADA, BOB, MODULE, ROOT, Rig

OTHER = desks.SCORES.replace("3", "4")
FAILED = (State.CLAIMED, State.FAILED)


def sent(rig: Rig, account: Account = ADA, *, name: str = "clip", **more: Any) -> str:
    return rig.send_scores(
        desks.SCORES, account=account, name=name, **more
    ).submission.submission_id


def again(rig: Rig, account: Account = ADA, *, private: bool = False) -> SubmissionReceipt:
    return rig.desk.submit_metric(rig.module(), account=account, private=private)


# What is the same submission ------------------------------------------------------------------


def test_what_another_account_sends_is_another_submission_and_flagged(rig: Rig) -> None:
    first, second = rig.send().submission, rig.send(account=BOB).submission
    assert first.submission_id != second.submission_id
    assert first.archive == second.archive, "it is kept once"
    assert (first.same_content_as, second.same_content_as) == ((), (first.submission_id,))
    ids = {sent(rig, account, name=name) for account in (ADA, BOB) for name in ("CLIP.S", "clip-s")}
    assert len(ids) == 4
    third = rig.send_scores(OTHER, name="mine").submission.submission_id
    assert rig.send_scores(OTHER, account=BOB, name="his").submission.same_content_as == (third,)
    rig.worker().run_all()
    assert {s.state for s in rig.ledger.statuses()} == {State.PUBLISHED}


@pytest.mark.parametrize("private", [False, True])
def test_what_the_same_account_sends_again_is_recognised(rig: Rig, private: bool) -> None:
    first = again(rig, private=private)
    head = rig.store.public.head()
    second = again(rig, private=private)
    assert (first.recognised, second.recognised) == (False, True)
    assert second.status == first.status
    assert rig.store.public.head() == head
    rig.worker().run_all()
    head = rig.store.public.head()
    ended = State.HELD if private else State.PUBLISHED
    assert again(rig, private=private).status.state is ended, "it is not run again"
    assert rig.store.public.head() == head
    assert sent(rig) == sent(rig) != sent(rig, version="2")


def test_what_failed_is_queued_again_and_said_to_be(rig: Rig) -> None:
    desks.happen(rig, rig.send().submission.submission_id, *FAILED)
    accepted = again(rig)
    assert (accepted.recognised, accepted.status.state) == (True, State.QUEUED)
    assert "queued again" in accepted.notes[-1]


@pytest.mark.parametrize("state", [State.WITHDRAWN, State.REJECTED])
def test_what_was_taken_back_or_rejected_is_not_taken_again(rig: Rig, state: State) -> None:
    desks.happen(rig, rig.send().submission.submission_id, state)
    with refused("seen_before", "It was wrong."):
        rig.send()


def test_an_existing_store_of_the_demo_recognises_the_bundled_modules(rig: Rig) -> None:
    """Before there were accounts, an id was made of name and content."""
    folder = bundled_modules()[0]
    new = rig.desk.submit_metric(folder, account=ASSAY).status.submission
    assert new.submission_id.endswith(f"-{new.content_sha256[:10]}")
    other = Rig(rig.folder / "other")
    other.folder.mkdir()
    old = Submission.model_validate({**new.model_dump(), "account": ""})
    Ledger(other.store).receive(old, b"", desks.events(rig, State.RECEIVED, State.QUEUED))
    accepted = other.desk.submit_metric(folder, account=ASSAY)
    assert (accepted.recognised, accepted.status.submission) == (True, old)


# What stays with its author -------------------------------------------------------------------


def test_a_private_submission_shows_nothing_of_itself_in_public(rig: Rig) -> None:
    own = again(rig, private=True).status.submission
    assert (own.name, own.account, own.private) == ("grey", ADA.key, True)
    (shown,) = rig.ledger.statuses()
    assert shown.submission.submission_id == own.submission_id
    public = b"".join(rig.store.public.read(path) for path in rig.store.public.list())
    for secret in (b"grey", b"hub:ada", b'"ada"', own.content_sha256.encode()):
        assert secret not in public
    assert rig.send(account=BOB).submission.same_content_as == (UNNAMED,)
    named_so = rig.send({**MODULE, "assay.toml": b'name = "private"'}).submission
    assert named_so.submission_id.startswith("metric-private-"), "unlike the id of a private one"


def test_the_privacy_of_what_is_here_already_is_told_and_kept(rig: Rig) -> None:
    again(rig, private=True)
    assert "stays so" in again(rig).notes[0]
    again(rig, BOB)
    assert "not private" in again(rig, BOB, private=True).notes[0]


# Names, versions and texts --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("bad_metric_name", {"name": "pair_id"}), ("bad_metric_name", {"name": "score"}),
        ("bad_description", {"description": "ab\ud800"}),
        ("bad_description", {"description": "x" * (MAX_DESCRIPTION + 1)}),
        *(("bad_version", {"version": version}) for version in ("1 2", "v" * 33, "<b>", "-1")),
    ],
)  # fmt: skip
def test_odd_labels_of_scores_are_refused(rig: Rig, code: str, more: dict[str, Any]) -> None:
    with refused(code) as caught:
        sent(rig, **more)
    if "\ud800" in more.get("description", ""):
        assert "position 3" in caught.value.message
    elif code == "bad_metric_name":
        unnamed = rig.scores(desks.SCORES, f"{more['name']}.csv")
        status = rig.desk.submit_scores(unnamed, ScoresForm("toy"), account=ADA).status
        assert status.submission.metrics == ("scores",)


def test_what_cannot_be_seen_is_taken_out_of_descriptions(rig: Rig) -> None:
    submission = rig.send_scores(
        desks.SCORES, description="good\u202e\x1b[31m metric\x00"
    ).submission
    assert submission.description == "good metric"


def test_everything_that_is_wrong_with_a_module_is_told_before_it_is_sent(rig: Rig) -> None:
    path = rig.module({"assay.toml": b'name = "a b"\nentry_point = "nothing:Here"'})
    problems = rig.desk.examine_metric(path).problems
    assert [(p.code, p.line) for p in problems] == [("bad_manifest", 1), ("no_entry_point", 2)]
    with refused("several_problems"):
        rig.desk.submit_metric(path, account=ADA)


def test_a_version_has_one_content_for_an_account_until_it_is_withdrawn(rig: Rig) -> None:
    first = rig.send(desks.module(more=b"1")).submission.submission_id
    with refused("version_taken"):
        rig.send(desks.module(more=b"2"))
    assert rig.send(desks.module(more=b"2"), account=BOB).state is State.QUEUED
    assert rig.send(desks.module(version="2", more=b"2")).state is State.QUEUED
    desks.happen(rig, first, State.WITHDRAWN)
    assert rig.send(desks.module(more=b"3")).state is State.QUEUED
    sent(rig, version="1")
    with refused("version_taken"):
        rig.send_scores(OTHER, name="clip", version="1")
    assert rig.send_scores(OTHER, name="clip", version="2").submission.version == "2"


def test_what_failed_does_not_come_back_under_a_version_that_was_used_again(rig: Rig) -> None:
    first = rig.send(desks.module()).submission.submission_id
    desks.happen(rig, first, *FAILED)
    rig.send(desks.module(more=b"pass"))
    with refused("version_taken"):
        rig.send(desks.module())
    assert rig.ledger.status(first).state is State.FAILED


def test_a_version_is_taken_while_its_results_stand_though_a_rerun_failed(rig: Rig) -> None:
    known = rig.send(desks.module()).submission.submission_id
    rig.worker().run_all()
    rig.acts.rerun(known, ROOT, "new data")
    desks.happen(rig, known, *FAILED)
    assert rig.ledger.status(known).on_boards
    with refused("version_taken"):
        rig.send(desks.module(more=b"pass"))


def test_an_id_made_to_equal_another_gives_no_hold(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Identity, "submission_id", "grey-0123456789")
    rig.send(desks.module(), account=BOB)
    desks.happen(rig, "grey-0123456789", *FAILED)
    with refused("duplicate_submission"):
        rig.send(desks.module(more=b"pass"))
    assert rig.ledger.status("grey-0123456789").state is State.FAILED


def test_two_tabs_with_other_content_do_not_share_a_version(rig: Rig) -> None:
    desks.overtaken(rig, lambda: rig.send(desks.module(more=b"pass")))
    with refused("version_taken"):
        rig.send(desks.module())
    assert len(rig.ledger.statuses()) == 1


# Benchmarks -----------------------------------------------------------------------------------


class Elsewhere(Toy):
    """Its images are on another machine."""

    card = Toy.card.model_copy(update={"name": "elsewhere"})

    def has_questions(self, data: Path | None) -> bool:
        return False


def test_only_what_was_not_asked_for_is_left_out_where_images_are_missing(rig: Rig) -> None:
    desk = replace(rig.desk, registry={"toy": Toy(), "elsewhere": Elsewhere()})
    both = {**MODULE, "assay.toml": b'name = "grey"\nbenchmarks = ["toy", "elsewhere"]'}
    with refused("images_missing", "elsewhere"):
        desk.submit_metric(rig.module(both), account=ADA)
    assert rig.ledger.statuses() == ()
    accepted = desk.submit_metric(rig.module(), account=ADA)
    assert accepted.status.submission.benchmarks == ("toy",)
    for benchmark in ("toy", "elsewhere"):  # The same version of scores may come for each.
        scores = rig.scores(desks.SCORES)
        accepted = desk.submit_scores(scores, ScoresForm(benchmark, "clip", "1"), account=ADA)
        assert not accepted.recognised


@pytest.fixture
def released_desk(rig: Rig) -> SubmissionService:
    return SubmissionService(
        rig.store, load_registry(), None, lambda: SandboxAvailability(True), rig.clock
    )


@pytest.mark.parametrize("one", read_manifest().scores, ids=lambda one: one.name)
def test_released_scores_say_whose_they_are(
    released_desk: SubmissionService, one: ReleasedScores
) -> None:
    record = released_desk.submit_released(one).status.submission
    paper = papers()[one.paper]
    assert (record.account, record.benchmarks) == (ASSAY.key, (one.benchmark,))
    assert (record.released_with, record.authors) == (paper.citation, one.authors)
    assert {paper.url, one.file.source} <= set(record.links.values())
    assert record.licence == one.file.licence
    assert set(record.lower_is_better) == set(one.lower_is_better)
    assert released_desk.submit_released(one).recognised


def test_a_changed_released_file_is_refused_by_name_and_nothing_is_queued(
    rig: Rig, released_desk: SubmissionService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = read_manifest().scores[0]
    shutil.copytree(bundle.FOLDER, tmp_path / "released")
    monkeypatch.setattr(bundle, "FOLDER", tmp_path / "released")
    (tmp_path / "released" / one.path).write_bytes(b"PAR1")
    with refused("data_malformed", one.path):
        released_desk.submit_released(one)
    assert rig.ledger.statuses() == ()


# Signatures: nobody can pose as another --------------------------------------------------------

IMPOSTOR = Account(origin=Origin.HUB, name="ASSAY")


@pytest.mark.parametrize(
    ("given", "account", "earlier", "signed"),
    [
        ("  ", ADA, (), "ada"), ("  A   Group ", ADA, (), "A Group"),
        ("Assay", ASSAY, (), "Assay"), (" ASSAY ", ASSAY, (), "Assay"),
        ("Assay team", ADA, (), "Assay team"), ("somebody", IMPOSTOR, (), "somebody"),
        # One's own name and signatures stay one's own; those older than accounts bind nobody.
        ("ada", ADA, (("ada", BOB.key),), "ada"),
        ("the lab", ADA, (("The Lab", BOB.key), ("The Lab", ADA.key)), "the lab"),
        ("The Lab", ADA, (("The Lab", ""),), "The Lab"),
        *((name, ADA, (), "!reserved_submitter")
          for name in ("Assay", "assay", " ASSAY ", "\uff21ssay")),
        ("", IMPOSTOR, (), "!reserved_submitter"),
        *((name, ADA, (("The Lab", BOB.key),), "!signature_taken")
          for name in ("bob", "BOB", "\uff42\uff4f\uff42", "The  Lab", "the lab")),
        *((name, ADA, (), "!bad_submitter")
          for name in ("x" * 81, "<script>", "a\u202eb", "=cmd()", "a\nb;")),
    ],
)  # fmt: skip
def test_who_may_sign_how(
    rig: Rig, given: str, account: Account, earlier: tuple[tuple[str, str], ...], signed: str
) -> None:
    one = rig.send_scores(desks.SCORES).submission
    shown = [one.model_copy(update={"submitter": s, "account": a}) for s, a in earlier]
    if signed.startswith("!"):
        with refused(signed[1:]):
            checked_signature(given, account, shown)
    else:
        assert checked_signature(given, account, shown) == signed


def test_a_signature_on_the_boards_is_taken_and_a_private_one_is_nobodys_business(rig: Rig) -> None:
    rig.send_scores(desks.SCORES, account=BOB, submitter="Secret Lab", private=True)
    assert (
        rig.send_scores(desks.SCORES, submitter="Secret Lab").submission.submitter == "Secret Lab"
    )
    own = rig.send_scores(OTHER, account=BOB, submitter="Secret Lab", name="next").submission
    assert own.submitter == "Secret Lab", "it was theirs before"
    rig.send_scores(desks.SCORES, account=BOB, submitter="The Lab", name="other")
    with refused("signature_taken"):
        rig.send_scores(desks.SCORES, submitter="THE LAB", name="one")


@pytest.mark.parametrize(
    ("signature", "codes"),
    [("", []), ("Ada", []), ("s" * 5000, ["bad_submitter"]), ("<b>x</b>", ["bad_submitter"]),
     ("assay", ["reserved_submitter"])],
)  # fmt: skip
def test_a_check_says_of_a_signature_what_sending_would(
    rig: Rig, signature: str, codes: list[str]
) -> None:
    assert [one.code for one in rig.desk.signature_problems(signature, ADA)] == codes


# Repositories of the Hub, fetched without any token --------------------------------------------

REPO = "ada/metric"


@pytest.fixture
def hub_desk(rig: Rig, hub: HubServer) -> SubmissionService:
    (rig.folder / "unpacked").mkdir()
    return replace(rig.desk, hub=hub.endpoint, scratch=rig.folder / "unpacked")


@pytest.mark.parametrize("named", [REPO, f"{REPO}@main", f"hub:{REPO}", f"datasets/{REPO}"])
def test_a_repository_is_queued_and_its_commit_recorded(
    rig: Rig, hub: HubServer, hub_desk: SubmissionService, named: str
) -> None:
    data = named.startswith("datasets/")
    sha = hub.add(REPO, MODULE, kind="datasets" if data else "models").branches["main"]
    accepted = hub_desk.submit_repository(named, account=ADA, submitter="A group")
    own = rig.ledger.whole(accepted.status.submission.submission_id)
    source = f"hub:{'datasets/' if data else ''}{REPO}@{sha}"
    assert (own.source, own.account, own.submitter) == (source, ADA.key, "A group")
    assert list((rig.folder / "unpacked").iterdir()) == []
    assert again(rig).recognised, "the same content as in an archive"


def test_a_check_lists_what_is_wrong_with_a_repository_and_keeps_nothing(
    rig: Rig, hub: HubServer, hub_desk: SubmissionService
) -> None:
    hub.add(
        REPO, {"assay.toml": b'name = "grey"\nnonsense = 1\n', "model.pkl": b"x"}, kind="models"
    )
    before = rig.store.private.head()
    problems = hub_desk.examine_repository(REPO).problems
    assert {problem.file for problem in problems} >= {"assay.toml", "model.pkl"}
    assert rig.store.private.head() == before
    hub.add("ada/good", MODULE, kind="models")
    assert hub_desk.examine_repository("ada/good").problems == ()


def test_what_is_private_to_the_operators_token_is_not_fetched(
    hub: HubServer, hub_desk: SubmissionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, MODULE, kind="models").private = True
    monkeypatch.setenv("HF_TOKEN", hub.token)
    with refused("repository_missing"):
        hub_desk.examine_repository(REPO)
    with refused("repository_missing"):
        hub_desk.submit_repository(REPO, account=BOB)
    assert {request.token for request in hub.served} == {""}


def test_what_will_not_be_taken_is_not_fetched(
    rig: Rig, hub: HubServer, hub_desk: SubmissionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, MODULE, kind="models")
    rig.acts.ban(ADA.key, ROOT, "Spam.")
    with refused("banned"):
        hub_desk.submit_repository(REPO, account=ADA)
    rig.isolated = False
    with refused("code_refused"):
        replace(rig.desk, hub=hub.endpoint).submit_repository(REPO, account=BOB)
    for named in ("", "grey", "../etc", "https://example.org/a/b", "a/b@x y"):
        with refused("bad_source"):
            hub_desk.examine_repository(named)
    assert not hub.served
    monkeypatch.setattr(desk_module, "ArchiveLimits", lambda: ArchiveLimits(entries=1))
    with refused("too_many_files"):
        hub_desk.submit_repository(REPO, account=BOB)
    assert not [request for request in hub.served if "/resolve/" in request.target]
