"""Models' images, scored by every ranked metric and shown with what it gave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.stored_scores import read_stored
from evaluator.worker.roles import WorkerRole
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.models.entries import PATH, ModelEntry, read_track
from leaderboard.models.image_table import images_path
from leaderboard.models.pictures import ModelPictures
from leaderboard.models.reading import ModelReader
from leaderboard.models.scores import scores_path
from leaderboard.publication.rebuilding import model_differences, repaired
from leaderboard.publication.results import read_result
from leaderboard.publication.snapshot_file import read_snapshot
from leaderboard.records import RunResult, Status
from leaderboard.states import State
from leaderboard.store.interface import transact
from tests.evaluator.rig import ADA, BOB, ROOT
from tests.evaluator.worker.generations import PROMPTS, TINY, ModelRig, drawn, received, tiny_set

OTHER = {
    "assay.toml": b'name = "other"\ndirection = "lower_is_better"',
    "scorer.py": b"class Scorer: 1",
}


@pytest.fixture
def rig(tmp_path: Path) -> ModelRig:
    return ModelRig(tmp_path)


def _entry(rig: ModelRig, status: Status) -> ModelEntry:
    return read_track(rig.store.public).entries[status.submission.submission_id]


def _scores(rig: ModelRig, status: Status) -> dict[str, dict[str, float]]:
    name = status.submission.submission_id
    table = read_stored(rig.store.public.read(scores_path(name, TINY)))
    return {str(metric): dict(table.overall[metric]) for metric in table.metrics}


def _state(rig: ModelRig, status: Status) -> State:
    return Ledger(rig.store).whole_status(status.submission.submission_id).state


def test_every_ranked_metric_scores_every_image_and_the_changed_ones(rig: ModelRig) -> None:
    metric = rig.send()
    rig.worker().run_all()
    images = drawn(10)
    model = received(rig, "painter", images)
    rig.worker("w2").run_all()
    assert _state(rig, model) is State.PUBLISHED
    judge = f"{metric.submission.submission_id}/grey"
    scores = _scores(rig, model)[judge]
    assert {pair: s for pair, s in scores.items() if not pair.endswith("+")} == {
        f"{prompt}/{seed}": float(value) for (prompt, seed), value in images.items()
    }
    changed = {pair for pair in scores if pair.endswith("+")}
    assert changed == {f"{prompt.prompt_id}/1+" for prompt in PROMPTS}
    run = _entry(rig, model).judges[judge]
    assert (run.perturbed, run.mean_change, run.max_change) == (3, 1.0, 1.0)
    assert run.cost is not None
    assert run.cost.pairs == len(images) + 3


def test_a_result_says_means_by_skill_and_metric_under_the_models_name(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "painter", {("one", 1): 10, ("two", 1): 20, ("x/three", 1): 60})
    rig.worker().run_all()
    result = rig.store.public.read(f"results/{model.submission.submission_id}/{TINY}.json")
    rows = RunResult.model_validate_json(result).as_rows()
    assert {row.metric for row in rows} == {"painter"}
    assert {row.skill: row.value for row in rows} == {
        None: 30.0,
        "dark": 15.0,
        "dark:two": 20.0,
        "bright": 60.0,
    }


def test_a_model_is_on_no_board_of_metrics(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    snapshot = read_snapshot(rig.store.public)
    assert snapshot is not None
    assert not any(model.submission.submission_id in name for name in snapshot.entries)
    assert TINY not in snapshot.boards


def test_without_any_metric_a_model_is_published_unscored(rig: ModelRig) -> None:
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    assert _state(rig, model) is State.PUBLISHED
    assert _entry(rig, model).judges == {}


def test_a_metric_that_came_later_scores_what_is_there_and_nothing_twice(rig: ModelRig) -> None:
    first = rig.send()
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    before = _scores(rig, model)
    second = rig.send(OTHER, account=BOB)
    rig.backend.asked.clear()
    rig.worker("w2").run_all()
    judges = {f"{first.submission.submission_id}/grey", f"{second.submission.submission_id}/other"}
    assert set(_entry(rig, model).judges) == judges
    after = _scores(rig, model)
    assert {name: after[name] for name in before} == before
    of_images = [value for value in rig.backend.asked if 10 <= value <= 16]
    assert sorted(of_images) == sorted([*range(10, 16), 11, 13, 15])  # once each, and the changed
    assert _state(rig, model) is State.PUBLISHED


def test_what_waits_for_a_further_metric_stays_on_the_board_meanwhile(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    rig.send(OTHER, account=BOB)
    worker = rig.worker("w2")
    assert worker.run_next()  # the metric
    assert worker.run_next()  # nothing is left, so that the grid is filled
    assert _state(rig, model) is State.QUEUED
    assert model.submission.submission_id in read_track(rig.store.public).entries
    worker.run_all()
    assert len(_entry(rig, model).judges) == 2


def test_the_very_same_image_of_the_same_prompt_is_not_scored_again(rig: ModelRig) -> None:
    rig.send()
    received(rig, "painter", drawn(10))
    rig.worker().run_all()
    rig.backend.asked.clear()
    rig.clock.move(hours=1)
    images = {**drawn(10), ("one", 2): 99}
    model = received(rig, "painter", images, version="2")
    rig.worker("w2").run_all()
    assert sorted(rig.backend.asked) == [99]
    (run,) = _entry(rig, model).judges.values()
    assert run.reused == 8  # five images as they are, and three after the change
    scores = next(iter(_scores(rig, model).values()))
    assert scores["one/2"] == 99.0
    assert scores["two/1"] == 12.0


def test_a_metric_that_fails_is_noted_and_the_others_go_on(rig: ModelRig) -> None:
    rig.send()
    other = rig.send(OTHER, account=BOB)
    rig.worker().run_all()

    def breaks(value: int, _: str) -> float:
        if value == 12:
            raise SubmitterError("scorer_raised", "ValueError: no such grey")
        return float(value)

    rig.backend.score = breaks
    model = received(rig, "painter", drawn(10))
    rig.worker("w2").run_all()
    judges = _entry(rig, model).judges
    assert len(judges) == 2
    assert all(run.failed for run in judges.values())
    assert "no such grey" not in str(judges), "what a metric says is not for the author of images"
    assert _state(rig, model) is State.PUBLISHED
    rig.backend.asked.clear()
    assert not rig.worker("w3").run_next(), "what failed is not tried again by itself"
    assert other.submission.submission_id in {run.submission_id for run in judges.values()}


def test_a_private_model_is_scored_and_shown_to_its_author_alone(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "secret", drawn(10), private=True)
    rig.worker().run_all()
    assert _state(rig, model) is State.HELD
    assert read_track(rig.store.public).entries == {}
    name = model.submission.submission_id
    assert not rig.store.public.list(f"results/{name}")
    assert rig.store.private.has(f"held/{name}/results/pictures-{TINY}-000.parquet")
    rig.send(OTHER, account=BOB)
    rig.backend.asked.clear()
    rig.worker("w2").run_all()
    assert _state(rig, model) is State.HELD
    result = read_result(rig.store, model.submission, TINY)
    assert result is not None
    assert len(result.judges) == 2
    assert rig.store.private.has(f"held/{name}/results/pictures-{TINY}-000.parquet")
    Acts(rig.store, {"toy": rig.toy.card}, rig.clock).publish(name, ADA)
    entry = read_track(rig.store.public).entries[name]
    assert (entry.model, len(entry.judges), entry.pictures) == ("secret", 2, 1)
    assert rig.store.public.has(f"results/{name}/pictures-{TINY}-000.parquet")


def test_what_an_operator_has_run_again_is_scored_anew(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    rig.backend.asked.clear()
    acts = Acts(rig.store, {"toy": rig.toy.card}, rig.clock)
    acts.rerun(model.submission.submission_id, ROOT, "In doubt.")
    rig.worker("w2").run_all()
    assert sorted(rig.backend.asked) == sorted([*range(10, 16), 11, 13, 15])
    assert _state(rig, model) is State.PUBLISHED
    assert _entry(rig, model).pictures == 1


def test_what_is_run_again_takes_no_scores_of_other_models_either(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    received(rig, "copyist", drawn(10), account=BOB)
    rig.worker("w2").run_all()
    rig.backend.asked.clear()
    acts = Acts(rig.store, {"toy": rig.toy.card}, rig.clock)
    acts.rerun(model.submission.submission_id, ROOT, "In doubt.")
    rig.worker("w3").run_all()
    assert len(rig.backend.asked) == 9


def test_a_set_of_earlier_prompts_is_not_scored_on_those_of_now(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    before = _scores(rig, model)
    rig.tiny = tiny_set(revision="2")
    acts = Acts(rig.store, {"toy": rig.toy.card}, rig.clock)
    acts.rerun(model.submission.submission_id, ROOT, "In doubt.")
    rig.worker("w2").run_all()
    status = Ledger(rig.store).whole_status(model.submission.submission_id)
    assert (status.state, status.code, status.on_boards) == (State.FAILED, "other_revision", True)
    assert _scores(rig, model) == before


def test_pictures_of_what_is_on_the_boards_are_found_by_prompt_and_seed(rig: ModelRig) -> None:
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    pictures = ModelPictures(ModelReader(rig.store, {TINY: rig.tiny}, None), rig.store.public)
    name = model.submission.submission_id
    shown = pictures(name, "x/three/2")
    assert shown is not None
    assert shown[8:12] == b"WEBP"
    for wrong in ("x/three/3", "three/2", "x/three/-1", "x/three/", "", "/", "x/three/2+", "../2"):
        assert pictures(name, wrong) is None
    assert pictures("gen-unknown", "one/1") is None


def test_a_run_that_was_cut_off_goes_on_where_it_was(rig: ModelRig) -> None:
    rig.send()
    rig.worker().run_all()
    model = received(rig, "painter", drawn(10))
    calls = 0

    def dies(value: int, _: str) -> float:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        return float(value)

    rig.backend.score = dies
    with pytest.raises(KeyboardInterrupt):
        rig.worker("w2").run_all()
    rig.clock.move(hours=30)
    rig.worker("w3").run_all()
    assert _state(rig, model) is State.PUBLISHED
    assert len(_entry(rig, model).judges) == 1


def test_models_that_wait_for_further_metrics_come_after_what_is_new(rig: ModelRig) -> None:
    rig.send()
    old = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    rig.send(OTHER, account=BOB)
    worker = rig.worker("w2")
    worker.run_next()
    worker.run_next()
    assert _state(rig, old) is State.QUEUED
    new = received(rig, "sketcher", drawn(40), account=BOB)
    worker.run_next()
    assert _state(rig, new) is not State.QUEUED
    assert _state(rig, old) is State.QUEUED


def test_one_worker_scores_and_another_judges(rig: ModelRig) -> None:
    rig.send()
    rig.worker().run_all()
    model = received(rig, "painter", drawn(10))
    rig.worker("s1", role=WorkerRole.SCORE).run_all()
    status = Ledger(rig.store).whole_status(model.submission.submission_id)
    assert status.to_judge
    rig.worker("j1", role=WorkerRole.JUDGE).run_all()
    assert _state(rig, model) is State.PUBLISHED
    (run,) = _entry(rig, model).judges.values()
    assert run.perturbed == len(PROMPTS)
    assert len(next(iter(_scores(rig, model).values()))) == 9


def test_a_metric_that_withdraws_scores_no_further_model(rig: ModelRig) -> None:
    metric = rig.send()
    rig.worker().run_all()
    acts = Acts(rig.store, {"toy": rig.toy.card}, rig.clock)
    acts.withdraw(metric.submission.submission_id, ADA)
    model = received(rig, "painter", drawn(10))
    rig.worker("w2").run_all()
    assert _entry(rig, model).judges == {}


def test_a_model_that_is_withdrawn_leaves_the_board(rig: ModelRig) -> None:
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    acts = Acts(rig.store, {"toy": rig.toy.card}, rig.clock)
    acts.withdraw(model.submission.submission_id, ADA)
    assert read_track(rig.store.public).entries == {}


def test_a_store_put_together_again_has_the_same_models(rig: ModelRig) -> None:
    rig.send()
    received(rig, "painter", drawn(10))
    rig.worker().run_all()
    before = read_track(rig.store.public)
    assert model_differences(rig.store) == ()
    transact(rig.store.public, lambda: {PATH: None}, "lost")
    assert [one.what for one in model_differences(rig.store)] == ["missing from the models"]
    transact(
        rig.store.public, lambda: repaired(rig.store, {"toy": rig.toy.card}, rig.clock()), "again"
    )
    assert read_track(rig.store.public) == before


@pytest.mark.parametrize("damaged", [b'{"entr', b'{"entries": [{"novel": 1}]}'])
def test_a_damaged_file_of_models_is_made_anew_by_the_next_publication(
    damaged: bytes, rig: ModelRig
) -> None:
    rig.send()
    first = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    before = _entry(rig, first)
    transact(rig.store.public, lambda: {PATH: damaged}, "damaged")
    with pytest.raises(PlatformError, match="cannot be read"):
        ModelReader(rig.store, {TINY: rig.tiny}, None).track()
    second = received(rig, "sketcher", drawn(40))
    rig.worker("w2").run_all()
    assert _state(rig, second) is State.PUBLISHED
    assert _entry(rig, first) == before
    assert model_differences(rig.store) == ()


@pytest.mark.parametrize("path_of", [scores_path, images_path])
@pytest.mark.parametrize("content", [None, b"damaged"])
def test_another_models_broken_file_is_no_reason_to_fail(
    path_of: Callable[[str, str], str], content: bytes | None, rig: ModelRig
) -> None:
    rig.send()
    first = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    path = path_of(first.submission.submission_id, TINY)
    transact(rig.store.public, lambda: {path: content}, "broken")
    rig.clock.move(hours=1)
    second = received(rig, "painter", {**drawn(10), ("one", 2): 99}, version="2")
    rig.worker("w2").run_all()
    assert _state(rig, second) is State.PUBLISHED
    assert [run.reused for run in _entry(rig, second).judges.values()] == [0]


def test_what_was_drawn_for_other_prompts_is_scored_by_no_further_metric(rig: ModelRig) -> None:
    rig.send()
    model = received(rig, "painter", drawn(10))
    rig.worker().run_all()
    before = _scores(rig, model)
    rig.tiny = tiny_set(PROMPTS[1:], revision="2")
    rig.send(OTHER, account=BOB)
    rig.worker("w2").run_all()
    assert _scores(rig, model) == before
    assert len(_entry(rig, model).judges) == 1


def test_a_metric_that_leaves_something_behind_stops_the_worker_and_not_the_model(
    rig: ModelRig,
) -> None:
    rig.send()
    rig.worker().run_all()
    model = received(rig, "painter", drawn(10))

    def stays(_: int, __: str) -> float:
        raise PlatformError("box_not_ended", "A process of it lives on.")

    rig.backend.score = stays
    worker = rig.worker("w2")
    worker.run_next()
    assert _state(rig, model) is State.QUEUED
    assert not worker.gate.ok
    rig.clock.move(hours=1)
    assert not worker.run_next(), "nothing more runs beside it"
    rig.backend.score = lambda value, _: float(value)
    rig.worker("w3").run_all()
    assert _state(rig, model) is State.PUBLISHED
    assert not any(run.failed for run in _entry(rig, model).judges.values())
