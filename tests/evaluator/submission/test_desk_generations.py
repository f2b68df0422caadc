"""The desk takes the images of a model: under the rules of all submissions, and knows them again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluator.submission.generations.archive import opened
from evaluator.submission.service import SubmissionService
from leaderboard.accounts import ASSAY, Account
from leaderboard.ledger.cleanup import GRACE, sweep
from leaderboard.ledger.policy import Policy, Quota
from leaderboard.records import Kind, Submission
from leaderboard.submission_service import UNNAMED, CheckProgress, ManifestOverrides
from tests.evaluator.submission.generations import made_images
from tests.kit.hub.server import HubServer
from tests.kit.pictures import encoded
from tests.kit.refusals import refused
from tests.kit.worker import ADA, BOB, ROOT, Rig


@pytest.fixture
def desk(rig: Rig) -> SubmissionService:
    (rig.folder / "unpacked").mkdir()
    return replace(rig.desk, prompt_sets=made_images.SETS, scratch=rig.folder / "unpacked")


def send(
    desk: SubmissionService,
    rig: Rig,
    one: made_images.Made,
    account: Account = ADA,
    *,
    private: bool = False,
) -> Submission:
    path = one.zipped(rig.folder / "sent.zip")
    return desk.submit_generations(path, account=account, private=private).status.submission


def test_the_record_says_what_model_and_images_are(rig: Rig, desk: SubmissionService) -> None:
    one = made_images.made()
    one.manifest |= {
        "version": "2", "model": "ada/painter", "revision": "0" * 40, "steps": 20,
        "selection": "best_of", "best_of": 4, "selected_by": "clip", "authors": ["Ada"],
    }  # fmt: skip
    own = send(desk, rig, one)
    assert (own.kind, own.name, own.version) == (Kind.GENERATIONS, "painter", "2")
    assert (own.metrics, own.benchmarks) == (("painter",), (made_images.SET.name,))
    assert own.model_card is not None and own.images is not None
    assert (own.model_card.steps, own.model_card.best_of) == (20, 4)
    assert (own.images.wanted, own.images.present, own.images.seeds) == (8, 8, (1, 2))
    assert own.images.revision == made_images.SET.card.revision
    rig.ledger.fetch_upload(own, rig.folder / "kept")
    with opened(rig.folder / "kept") as archive:
        assert len(archive.images) == 8
    again = desk.submit_generations(one.folder(rig.folder / "f"), account=ADA)
    assert (again.recognised, again.status.submission) == (True, own), "packed otherwise"
    assert list((rig.folder / "unpacked").iterdir()) == []


def test_the_rules_of_all_submissions_hold(rig: Rig, desk: SubmissionService) -> None:
    send(desk, rig, made_images.made())
    with refused("version_taken"):
        send(desk, rig, made_images.made(50))
    another = made_images.made(50)
    another.manifest["version"] = "2"
    assert send(desk, rig, another).version == "2"
    allowances = dict.fromkeys(Kind, Quota(scored=5, unfinished=2))
    rig.acts.set_policy(Policy(allowances=allowances), ROOT, "a test")
    with refused("quota_exceeded"):
        send(desk, rig, made_images.made(50, name="other"))
    rig.acts.ban(BOB.key, ROOT, "copied")
    with refused("banned"):
        send(desk, rig, made_images.made(), BOB)


def test_all_that_is_wrong_is_one_refusal_with_nothing_kept(
    rig: Rig, desk: SubmissionService
) -> None:
    one = made_images.made()
    one.files.popitem()
    one.rows["p0", 1]["prompt"] = "another"
    with refused("several_problems"):
        send(desk, rig, one)
    found = desk.examine_generations(rig.folder / "sent.zip")
    assert (found.counts, found.n_problems) == ({"wrong_prompt": 1, "missing": 1}, 2)
    absent = desk.examine_generations(rig.folder / "none.zip")
    assert [problem.code for problem in absent.problems] == ["file_missing"]
    told: list[CheckProgress] = []
    found = desk.examine_generations(
        made_images.made().zipped(rig.folder / "b.zip"), tell=told.append
    )
    assert (found.problems, found.name, found.files) == ((), "painter", 8)
    assert found.benchmarks == (made_images.SET.name,)
    assert told[-1].done == told[-1].total == 8
    assert rig.ledger.statuses() == ()
    assert rig.store.private.list() == ()
    assert list((rig.folder / "unpacked").iterdir()) == []


# Images that are known from another submission -------------------------------------------------


def re_encoded(name: str, version: str = "1") -> made_images.Made:
    """The pictures of `made()`, as JPEG, under another name."""
    copy = made_images.made(name=name)
    copy.manifest["version"] = version
    for number, row in enumerate(copy.rows.values()):
        copy.files[row["file"]] = encoded(made_images.picture(number), "JPEG", quality=80)
        row.update(sha256=None)
    return copy


def shared(own: Submission) -> list[tuple[str, int]]:
    assert own.images is not None
    return [(one.submission_id, one.n_images) for one in own.images.shared]


def test_images_of_anothers_model_are_flagged_and_taken(rig: Rig, desk: SubmissionService) -> None:
    first = send(desk, rig, made_images.made())
    path = re_encoded("copy").zipped(rig.folder / "copy.zip")
    accepted = desk.submit_generations(path, account=BOB)
    assert shared(accepted.status.submission) == [(first.submission_id, 8)]
    assert first.submission_id in accepted.notes[0]
    assert accepted.status.submission.same_content_as == ()


def test_what_is_private_says_nothing_and_is_not_named(rig: Rig, desk: SubmissionService) -> None:
    own = send(desk, rig, made_images.made(), private=True)
    public = rig.ledger.status(own.submission_id).submission
    assert (public.images, public.model_card, public.name) == (None, None, "private submission")
    assert own.images is not None
    assert shared(send(desk, rig, re_encoded("copy"), BOB)) == [(UNNAMED, 8)]


def test_own_versions_withdrawn_ones_and_ours_are_not_compared(
    rig: Rig, desk: SubmissionService
) -> None:
    sent = [
        (send(desk, rig, made_images.made()), ADA),
        (send(desk, rig, re_encoded("painter", "2")), ADA),
        (send(desk, rig, re_encoded("ours"), ASSAY), ASSAY),
    ]
    for own, account in sent:
        assert shared(own) == []
        rig.acts.withdraw(own.submission_id, account, "")
    assert shared(send(desk, rig, re_encoded("copy"), BOB)) == []


def test_hashes_stay_as_long_as_the_submission(rig: Rig, desk: SubmissionService) -> None:
    path = f"hashes/{send(desk, rig, made_images.made()).submission_id}.parquet"
    private = rig.store.private
    private.commit({"hashes/gone-0123456789.parquet": b"x"}, parent=private.head(), message="left")
    sweep(rig.store, rig.clock())
    rig.clock.move(seconds=GRACE.total_seconds() + 1)
    sweep(rig.store, rig.clock())
    assert private.list("hashes/") == (path,)


@pytest.mark.parametrize("parquet", [True, False])
def test_a_dataset_of_the_hub_is_taken_and_its_commit_recorded(
    rig: Rig, desk: SubmissionService, hub: HubServer, parquet: bool
) -> None:
    one = made_images.made()
    files = dict(one.all_files())
    if parquet:
        path = one.parquet(rig.folder / "x.parquet")
        files = {"assay.toml": one.toml, "data/train.parquet": path.read_bytes(), "README.md": b"x"}
        said = ManifestOverrides("painter", "3", made_images.SET.name, "Some words.")
        own = desk.submit_generations(path, account=BOB, said=said).status.submission
        assert (own.name, own.version, own.description) == ("painter", "3", "Some words.")
    sha = hub.add("ada/images", files).branches["main"]
    desk = replace(desk, hub=hub.endpoint)
    assert desk.examine_generations("datasets/ada/images@main").problems == ()
    accepted = desk.submit_generations("datasets/ada/images", account=ADA)
    assert accepted.status.submission.source == f"hub:datasets/ada/images@{sha}"
