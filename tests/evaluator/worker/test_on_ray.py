"""On the actors of a Ray cluster a module and a built-in metric have the scores that they have here."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import Questions
from evaluator.bundled import FOLDER
from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import IsolationStatus
from evaluator.isolation.job import Limits
from evaluator.scoring.asking import Engine
from evaluator.scoring.engine import LocalEngine
from evaluator.submission.archives.archive import taken_in
from evaluator.worker.scorer_role import OWN_CODE, ScorerRole
from leaderboard.states import State
from tests.evaluator.submission.builtins import (
    DUAL,
    add_clip,
    for_other_processes,
    form,
    models_hub,
)
from tests.evaluator.worker.rigs import DemoRig
from tests.kit.worker import ROOT, submission

if TYPE_CHECKING:
    from evaluator.scoring.ray_cluster import RayCluster

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """One whose processes know the test Hub and the checkpoint there."""
    from evaluator.scoring.ray_cluster import RayCluster

    home = tmp_path_factory.mktemp("home")
    with (
        pytest.MonkeyPatch.context() as patch,
        models_hub(patch, home) as hub,
        tempfile.TemporaryDirectory(prefix="ray-") as place,
    ):
        for_other_processes(patch, hub, home)
        add_clip(hub, home)
        with RayCluster(None, Path(place)) as joined:
            yield joined


def engine_of(cluster: RayCluster, actors: int) -> Engine:
    from evaluator.scoring.ray_cluster import RayOptions
    from evaluator.scoring.ray_engine import RayEngine

    return RayEngine(cluster, RayOptions(actors=actors, gpus=0.0))


def module_scores(engine: Engine, upload: Path, scratch: Path) -> pd.Series:
    role = ScorerRole(IsolationStatus(None, ()), PlainProcess(), scratch, Limits(), engine)
    benchmark = copy(load_registry()["demo_croc"])  # the registry's own serves every test
    whole = benchmark.questions(None)
    pairs = whole.pairs[:40]
    images = {pair.image_id: whole.images[pair.image_id] for pair in pairs}
    few: Questions = replace(whole, pairs=pairs, images=images)
    benchmark.questions = lambda data: few  # type: ignore[method-assign]
    with taken_in(FOLDER / "colour_reader") as content:
        content.pack_to(upload)
        reader = submission(
            "colour-reader",
            content_sha256=content.sha256,
            benchmarks=("demo_croc",),
            entry_point="scorer:Scorer",
        )
    with role.open(reader, upload) as run:
        scored = run.scores_of(benchmark, None, lambda _: None)
    assert scored.isolation == (OWN_CODE,)
    assert scored.findings is not None and scored.trust is not None
    assert scored.findings.environment["engine"] == engine.name
    assert not scored.trust.failed
    return scored.table.overall["colour-reader"]


def test_a_module_has_the_scores_it_has_here(cluster: RayCluster, tmp_path: Path) -> None:
    here = module_scores(LocalEngine(), tmp_path / "1.zip", tmp_path / "here" / "scratch")
    there = module_scores(engine_of(cluster, 2), tmp_path / "2.zip", tmp_path / "there" / "scratch")
    assert len(here) == 40
    pd.testing.assert_series_equal(there, here, check_exact=True)


def test_a_built_in_metric_has_the_scores_it_has_here(cluster: RayCluster, tmp_path: Path) -> None:
    demo = DemoRig(tmp_path)
    demo.pairs = 60
    name = demo.desk.submit_builtin(form(DUAL), account=ROOT).status.submission.submission_id
    demo.worker().run_all()
    here = demo.overall(name)[DUAL]
    demo.acts.rerun(name, ROOT, "on Ray")
    shutil.rmtree(demo.folder / "scratch")
    demo.engine = engine_of(cluster, 1)
    demo.worker("second").run_all()
    assert demo.state(name) is State.PUBLISHED, demo.ended(name)
    result = demo.result(name)
    assert result.findings is not None and result.findings.environment["engine"] == "ray"
    np.testing.assert_allclose(demo.overall(name)[DUAL], here, atol=1e-5)
