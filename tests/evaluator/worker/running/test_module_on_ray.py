"""A submitted module on the actors of a Ray cluster: in a box there too, with the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark, Questions
from evaluator.bundled import FOLDER
from evaluator.commands.engine_choice import EngineChoice, make_engine
from evaluator.isolation.backend import IsolationStatus
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.scoring.engines import Engine
from evaluator.scoring.local import LocalEngine
from evaluator.submission.archives.archive import content_hash, taken_in
from evaluator.worker.running.module_box import OWN_CODE, PackedModule
from evaluator.worker.running.scorer_role import ScorerRole
from leaderboard.records import Kind, Submission
from tests.evaluator.rig import Clock

MODULE = FOLDER / "colour_reader"
SUBMISSION = Submission(
    submission_id="colour-reader-01",
    kind=Kind.METRIC,
    name="colour-reader",
    metrics=("colour-reader",),
    benchmarks=("demo_croc",),
    submitter="ada",
    content_sha256=content_hash(MODULE),
    archive="uploads/0",
    entry_point="scorer:Scorer",
    received_at=Clock()(),
)
NOTHING_ISOLATES = IsolationStatus(None, ())


@pytest.fixture(scope="module")
def ray_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    scratch = tmp_path_factory.mktemp("ray")
    with make_engine(EngineChoice.RAY, None, 2, scratch) as engine:
        yield engine


@pytest.fixture(scope="module")
def few() -> Questions:
    whole = load_registry()["demo_croc"].questions(None)
    pairs = whole.pairs[:40]
    return replace(whole, pairs=pairs, images={p.image_id: whole.images[p.image_id] for p in pairs})


@pytest.fixture(scope="module")
def upload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("upload") / "module.zip"
    with taken_in(MODULE) as content:
        content.pack_to(path)
    return path


def scores(engine: Engine, few: Questions, upload: Path, scratch: Path) -> dict[str, float]:
    role = ScorerRole(NOTHING_ISOLATES, PlainProcess(), scratch, Limits(), engine)
    benchmark: Benchmark = load_registry()["demo_croc"]
    benchmark.questions = lambda data: few  # type: ignore[method-assign]
    with role.open(SUBMISSION, upload) as run:
        scored = run.scores_of(benchmark, None, lambda _: None)
    assert scored.isolation == (OWN_CODE,)
    assert scored.findings is not None
    assert scored.findings.environment["engine"] == engine.name
    assert scored.trust is not None
    assert not scored.trust.failed
    column = scored.table.overall["colour-reader"]
    return {str(pair): float(value) for pair, value in column.items()}


@pytest.mark.slow
def test_a_module_on_ray_has_the_scores_it_has_here(
    ray_engine: Engine, few: Questions, upload: Path, tmp_path: Path
) -> None:
    here = scores(LocalEngine(), few, upload, tmp_path / "here" / "scratch")
    there = scores(ray_engine, few, upload, tmp_path / "there" / "scratch")
    assert len(here) == 40
    assert there == here


def test_a_machine_that_isolates_less_than_the_worker_runs_nothing(upload: Path) -> None:
    packed = PackedModule(
        SUBMISSION, upload, PlainProcess(), Limits(), ("walls of a kind nobody has",)
    )
    with pytest.raises(PlatformError, match="walls of a kind nobody has"), packed.open():
        raise AssertionError
