"""Who may send what, and what is the same submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.archive import Content
from evaluator.submission.desk import SubmissionDesk
from leaderboard.desk import Gate
from leaderboard.ledger import Ledger
from leaderboard.states import State
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import MODULE, Rig

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


def asking_for(*benchmarks: str) -> Content:
    names = ", ".join(f'"{name}"' for name in benchmarks)
    manifest = f'name = "grey"\nbenchmarks = [{names}]'.encode()
    return Content({**MODULE.files, "assay.toml": manifest})


def sent(rig: Rig, *, submitter: str = "alice", name: str = "clip", description: str = "") -> str:
    status = rig.desk.submit_scores(
        rig.scores(SCORES),
        benchmark="toy",
        submitter=submitter,
        name=name,
        description=description,
    )
    return status.submission.submission_id


def test_the_same_file_from_another_person_is_another_submission(rig: Rig) -> None:
    alices = sent(rig, name="CLIP.Score")
    bobs = rig.desk.submit_scores(
        rig.scores(SCORES), benchmark="toy", submitter="bob", name="clip-score"
    )
    assert bobs.submission.submission_id != alices
    assert (bobs.submission.name, bobs.submission.submitter) == ("clip-score", "bob")
    assert sent(rig, submitter="bob", name="CLIP.Score") != alices
    assert sent(rig, name="clip-score") != alices
    assert len(Ledger(rig.store).statuses()) == 4


def test_the_same_file_from_the_same_person_is_recognised(rig: Rig) -> None:
    assert sent(rig) == sent(rig, submitter="  alice ")
    assert len(Ledger(rig.store).statuses()) == 1


def test_each_of_two_senders_of_one_file_is_published(rig: Rig) -> None:
    ids = {sent(rig), sent(rig, submitter="bob")}
    rig.worker().run_all()
    states = {s.submission.submission_id: str(s.state) for s in Ledger(rig.store).statuses()}
    assert states == dict.fromkeys(ids, "published")


@pytest.mark.parametrize("name", ["Assay", "assay", " ASSAY ", "\uff21ssay"])
def test_nobody_signs_as_assay_but_assay(rig: Rig, name: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        sent(rig, submitter=name)
    assert caught.value.code == "reserved_submitter"
    with pytest.raises(SubmitterError, match="stands for"):
        rig.desk.submit_metric(rig.module(), submitter=name)
    assert rig.desk.submit_metric(rig.module(), submitter=name, trusted=True)
    assert sent(rig, submitter="Assay team")


def test_a_benchmark_that_was_asked_for_is_never_dropped_silently(rig: Rig) -> None:
    desk = two_benchmarks(rig)
    with pytest.raises(SubmitterError, match="images of elsewhere are not") as caught:
        desk.submit_metric(rig.module(asking_for("toy", "elsewhere")), submitter="ada")
    assert caught.value.code == "images_missing"
    assert Ledger(rig.store).statuses() == ()


def test_a_module_that_asks_for_none_runs_on_those_that_are_here(rig: Rig) -> None:
    status = two_benchmarks(rig).submit_metric(rig.module(), submitter="ada")
    assert status.submission.benchmarks == ("toy",)


@pytest.mark.parametrize("name", ["pair_id", "score"])
def test_a_scores_file_cannot_be_named_like_a_column(rig: Rig, name: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        sent(rig, name=name)
    assert caught.value.code == "bad_metric_name"
    unnamed = rig.scores(SCORES, f"{name}.csv")
    status = rig.desk.submit_scores(unnamed, benchmark="toy", submitter="ada")
    assert status.submission.metrics == ("scores",)


def test_half_a_character_in_a_description_is_refused(rig: Rig) -> None:
    with pytest.raises(SubmitterError) as caught:
        sent(rig, description="ab\ud800")
    assert caught.value.code == "bad_description"
    assert "position 3" in caught.value.message


def test_another_content_under_a_version_that_is_taken_is_refused(rig: Rig) -> None:
    rig.desk.submit_metric(rig.module(), submitter="ada")
    changed = Content({**MODULE.files, "more.py": b""})
    with pytest.raises(SubmitterError, match="Raise the version") as caught:
        rig.desk.submit_metric(rig.module(changed), submitter="ada")
    assert caught.value.code == "version_taken"
    assert rig.desk.submit_metric(rig.module(changed), submitter="bob").state is State.QUEUED


def test_a_misspelt_trained_on_is_refused_with_the_known_names(rig: Rig) -> None:
    manifest = b'name = "grey"\ntrained_on = ["tyo"]'
    module = Content({**MODULE.files, "assay.toml": manifest})
    with pytest.raises(SubmitterError, match=r"trained_on tyo.*Known names: .*toy"):
        rig.desk.submit_metric(rig.module(module), submitter="ada")
