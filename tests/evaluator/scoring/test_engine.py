"""The engine: nothing asked twice, nothing lost, and no score that depends on the order."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.errors import PlatformError
from benchmarks.schema import Questions
from evaluator.scoring.box import BoxSource
from evaluator.scoring.engine import EngineOptions, ScoreColumn, run_plan
from evaluator.scoring.local import LocalEngine
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.progress import Progress
from evaluator.scoring.shards import ShardFolder
from tests.evaluator.scoring.asking import PAIRS, FakeSession, content_score, picture, questions_of

GRID = [(i, t) for i in range(12) for t in range(3)]
SMALL = EngineOptions(batch_pairs=6, keep_every_s=0.0, ahead=2)


def run(
    questions: Questions,
    session: FakeSession,
    folder: Path,
    *,
    seed: bytes = b"seed",
    options: EngineOptions = SMALL,
    heard: list[Progress] | None = None,
) -> ScoreColumn:
    return run_plan(
        ScoringPlan.of(questions, seed),
        questions,
        BoxSource(session, "fingerprint"),
        ShardFolder(folder, "fingerprint"),
        None if heard is None else heard.append,
        options=options,
    )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=PAIRS)
def test_each_pair_gets_the_score_of_its_image_and_prompt(
    pairs: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    questions = questions_of(pairs)
    session = FakeSession()
    column = run(questions, session, tmp_path_factory.mktemp("run"))
    assert column.overall.to_dict() == {
        f"pair-{n}": content_score(picture(i), f"prompt number {t}")
        for n, (i, t) in enumerate(pairs)
    }
    assert list(column.overall.index) == [pair.pair_id for pair in questions.pairs]
    assert len(session.images) == len(set(session.images)) == len(questions.images)


def test_the_order_of_the_pairs_does_not_change_a_score(tmp_path: Path) -> None:
    questions = questions_of(GRID)
    turned = replace(questions, pairs=questions.pairs[::-1])
    first = run(questions, FakeSession(), tmp_path / "a")
    second = run(turned, FakeSession(), tmp_path / "b", seed=b"other", options=EngineOptions())
    assert list(second.overall.index) == list(first.overall.index)[::-1]
    assert first.overall.to_dict() == second.overall.to_dict()


def test_after_a_failure_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    questions = questions_of(GRID)
    with pytest.raises(RuntimeError, match="the box is gone"):
        run(questions, FakeSession(fails_after=3), tmp_path)
    again = FakeSession()
    heard: list[Progress] = []
    column = run(questions, again, tmp_path, seed=b"another seed", heard=heard)
    assert sum(map(len, again.batches)) == 36 - 18
    assert column.cost.resumed_pairs == 18
    assert column.cost.images == 12
    assert (heard[0].done, heard[-1].done, heard[-1].total) == (18, 36, 36)
    assert column.overall.equals(run(questions, FakeSession(), tmp_path / "whole").overall)


def test_a_failure_between_two_writes_loses_nothing(tmp_path: Path) -> None:
    questions = questions_of(GRID)
    rarely = replace(SMALL, keep_every_s=1e9)
    with pytest.raises(RuntimeError):
        run(questions, FakeSession(fails_after=3), tmp_path, options=rarely)
    assert len(list(tmp_path.iterdir())) == 1
    assert run(questions, FakeSession(), tmp_path).cost.resumed_pairs == 18


def test_a_run_that_is_complete_asks_nothing(tmp_path: Path) -> None:
    questions = questions_of(GRID)
    first = run(questions, FakeSession(), tmp_path)
    idle = FakeSession(fails_after=0)
    second = run(questions, idle, tmp_path)
    assert idle.batches == []
    assert second.overall.equals(first.overall)


def test_elements_are_asked_where_a_text_has_them(tmp_path: Path) -> None:
    questions = questions_of(GRID, elements=True)
    column = run(questions, FakeSession(elements=True), tmp_path)
    assert column.elements is not None
    expected = [
        (f"pair-{n}", "a", content_score(picture(i), f"part {t}"))
        for n, (i, t) in enumerate(GRID)
        if t in {0, 2}
    ]
    assert list(column.elements.itertuples(index=False, name=None)) == expected
    resumed = run(questions, FakeSession(elements=True, fails_after=0), tmp_path)
    assert resumed.elements is not None
    assert resumed.elements.equals(column.elements)


@pytest.mark.parametrize(("can", "has"), [(True, False), (False, True)])
def test_without_elements_there_is_no_table_of_them(tmp_path: Path, can: bool, has: bool) -> None:
    column = run(questions_of(GRID, elements=has), FakeSession(elements=can), tmp_path)
    assert column.elements is None


def test_images_are_read_a_bounded_way_ahead(tmp_path: Path) -> None:
    read = threading.Semaphore(0)
    counted: list[int] = []
    questions = questions_of([(i, 0) for i in range(40)])

    def counting(number: int) -> bytes:
        counted.append(number)
        read.release()
        return picture(number)

    images = {f"image-{i}": (lambda i=i: counting(i)) for i in range(40)}
    options = EngineOptions(batch_pairs=1, ahead=3, window=1)
    with pytest.raises(RuntimeError):
        run(
            replace(questions, images=images),
            FakeSession(fails_after=2),
            tmp_path,
            options=options,
        )
    assert len(counted) <= 2 + LocalEngine().ahead_batches + 2 + options.ahead + options.fetchers


@pytest.mark.parametrize("data", [b"no image", b""])
def test_an_unreadable_image_is_our_fault_and_is_named(tmp_path: Path, data: bytes) -> None:
    questions = replace(questions_of([(0, 0)]), images={"image-0": lambda: data})
    with pytest.raises(PlatformError, match="'image-0'") as caught:
        run(questions, FakeSession(), tmp_path)
    assert caught.value.code == "image_unreadable"


def test_a_benchmark_without_pairs_has_an_empty_column(tmp_path: Path) -> None:
    column = run(questions_of([]), FakeSession(), tmp_path)
    assert column.overall.empty
    assert column.overall.dtype == "float64"
    assert column.cost.pairs_per_s == 0.0
