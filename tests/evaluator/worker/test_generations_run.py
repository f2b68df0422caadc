"""Models' images, scored by every ranked metric and shown with what it gave."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scoring.images import canonical_png
from evaluator.worker.generations import _changed
from evaluator.worker.tasks import WorkerRole
from leaderboard.models.pictures import ModelPictures, images_path
from leaderboard.models.reading import ModelReader, scores_path
from leaderboard.publication.model_entries import PATH, read_track
from leaderboard.publication.rebuilding import model_differences, repaired
from leaderboard.publication.results import read_result
from leaderboard.records import RunResult
from leaderboard.states import State
from leaderboard.store.interface import transact
from tests.evaluator.worker import rigs
from tests.kit.pictures import encoded
from tests.kit.worker import ADA, BOB, ROOT, FakeBackend, Killed, raising

OTHER = {
    "assay.toml": b'name = "other"\ndirection = "lower_is_better"',
    "scorer.py": b"class Scorer: 1",
}


@pytest.fixture
def rig(tmp_path: Path) -> rigs.ModelRig:
    return rigs.ModelRig(tmp_path)


@pytest.fixture
def painter(rig: rigs.ModelRig) -> str:
    """A model that one metric has scored: 10 to 15, and after the change of one pixel."""
    rig.send()
    name = rig.received("painter", rigs.drawn(10))
    rig.worker().run_all()
    rig.backend.asked.clear()
    return name


WITH_CHANGED = sorted([*range(10, 16), 11, 13, 15])


# What is published ----------------------------------------------------------------------------


@pytest.mark.parametrize("roles", [(WorkerRole.BOTH,), (WorkerRole.SCORE, WorkerRole.JUDGE)])
def test_every_ranked_metric_scores_every_image_and_the_changed_ones(
    rig: rigs.ModelRig, roles: tuple[WorkerRole, ...]
) -> None:
    judge = f"{rig.sent()}/grey"
    rig.worker().run_all()
    images = rigs.drawn(10)
    model = rig.received("painter", images)
    for role in roles:
        rig.worker(str(role), role=role).run_all()
    assert rig.state(model) is State.PUBLISHED
    expected = {f"{prompt}/{seed}": float(value) for (prompt, seed), value in images.items()}
    expected |= {f"{prompt.prompt_id}/1+": expected[f"{prompt.prompt_id}/1"] + 1 for prompt in rigs.PROMPTS}  # fmt: skip
    assert rig.given(model) == {judge: expected}
    run = rig.entries()[model].judges[judge]
    assert (run.perturbed, run.mean_change, run.max_change) == (3, 1.0, 1.0)
    assert run.cost is not None
    assert run.cost.pairs == len(images) + 3
    assert not any(model in name for name in rig.shown().entries), "no board of metrics has it"
    assert rigs.TINY not in rig.shown().boards


def test_a_result_says_means_by_skill_and_metric_under_the_models_name(rig: rigs.ModelRig) -> None:
    rig.send()
    name = rig.received("painter", {("one", 1): 10, ("two", 1): 20, ("x/three", 1): 60})
    rig.worker().run_all()
    content = rig.store.public.read(f"results/{name}/{rigs.TINY}.json")
    rows = RunResult.model_validate_json(content).as_rows()
    assert {(row.metric, row.skill): row.value for row in rows} == {
        ("painter", None): 30.0, ("painter", "dark"): 15.0, ("painter", "dark:two"): 20.0,
        ("painter", "bright"): 60.0,
    }  # fmt: skip


def test_without_a_metric_a_model_is_published_unscored_until_it_is_withdrawn(
    rig: rigs.ModelRig,
) -> None:
    """A metric that was withdrawn scores no further model."""
    rig.acts.withdraw(rig.ran(), ADA)
    name = rig.received("painter", rigs.drawn(10))
    rig.worker().run_all()
    assert rig.state(name) is State.PUBLISHED
    assert rig.entries()[name].judges == {}
    pictures = ModelPictures(ModelReader(rig.store, {rigs.TINY: rig.tiny}, None), rig.store.public)
    shown = pictures(name, "x/three/2")
    assert shown is not None
    assert shown[8:12] == b"WEBP"
    for wrong in ("x/three/3", "three/2", "x/three/-1", "x/three/", "", "/", "x/three/2+", "../2"):
        assert pictures(name, wrong) is None
    assert pictures("gen-unknown", "one/1") is None
    rig.acts.withdraw(name, ADA)
    assert rig.entries() == {}


def test_a_metric_that_came_later_scores_what_is_there_and_nothing_twice(
    rig: rigs.ModelRig, painter: str
) -> None:
    """After what is new; what waits for it stays on the board meanwhile."""
    before = rig.given(painter)
    other = rig.sent(OTHER, account=BOB)
    worker = rig.worker("w2")
    assert worker.run_next()  # the metric
    assert worker.run_next()  # nothing is left, so that the grid is filled
    assert rig.state(painter) is State.QUEUED
    assert painter in rig.entries()
    new = rig.received("sketcher", rigs.drawn(40), account=BOB)
    worker.run_next()
    assert rig.state(new) is not State.QUEUED
    assert rig.state(painter) is State.QUEUED
    worker.run_all()
    after = rig.given(painter)
    assert set(after) == {*before, f"{other}/other"} == set(rig.entries()[painter].judges)
    assert {name: after[name] for name in before} == before
    assert sorted(value for value in rig.backend.asked if 10 <= value <= 16) == WITH_CHANGED
    assert rig.state(painter) is State.PUBLISHED


def test_a_private_model_is_scored_and_shown_to_its_author_alone(rig: rigs.ModelRig) -> None:
    rig.send()
    name = rig.received("secret", rigs.drawn(10), private=True)
    rig.worker().run_all()
    rig.send(OTHER, account=BOB)
    for worker in ("w2", "w3"):
        assert (rig.state(name), rig.entries()) == (State.HELD, {})
        assert not rig.store.public.list(f"results/{name}")
        assert rig.store.private.has(f"held/{name}/results/pictures-{rigs.TINY}-000.parquet")
        rig.worker(worker).run_all()
    result = read_result(rig.store, rig.ledger.whole_status(name).submission, rigs.TINY)
    assert result is not None
    assert len(result.judges) == 2
    rig.acts.publish(name, ADA)
    entry = rig.entries()[name]
    assert (entry.model, len(entry.judges), entry.pictures) == ("secret", 2, 1)
    assert rig.store.public.has(f"results/{name}/pictures-{rigs.TINY}-000.parquet")


# What is scored again -------------------------------------------------------------------------


def second_version(rig: rigs.ModelRig) -> str:
    """One image of six is another."""
    rig.clock.move(hours=1)
    name = rig.received("painter", {**rigs.drawn(10), ("one", 2): 99}, version="2")
    rig.worker("w2").run_all()
    assert rig.state(name) is State.PUBLISHED
    return name


def test_the_very_same_image_of_the_same_prompt_is_not_scored_again(
    rig: rigs.ModelRig, painter: str
) -> None:
    name = second_version(rig)
    assert sorted(rig.backend.asked) == [99]
    (run,) = rig.entries()[name].judges.values()
    assert run.reused == 8  # five images as they are, and three after the change
    (scores,) = rig.given(name).values()
    assert (scores["one/2"], scores["two/1"]) == (99.0, 12.0)


@pytest.mark.parametrize("path_of", [scores_path, images_path])
@pytest.mark.parametrize("content", [None, b"damaged"])
def test_another_models_broken_file_is_no_reason_to_fail(
    rig: rigs.ModelRig, painter: str, path_of: Callable[[str, str], str], content: bytes | None
) -> None:
    transact(rig.store.public, lambda: {path_of(painter, rigs.TINY): content}, "broken")
    name = second_version(rig)
    assert [run.reused for run in rig.entries()[name].judges.values()] == [0]


def test_what_an_operator_has_run_again_is_scored_anew(rig: rigs.ModelRig, painter: str) -> None:
    """It takes no scores of other models either."""
    rig.received("copyist", rigs.drawn(10), account=BOB)
    rig.worker("w2").run_all()
    rig.backend.asked.clear()
    rig.acts.rerun(painter, ROOT, "In doubt.")
    rig.worker("w3").run_all()
    assert sorted(rig.backend.asked) == WITH_CHANGED
    assert rig.state(painter) is State.PUBLISHED
    assert rig.entries()[painter].pictures == 1


def test_what_was_drawn_for_earlier_prompts_is_not_scored_on_those_of_now(
    rig: rigs.ModelRig, painter: str
) -> None:
    before = rig.given(painter)
    rig.tiny = rigs.tiny_set(rigs.PROMPTS[1:], revision="2")
    rig.send(OTHER, account=BOB)
    rig.worker("w2").run_all()
    assert (rig.given(painter), rig.state(painter)) == (before, State.PUBLISHED)
    rig.acts.rerun(painter, ROOT, "In doubt.")
    rig.worker("w3").run_all()
    assert rig.ended(painter)[:2] == (State.FAILED, "other_revision")
    assert rig.status(painter).on_boards
    assert rig.given(painter) == before


def test_a_run_that_was_cut_off_goes_on(rig: rigs.ModelRig, painter: str) -> None:
    name = rig.received("sketcher", rigs.drawn(40))
    rig.backend = raising(Killed())
    with pytest.raises(Killed):
        rig.worker("w2").run_all()
    rig.clock.move(hours=30)
    rig.backend = FakeBackend()
    rig.worker("w3").run_all()
    assert rig.state(name) is State.PUBLISHED
    assert len(rig.entries()[name].judges) == 1


# What fails -----------------------------------------------------------------------------------


def test_a_metric_that_fails_is_noted_and_the_others_go_on(rig: rigs.ModelRig) -> None:
    ids = {rig.sent(), rig.sent(OTHER, account=BOB)}
    rig.worker().run_all()

    def breaks(value: int, _: str) -> float:
        if value == 12:
            raise SubmitterError("scorer_raised", "ValueError: no-such-grey")
        return float(value)

    rig.backend.score = breaks
    name = rig.received("painter", rigs.drawn(10))
    rig.worker("w2").run_all()
    judges = rig.entries()[name].judges
    assert {run.submission_id for run in judges.values() if run.failed} == ids
    assert "no-such-grey" not in str(judges), "what a metric says is not for the author of images"
    assert rig.state(name) is State.PUBLISHED
    assert not rig.worker("w3").run_next(), "what failed is not tried again by itself"


def test_a_metric_that_leaves_something_behind_stops_the_worker_and_not_the_model(
    rig: rigs.ModelRig, painter: str
) -> None:
    name = rig.received("sketcher", rigs.drawn(40))
    rig.backend = raising(PlatformError("box_not_ended", "A process of it lives on."))
    worker = rig.worker("w2")
    worker.run_next()
    assert (rig.state(name), worker.availability.ok) == (State.QUEUED, False)
    rig.clock.move(hours=1)
    assert not worker.run_next(), "nothing more runs beside it"
    rig.backend = FakeBackend()
    rig.worker("w3").run_all()
    assert rig.state(name) is State.PUBLISHED
    assert not any(run.failed for run in rig.entries()[name].judges.values())


@pytest.mark.parametrize("damaged", [None, b'{"entr', b'{"entries": [{"novel": 1}]}'])
def test_a_lost_or_damaged_file_of_models_is_made_anew(
    rig: rigs.ModelRig, painter: str, damaged: bytes | None
) -> None:
    """By putting the store together again, and by the next publication."""
    before = read_track(rig.store.public)
    assert model_differences(rig.store) == ()
    transact(rig.store.public, lambda: {PATH: damaged}, "damaged")
    if damaged is None:
        assert len(model_differences(rig.store)) == 1
        cards = {"toy": rig.toy.card}
        transact(rig.store.public, lambda: repaired(rig.store, cards, rig.clock()), "again")
        assert read_track(rig.store.public) == before
        return
    with pytest.raises(PlatformError):
        ModelReader(rig.store, {rigs.TINY: rig.tiny}, None).track()
    rig.received("sketcher", rigs.drawn(40))
    rig.worker("w2").run_all()
    assert len(rig.entries()) == 2
    assert rig.entries()[painter] == before.entries[painter]
    assert model_differences(rig.store) == ()


# The change of one pixel ----------------------------------------------------------------------

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
TURNED = Image.Exif()
TURNED[0x0112] = 6
FILES = {
    "plain": encoded(Image.fromarray(PIXELS)),
    "turned": encoded(Image.fromarray(PIXELS), exif=TURNED),
    "turned JPEG": encoded(Image.fromarray(PIXELS), "JPEG", exif=TURNED),
    "see-through": encoded(Image.fromarray(np.dstack([PIXELS, PIXELS[:, :, 0]]))),
    "16 bits": encoded(Image.fromarray(PIXELS[:, :, 0].astype(np.uint16) << 8)),
}


@pytest.mark.parametrize("file", FILES)
def test_the_change_is_of_what_metrics_see_whatever_file_it_comes_in(file: str) -> None:
    def seen(data: bytes) -> np.ndarray[Any, np.dtype[np.int_]]:
        with Image.open(io.BytesIO(canonical_png(data))) as image:
            return np.asarray(image).astype(int)

    before, after = seen(FILES[file]), seen(_changed(lambda: FILES[file]))
    assert before.shape == after.shape
    assert np.array_equal(after - before, (before < 255).astype(int)), "by one step at most"
