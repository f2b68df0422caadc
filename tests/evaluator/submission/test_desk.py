"""What the desk takes, and what makes two submissions one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.published import papers
from benchmarks.registry import load_registry
from benchmarks.released import bundle
from benchmarks.released.bundle import ReleasedScores, read_manifest
from evaluator.bundled import bundled_modules
from evaluator.submission.receiving.desk import SubmissionDesk
from evaluator.submission.receiving.identity import Identity
from leaderboard.desk import UNNAMED, Accepted, Gate
from leaderboard.governance.accounts import ASSAY, Account
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Submission
from leaderboard.states import State
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, MODULE, ROOT, Files, Rig

SCORES = "pair_id,score\na,1\nb,2\nc,3\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


class Elsewhere(Toy):
    """Its images are on another machine."""

    card = Toy.card.model_copy(update={"name": "elsewhere"})

    def has_questions(self, data: Path | None) -> bool:
        return False


def two_benchmarks(rig: Rig) -> SubmissionDesk:
    registry = {"toy": Toy(), "elsewhere": Elsewhere()}
    return SubmissionDesk(rig.store, registry, None, lambda: Gate(True), rig.clock)


def asking_for(*benchmarks: str) -> Files:
    names = ", ".join(f'"{name}"' for name in benchmarks)
    return {**MODULE, "assay.toml": f'name = "grey"\nbenchmarks = [{names}]'.encode()}


def module(name: str = "grey", version: str = "1", more: bytes = b"") -> Files:
    manifest = f'name = "{name}"\nversion = "{version}"'.encode()
    return {**MODULE, "assay.toml": manifest, "more.py": more}


def sent(rig: Rig, account: Account = ADA, *, name: str = "clip", **more: str) -> str:
    return rig.send_scores(SCORES, account=account, name=name, **more).submission.submission_id


def again(rig: Rig, account: Account = ADA, *, private: bool = False) -> Accepted:
    return rig.desk.submit_metric(rig.module(), account=account, private=private)


# What is the same submission


def test_the_same_file_from_another_account_is_another_submission(rig: Rig) -> None:
    ids = {sent(rig, account, name=name) for account in (ADA, BOB) for name in ("CLIP.S", "clip-s")}
    assert len(ids) == len(Ledger(rig.store).statuses()) == 4


def test_the_same_module_from_another_account_is_another_submission(rig: Rig) -> None:
    first, second = rig.send(), rig.send(account=BOB)
    assert first.submission.submission_id != second.submission.submission_id
    assert first.submission.archive == second.submission.archive, "it is kept once"
    rig.worker().run_all()
    assert [s.state for s in Ledger(rig.store).statuses()] == [State.PUBLISHED] * 2


def test_what_the_same_account_sends_again_is_recognised_and_said_to_be(rig: Rig) -> None:
    first = again(rig)
    assert not first.recognised
    head = rig.store.public.head()
    second = again(rig)
    assert second.recognised
    assert second.status == first.status
    assert rig.store.public.head() == head


def test_a_scores_file_under_another_version_is_another_submission(rig: Rig) -> None:
    assert sent(rig) == sent(rig)
    assert sent(rig) != sent(rig, version="2")


def test_what_failed_is_queued_again_and_said_to_be(rig: Rig) -> None:
    failed = rig.send().submission.submission_id
    events = [
        Event(at=rig.clock(), state=state, by="w", reason="so", fault="platform")
        for state in (State.CLAIMED, State.FAILED)
    ]
    Ledger(rig.store).append(failed, events)
    accepted = again(rig)
    assert (accepted.recognised, accepted.status.state) == (True, State.QUEUED)
    assert accepted.notes[-1] == "It was failed, and is queued again."


@pytest.mark.parametrize("state", [State.WITHDRAWN, State.REJECTED])
def test_what_was_taken_back_or_rejected_is_not_taken_again(rig: Rig, state: State) -> None:
    known = rig.send().submission.submission_id
    event = Event(at=rig.clock(), state=state, by="ada", reason="It was wrong.")
    Ledger(rig.store).append(known, [event])
    with pytest.raises(SubmitterError, match="It was wrong") as caught:
        rig.send()
    assert caught.value.code == "seen_before"


def test_an_existing_store_of_the_demo_recognises_the_bundled_modules(rig: Rig) -> None:
    """Before there were accounts, an id was made of name and content."""
    folder = bundled_modules()[0]
    new = rig.desk.submit_metric(folder, account=ASSAY).status.submission
    assert new.submission_id.endswith(f"-{new.content_sha256[:10]}")
    other = Rig(rig.folder / "other")
    other.folder.mkdir()
    old = Submission.model_validate({**new.model_dump(), "account": ""})
    queued = [
        Event(at=rig.clock(), state=state, by="Assay") for state in (State.RECEIVED, State.QUEUED)
    ]
    Ledger(other.store).receive(old, b"", queued)
    accepted = other.desk.submit_metric(folder, account=ASSAY)
    assert accepted.recognised
    assert accepted.status.submission == old


def test_no_public_submission_has_an_id_like_a_private_one(rig: Rig) -> None:
    public = rig.send({**MODULE, "assay.toml": b'name = "private"'}).submission
    assert public.submission_id.startswith("metric-private-")


# What somebody else sent before


def test_content_that_others_sent_is_flagged_by_their_id(rig: Rig) -> None:
    first = rig.send().submission
    second = rig.send(account=BOB).submission
    assert second.same_content_as == (first.submission_id,)
    assert first.same_content_as == ()


def test_content_that_others_sent_privately_is_flagged_without_naming_it(rig: Rig) -> None:
    rig.send(private=True)
    second = rig.send(account=BOB).submission
    assert second.same_content_as == (UNNAMED,)


def test_scores_that_others_sent_are_flagged_whatever_they_are_called(rig: Rig) -> None:
    first = sent(rig)
    second = rig.send_scores(SCORES, account=BOB, name="mine").submission
    assert second.same_content_as == (first,)


# What stays with its author


def test_a_private_submission_shows_nothing_of_itself_in_public(rig: Rig) -> None:
    accepted = again(rig, private=True)
    own = accepted.status.submission
    assert (own.name, own.account, own.private) == ("grey", ADA.key, True)
    (shown,) = Ledger(rig.store).statuses()
    public = b"".join(rig.store.public.read(path) for path in rig.store.public.list())
    for secret in (b"grey", b"hub:ada", b'"ada"', own.content_sha256.encode()):
        assert secret not in public
    assert shown.submission.submission_id == own.submission_id


def test_a_private_submission_is_recognised_though_its_id_is_random(rig: Rig) -> None:
    first, second = again(rig, private=True), again(rig, private=True)
    assert second.recognised
    assert second.status == first.status


def test_the_privacy_of_what_is_here_already_is_told_and_kept(rig: Rig) -> None:
    again(rig, private=True)
    assert "private, and stays so" in again(rig).notes[0]
    again(rig, BOB)
    assert "not private" in again(rig, BOB, private=True).notes[0]


# Names, versions and forms


@pytest.mark.parametrize("name", ["pair_id", "score"])
def test_a_scores_file_cannot_be_named_like_a_column(rig: Rig, name: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        sent(rig, name=name)
    assert caught.value.code == "bad_metric_name"
    unnamed = rig.scores(SCORES, f"{name}.csv")
    status = rig.desk.submit_scores(unnamed, benchmark="toy", account=ADA).status
    assert status.submission.metrics == ("scores",)


def test_half_a_character_in_a_description_is_refused(rig: Rig) -> None:
    with pytest.raises(SubmitterError) as caught:
        sent(rig, description="ab\ud800")
    assert caught.value.code == "bad_description"
    assert "position 3" in caught.value.message


def test_what_cannot_be_seen_is_taken_out_of_descriptions(rig: Rig) -> None:
    submission = rig.send_scores(SCORES, description="good\u202e\x1b[31m metric\x00").submission
    assert submission.description == "good metric"
    manifest = 'name = "grey"\ndescription = "a\u202eb"'.encode()
    with pytest.raises(SubmitterError, match=r"assay.toml:2: description: .*U\+202E"):
        rig.send({**MODULE, "assay.toml": manifest})


@pytest.mark.parametrize("version", ["1 2", "v" * 33, "<b>", "-1"])
def test_odd_versions_of_scores_are_refused(rig: Rig, version: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        sent(rig, version=version)
    assert caught.value.code == "bad_version"


def test_another_content_under_a_version_that_is_taken_is_refused(rig: Rig) -> None:
    rig.send(module(more=b"1"))
    with pytest.raises(SubmitterError, match="another version") as caught:
        rig.send(module(more=b"2"))
    assert caught.value.code == "version_taken"
    assert rig.send(module(more=b"2"), account=BOB).state is State.QUEUED
    assert rig.send(module(version="2", more=b"2")).state is State.QUEUED


def test_other_scores_under_a_version_that_is_taken_are_refused(rig: Rig) -> None:
    rig.send_scores(SCORES, name="clip", version="1")
    other = SCORES.replace("3", "4")
    with pytest.raises(SubmitterError) as caught:
        rig.send_scores(other, name="clip", version="1")
    assert caught.value.code == "version_taken"
    assert rig.send_scores(other, name="clip", version="2").submission.version == "2"


def test_the_same_version_of_scores_may_come_for_every_benchmark(rig: Rig) -> None:
    desk = two_benchmarks(rig)
    for benchmark in ("toy", "elsewhere"):
        accepted = desk.submit_scores(
            rig.scores(SCORES), benchmark=benchmark, account=ADA, name="clip", version="1"
        )
        assert not accepted.recognised


def test_a_version_that_was_withdrawn_may_be_used_again(rig: Rig) -> None:
    first = rig.send(module(more=b"1")).submission.submission_id
    event = Event(at=rig.clock(), state=State.WITHDRAWN, by=ADA.key, reason="A mistake.")
    Ledger(rig.store).append(first, [event])
    assert rig.send(module(more=b"2")).state is State.QUEUED


def fails(rig: Rig, submission_id: str) -> None:
    events = [
        Event(at=rig.clock(), state=state, by="w", reason="so", fault="platform")
        for state in (State.CLAIMED, State.FAILED)
    ]
    Ledger(rig.store).append(submission_id, events)


def test_what_failed_does_not_come_back_under_a_version_that_was_used_again(rig: Rig) -> None:
    first = rig.send(module())
    fails(rig, first.submission.submission_id)
    rig.send(module(more=b"pass"))
    with pytest.raises(SubmitterError) as caught:
        rig.send(module())
    assert caught.value.code == "version_taken"
    assert Ledger(rig.store).status(first.submission.submission_id).state is State.FAILED


def test_a_version_is_taken_while_its_results_stand_though_a_rerun_failed(rig: Rig) -> None:
    first = rig.send(module())
    rig.worker().run_all()
    known = first.submission.submission_id
    Acts(rig.store, {"toy": Toy.card}, rig.clock).rerun(known, ROOT, "new data")
    fails(rig, known)
    assert Ledger(rig.store).status(known).on_boards
    with pytest.raises(SubmitterError) as caught:
        rig.send(module(more=b"pass"))
    assert caught.value.code == "version_taken"


def test_an_id_made_to_equal_that_of_another_account_gives_no_hold_on_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Identity, "submission_id", "grey-0123456789")
    theirs = rig.send(module(), account=BOB)
    fails(rig, theirs.submission.submission_id)
    with pytest.raises(SubmitterError) as caught:
        rig.send(module(more=b"pass"), account=ADA)
    assert caught.value.code == "duplicate_submission"
    assert Ledger(rig.store).status("grey-0123456789").state is State.FAILED


def test_two_tabs_with_other_content_do_not_share_a_version(rig: Rig) -> None:
    repository = rig.store.public
    commit = repository.commit

    def overtaken(*args: object, **named: object) -> str:
        repository.commit = commit  # type: ignore[method-assign]
        rig.send(module(more=b"pass"))
        return commit(*args, **named)  # type: ignore[arg-type]

    repository.commit = overtaken  # type: ignore[method-assign]
    with pytest.raises(SubmitterError) as caught:
        rig.send(module())
    assert caught.value.code == "version_taken"
    assert len(Ledger(rig.store).statuses()) == 1


def test_a_misspelt_trained_on_is_refused_with_the_known_names(rig: Rig) -> None:
    manifest = b'name = "grey"\ntrained_on = ["tyo"]'
    with pytest.raises(SubmitterError, match=r"trained_on names 'tyo'.*toy"):
        rig.send({**MODULE, "assay.toml": manifest})


def test_everything_that_is_wrong_with_a_module_is_told_before_it_is_sent(rig: Rig) -> None:
    path = rig.module({"assay.toml": b'name = "a b"\nentry_point = "nothing:Here"'})
    examination = rig.desk.examine_metric(path)
    assert {p.code for p in examination.problems} >= {"bad_manifest", "no_entry_point"}
    assert all(p.line for p in examination.problems)
    with pytest.raises(SubmitterError) as caught:
        rig.desk.submit_metric(path, account=ADA)
    assert caught.value.code == "several_problems"


# Data


def test_a_benchmark_that_was_asked_for_is_never_dropped_silently(rig: Rig) -> None:
    desk = two_benchmarks(rig)
    with pytest.raises(SubmitterError, match="images of elsewhere are not") as caught:
        desk.submit_metric(rig.module(asking_for("toy", "elsewhere")), account=ADA)
    assert caught.value.code == "images_missing"
    assert Ledger(rig.store).statuses() == ()


def test_a_module_that_asks_for_none_runs_on_those_that_are_here(rig: Rig) -> None:
    status = two_benchmarks(rig).submit_metric(rig.module(), account=ADA).status
    assert status.submission.benchmarks == ("toy",)


def test_where_a_module_was_fetched_from_is_kept(rig: Rig) -> None:
    source = "hub:ada/grey@" + "0" * 40
    assert rig.send(source=source).submission.source == source


# What authors released ------------------------------------------------------------------------


def released_desk(rig: Rig) -> SubmissionDesk:
    return SubmissionDesk(rig.store, load_registry(), None, lambda: Gate(True), rig.clock)


@pytest.mark.parametrize("one", read_manifest().scores, ids=lambda one: one.name)
def test_a_released_scores_file_says_whose_it_is_and_comes_once(
    rig: Rig, one: ReleasedScores
) -> None:
    desk = released_desk(rig)
    record = desk.submit_released(one).status.submission
    paper = papers()[one.paper]
    assert (record.account, record.benchmarks) == (ASSAY.key, (one.benchmark,))
    assert record.released_with == paper.citation and record.authors == one.authors
    assert paper.url in record.links.values() and one.file.source in record.links.values()
    assert record.licence == one.file.licence
    assert set(record.lower_is_better) == set(one.lower_is_better)
    assert desk.submit_released(one).recognised


def test_a_changed_released_file_is_refused_by_name_and_nothing_is_queued(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = read_manifest().scores[0]
    shutil.copytree(bundle.FOLDER, tmp_path / "released")
    monkeypatch.setattr(bundle, "FOLDER", tmp_path / "released")
    (tmp_path / "released" / one.path).write_bytes(b"PAR1")
    with pytest.raises(SubmitterError) as caught:
        released_desk(rig).submit_released(one)
    assert caught.value.code == "data_malformed"
    assert one.path in caught.value.message
    assert Ledger(rig.store).statuses() == ()
