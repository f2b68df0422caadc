"""The desk takes the images of a model: under the rules of all submissions, and knows them again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.generations_archive import opened
from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.desk import UNNAMED, Advance, SaidOfImages
from leaderboard.governance.accounts import ASSAY, Account
from leaderboard.governance.acts import Acts
from leaderboard.governance.bans import Ban, bans_file
from leaderboard.governance.policy import PATH, Allowance, Policy
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.orphans import GRACE, sweep
from leaderboard.records import Kind, Submission
from leaderboard.states import State
from tests.evaluator.rig import ADA, BOB, Rig
from tests.evaluator.scorers.model_repositories import hub_of_models
from tests.evaluator.submission.generations.made_images import (
    SET,
    SETS,
    Made,
    encoded,
    made,
    picture,
)
from tests.hub.server import HubServer


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def desk_of(rig: Rig) -> SubmissionDesk:
    scratch = rig.folder / "scratch-of-images"
    scratch.mkdir(exist_ok=True)
    return replace(rig.desk, prompt_sets=SETS, scratch=scratch)


def packed(rig: Rig, one: Made, name: str = "a") -> Path:
    return one.zipped(rig.folder / f"{name}.zip")


def send(rig: Rig, one: Made, account: Account = ADA, *, private: bool = False) -> Submission:
    number = sum(1 for _ in rig.folder.glob("*.zip"))
    path = packed(rig, one, f"sent-{number}")
    accepted = desk_of(rig).submit_generations(path, account=account, private=private)
    return accepted.status.submission


def refused(rig: Rig, one: Made, account: Account = ADA) -> SubmitterError:
    with pytest.raises(SubmitterError) as raised:
        send(rig, one, account)
    return raised.value


def test_the_record_says_what_the_model_is_and_what_its_images_are(rig: Rig) -> None:
    one = made()
    one.manifest |= {
        "version": "2", "model": "ada/painter", "revision": "0" * 40, "steps": 20,
        "selection": "best_of", "best_of": 4, "selected_by": "clip", "authors": ["Ada"],
    }  # fmt: skip
    own = send(rig, one)
    assert (own.kind, own.name, own.version) == (Kind.GENERATIONS, "painter", "2")
    assert (own.metrics, own.benchmarks) == (("painter",), (SET.name,))
    assert own.model_card is not None
    assert (own.model_card.steps, own.model_card.best_of) == (20, 4)
    assert own.images is not None
    assert (own.images.wanted, own.images.present, own.images.seeds) == (8, 8, (1, 2))
    assert own.images.revision == SET.card.revision
    Ledger(rig.store).fetch_upload(own, rig.folder / "kept")
    with opened(rig.folder / "kept") as archive:
        assert len(archive.images) == 8
    assert list((rig.folder / "scratch-of-images").iterdir()) == []


def test_the_same_images_packed_otherwise_are_the_same_submission(rig: Rig) -> None:
    first = send(rig, made())
    folder = made().folder(rig.folder / "f")
    again = desk_of(rig).submit_generations(folder, account=ADA)
    assert again.recognised
    assert again.status.submission.submission_id == first.submission_id


def test_a_version_is_taken_once_and_a_new_one_is_free(rig: Rig) -> None:
    send(rig, made())
    assert refused(rig, made(50)).code == "version_taken"
    another = made(50)
    another.manifest["version"] = "2"
    assert send(rig, another).version == "2"


def test_everything_that_is_wrong_is_one_refusal_and_nothing_is_kept(rig: Rig) -> None:
    one = made()
    one.files.popitem()
    one.rows["p0", 1]["prompt"] = "another"
    error = refused(rig, one)
    assert error.code == "several_problems"
    assert "2 things are wrong" in error.message
    assert Ledger(rig.store).statuses() == ()
    assert rig.store.private.list() == ()
    assert list((rig.folder / "scratch-of-images").iterdir()) == []


def test_examining_tells_problems_counts_and_progress_and_keeps_nothing(rig: Rig) -> None:
    one = made()
    told: list[Advance] = []
    found = desk_of(rig).examine_generations(packed(rig, one), tell=told.append)
    assert (found.problems, found.name, found.files) == ((), "painter", 8)
    assert found.benchmarks == (SET.name,)
    assert told[-1].done == told[-1].total == 8
    one.rows["p0", 1]["prompt"] = "another"
    found = desk_of(rig).examine_generations(packed(rig, one, "b"))
    assert (found.counts, found.n_problems) == ({"wrong_prompt": 1}, 1)
    assert desk_of(rig).examine_generations(rig.folder / "none.zip").problems[0].code == (
        "file_missing"
    )
    assert rig.store.private.list() == ()


def test_the_banned_are_refused_and_allowances_hold(rig: Rig) -> None:
    policy = Policy(
        allowances={
            Kind.METRIC: Allowance(scored=1, unfinished=1),
            Kind.SCORES: Allowance(scored=1, unfinished=1),
            Kind.GENERATIONS: Allowance(scored=5, unfinished=1),
        }
    )
    public = rig.store.public
    public.commit({PATH: policy.model_dump_json().encode()}, parent=public.head(), message="p")
    send(rig, made())
    error = refused(rig, made(50, name="other"))
    assert error.code == "quota_exceeded"
    assert "submissions of generations" in error.message
    ban = Ban(account=BOB.key, reason="copied", by="hub:root", at=rig.clock())
    public.commit(bans_file({BOB.key: ban}), parent=public.head(), message="ban")
    assert refused(rig, made(), BOB).code == "banned"


def test_a_private_submission_says_nothing_in_public(rig: Rig) -> None:
    own = send(rig, made(), private=True)
    public = Ledger(rig.store).status(own.submission_id).submission
    assert (public.images, public.model_card, public.name) == (None, None, "private submission")
    assert own.images is not None


def re_encoded(one: Made, name: str) -> Made:
    """The same pictures, as JPEG, under another name."""
    copy = made(name=name)
    for number, row in enumerate(copy.rows.values()):
        copy.files[row["file"]] = encoded(picture(number), "JPEG", quality=80)
        row.update(sha256=None)
    return copy


def test_images_of_anothers_model_are_flagged_and_taken(rig: Rig) -> None:
    first = send(rig, made())
    path = packed(rig, re_encoded(made(), "copy"), "copy")
    accepted = desk_of(rig).submit_generations(path, account=BOB)
    images = accepted.status.submission.images
    assert images is not None
    [shared] = images.shared
    assert (shared.submission_id, shared.n_images) == (first.submission_id, 8)
    assert first.submission_id in accepted.notes[0]
    assert accepted.status.submission.same_content_as == ()


def test_what_is_private_to_others_is_named_to_nobody(rig: Rig) -> None:
    send(rig, made(), private=True)
    own = send(rig, re_encoded(made(), "copy"), BOB)
    assert own.images is not None
    assert [one.submission_id for one in own.images.shared] == [UNNAMED]


def test_versions_of_one_model_withdrawn_ones_and_our_own_are_not_compared(rig: Rig) -> None:
    first = send(rig, made())
    later = re_encoded(made(), "painter")
    later.manifest["version"] = "2"
    own = send(rig, later)
    assert own.images is not None
    assert own.images.shared == ()
    of_ours = send(rig, re_encoded(made(), "ours"), ASSAY)
    assert of_ours.images is not None
    assert of_ours.images.shared == ()
    acts = Acts(rig.store, {}, rig.clock)
    for one in (first, own, of_ours):
        acts.withdraw(one.submission_id, ADA if one is not of_ours else ASSAY, "")
    assert Ledger(rig.store).status(first.submission_id).state is State.WITHDRAWN
    last = send(rig, re_encoded(made(), "copy"), BOB)
    assert last.images is not None
    assert last.images.shared == ()


def test_hashes_stay_as_long_as_the_submission(rig: Rig) -> None:
    own = send(rig, made())
    path = f"hashes/{own.submission_id}.parquet"
    assert rig.store.private.has(path)
    private = rig.store.private
    private.commit(
        {"hashes/gone-0123456789.parquet": b"x"}, parent=private.head(), message="left behind"
    )
    sweep(rig.store, rig.clock())
    rig.clock.move(seconds=GRACE.total_seconds() + 1)
    sweep(rig.store, rig.clock())
    assert rig.store.private.list("hashes/") == (path,)


def test_parquet_with_what_the_form_says_is_taken(rig: Rig) -> None:
    path = made().parquet(rig.folder / "upload.parquet")
    said = SaidOfImages("painter", "3", SET.name, "Some words.")
    own = desk_of(rig).submit_generations(path, account=ADA, said=said).status.submission
    assert (own.name, own.version, own.description) == ("painter", "3", "Some words.")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_of_models(monkeypatch) as state:
        yield state


@pytest.mark.parametrize("parquet", [True, False])
def test_a_dataset_of_the_hub_is_taken_and_its_commit_recorded(
    rig: Rig, hub: HubServer, parquet: bool
) -> None:
    one = made()
    files = dict(one.all_files())
    if parquet:
        path = one.parquet(rig.folder / "x.parquet")
        files = {"assay.toml": one.toml, "data/train.parquet": path.read_bytes(), "README.md": b"x"}
    sha = hub.add("ada/images", files).branches["main"]
    desk = replace(desk_of(rig), hub=hub.endpoint)
    assert desk.examine_generations("datasets/ada/images@main").problems == ()
    accepted = desk.submit_generations("datasets/ada/images", account=ADA)
    assert accepted.status.submission.source == f"hub:datasets/ada/images@{sha}"
