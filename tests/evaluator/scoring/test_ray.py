"""Actors of Ray answer every batch once, whatever dies."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from evaluator.scoring.asking import Answered, Batch, Engine, PairRequest, RawItem, ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder
from evaluator.scoring.engine import EngineOptions, LocalEngine, run_plan
from evaluator.scoring.progress import Progress
from tests.evaluator.scorers.common import later, refusal
from tests.evaluator.scoring import ray_clients as clients
from tests.evaluator.scoring.fakes import picture, questions_of

if TYPE_CHECKING:
    from evaluator.scoring.ray_cluster import RayCluster
    from evaluator.scoring.ray_engine import BatchQueue, RayEngine

ray_cluster = later("evaluator.scoring.ray_cluster")
ray_engine = later("evaluator.scoring.ray_engine")


def numbered(n: int) -> Iterator[Batch]:
    return (Batch(i, (RawItem(f"image-{i}", b"", ()),)) for i in range(n))


def taken(queue: BatchQueue, *held: Batch) -> Batch:
    batch = queue.take(held)
    assert batch is not None
    return batch


@pytest.mark.parametrize(("ahead", "drawn"), [(0, 0), (2, 2), (9, 3)])
def test_batches_come_in_their_order_and_once_also_those_drawn_ahead(
    ahead: int, drawn: int
) -> None:
    queue = ray_engine.BatchQueue(numbered(3))
    assert queue.draw_ahead(ahead) == drawn
    assert [taken(queue).number for _ in range(3)] == [0, 1, 2]
    assert queue.take(()) is None
    assert queue.empty


def test_a_suspect_is_asked_alone() -> None:
    queue = ray_engine.BatchQueue(numbered(4))
    first, second = taken(queue), taken(queue)
    queue.put_back([first, second])
    suspect = taken(queue)
    assert suspect is first
    assert queue.take([suspect]) is None, "nothing beside a suspect"
    other = Batch(9, ())
    assert queue.take([other]) is None, "no suspect beside another batch"
    assert taken(queue) is second
    assert taken(queue, other).number == 2, "without suspects that wait, all goes on"


def test_an_innocent_neighbour_is_not_blamed() -> None:
    queue = ray_engine.BatchQueue(numbered(2))
    deadly, innocent = taken(queue), taken(queue)
    queue.put_back([deadly, innocent])
    queue.put_back([taken(queue)])
    assert taken(queue) is innocent
    queue.answered(innocent)
    with pytest.raises(PlatformError, match=r"3 worker processes died.*'image-0'") as error:
        queue.put_back([taken(queue)])
    assert error.value.code == "worker_killed_by_batch"


@pytest.mark.parametrize(
    ("resources", "options", "threads", "expected"),
    [
        ({"CPU": 2}, {}, 1, (2, 1, 0)),
        ({"CPU": 8}, {}, 4, (2, 4, 0)),
        ({"CPU": 2}, {}, 4, (1, 2, 0)),
        ({"CPU": 2}, {"actors": 4}, 1, (4, 0.5, 0)),
        ({"CPU": 16, "GPU": 4}, {}, 8, (4, 4, 1)),
        ({"CPU": 16, "GPU": 4}, {"gpus": 0}, 8, (2, 8, 0)),
        ({"CPU": 16, "GPU": 4}, {"gpus": 0.5}, 1, (8, 1, 0.5)),
        ({"CPU": 16, "GPU": 4}, {"actors": 2}, 1, (2, 1, 1)),
    ],
)
def test_a_cluster_is_divided_by_gpus_else_by_threads(
    resources: dict[str, float],
    options: dict[str, Any],
    threads: int,
    expected: tuple[int, float, float],
) -> None:
    found = ray_cluster.slots_of(resources, ray_cluster.RayOptions(**options), threads)
    assert found == ray_cluster.Slots(*expected)


@pytest.mark.parametrize("options", [{"gpus": 1}, {"actors": 0}])
def test_a_cluster_without_room_for_one_actor_is_refused(options: dict[str, Any]) -> None:
    with refusal("ray_no_room", "the cluster has 2 CPUs and 0 GPUs"):
        ray_cluster.slots_of({"CPU": 2}, ray_cluster.RayOptions(**options), threads=1)


SMALL = EngineOptions(batch_pairs=6, window=8, keep_every_s=0.0)
PAIRS = [(image, text) for image in range(20) for text in range(image % 4 + 1)]
QUESTIONS = questions_of(PAIRS, elements=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """Two slots on this machine, in a Ray that belongs to the tests and not to the engine."""
    import ray

    from evaluator.scoring.ray_cluster import RayCluster

    ray_cluster.keep_token_out_of_home()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    folder = Path(tempfile.mkdtemp(prefix="assay-test-"))
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 * 1024 * 1024,
        _temp_dir=str(folder),
        logging_level=logging.CRITICAL,
        log_to_driver=False,
    )
    with RayCluster(None, tmp_path_factory.mktemp("scratch")) as joined:
        yield joined
    assert ray.is_initialized(), "a Ray that somebody else started was shut down"
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
    del os.environ["RAY_USAGE_STATS_ENABLED"]
    deadline = time.monotonic() + 30
    while (left := _processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


@pytest.fixture
def engine(cluster: RayCluster) -> RayEngine:
    """One actor where that is enough: a start costs a second or two."""
    from evaluator.scoring.ray_engine import RayEngine

    return RayEngine(cluster, ray_cluster.RayOptions(actors=1))


def run(source: Any, shards: Path, engine: Engine, **more: Any) -> ScoreColumn:
    plan, kept = ScoringPlan.of(QUESTIONS, b"seed"), ShardFolder(shards, "fingerprint")
    return run_plan(plan, QUESTIONS, source, kept, engine=engine, options=SMALL, **more)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> ScoreColumn:
    folder = tmp_path_factory.mktemp("local")
    return run(clients.AccidentSource(folder), folder / "shards", LocalEngine())


def assert_same(found: ScoreColumn, expected: ScoreColumn) -> None:
    """Bit for bit, and each pair once."""
    assert found.overall.equals(expected.overall)
    assert found.elements is not None
    assert expected.elements is not None
    assert found.elements.equals(expected.elements)
    assert set(found.findings) == set(expected.findings)
    assert found.cost.pairs == expected.cost.pairs
    assert found.cost.images == expected.cost.images


def batches(n: int, drawn: list[int] | None = None) -> Iterator[Batch]:
    for number in range(n):
        if drawn is not None:
            drawn.append(number)
        asked = PairRequest(f"pair-{number}", "text", f"prompt {number}")
        yield Batch(number, (RawItem(f"image-{number}", picture(number), (asked,)),))


@pytest.mark.slow
def test_the_scores_are_those_of_a_local_run_bit_for_bit(
    cluster: RayCluster, tmp_path: Path
) -> None:
    import torch

    from evaluator.scoring.ray_engine import RayEngine
    from tests.evaluator.scoring.ray_torch_client import TorchSource

    local = run(TorchSource(tmp_path / "a"), tmp_path / "local", LocalEngine())
    source = TorchSource(tmp_path / "b", together=2)
    found = run(source, tmp_path / "ray", RayEngine(cluster, ray_cluster.RayOptions(actors=2)))
    assert_same(found, local)
    assert found.environment["engine"] == "ray"
    assert found.environment["threads"] == str(torch.get_num_threads())
    assert found.environment["omp"] == str(torch.get_num_threads())
    assert found.cost.peak_memory_bytes == 1000
    assert found.cost.seconds == local.cost.seconds
    assert len(clients.pids(tmp_path / "b")) == 2, "both slots worked"
    assert sorted(clients.pids(tmp_path / "b", "closed")) == sorted(clients.pids(tmp_path / "b"))
    assert clients.gone(clients.pids(tmp_path / "b"))


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_every_pair_is_scored_once(
    cluster: RayCluster, local: ScoreColumn, tmp_path: Path
) -> None:
    from evaluator.scoring.ray_engine import RayEngine

    source = clients.AccidentSource(tmp_path, pause_s=0.2)
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        started = clients.pids(tmp_path)
        if started and progress.done and not killed:
            killed.append(started[0])
            os.kill(started[0], signal.SIGKILL)

    engine = RayEngine(cluster, ray_cluster.RayOptions(actors=2))
    found = run(source, tmp_path / "shards", engine, listener=kill_one, clock=_Ticks())
    assert killed
    assert not clients.alive(killed[0])
    assert_same(found, local)


@pytest.mark.slow
def test_a_batch_that_killed_its_worker_once_is_asked_again(
    engine: RayEngine, local: ScoreColumn, tmp_path: Path
) -> None:
    source = clients.AccidentSource(tmp_path, deadly=frozenset({"image-7"}), deadly_times=1)
    found = run(source, tmp_path / "shards", engine)
    assert len(clients.pids(tmp_path, "killed")) == 2, "one died of it, and one did not"
    assert_same(found, local)


@pytest.mark.slow
def test_a_batch_that_kills_three_workers_is_named_and_the_rest_is_good(
    engine: RayEngine, tmp_path: Path
) -> None:
    source = clients.AccidentSource(tmp_path, deadly=frozenset({"image-3"}))
    good: list[Answered] = []
    with refusal("worker_killed_by_batch", "'image-3'", kind=PlatformError):
        good.extend(engine.run(batches(5), source))
    assert {answer.batch for answer in good} <= {0, 1, 2, 4}
    assert len(clients.pids(tmp_path, "killed")) == 3
    assert clients.gone(clients.pids(tmp_path))


@pytest.mark.slow
def test_workers_that_never_start_end_the_run(engine: RayEngine, tmp_path: Path) -> None:
    with refusal("workers_lost", kind=TransientError):
        list(engine.run(batches(1), clients.AccidentSource(tmp_path, dies_when_opened=True)))
    assert len(clients.pids(tmp_path)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("ray_first", [True, False])
def test_an_error_of_the_asker_comes_whole_and_the_other_engine_goes_on_from_there(
    engine: RayEngine, local: ScoreColumn, tmp_path: Path, ray_first: bool
) -> None:
    first, second = (engine, LocalEngine()) if ray_first else (LocalEngine(), engine)
    last = ScoringPlan.of(QUESTIONS, b"seed").units[-1].image_id
    with pytest.raises(SubmitterError) as error:
        run(clients.AccidentSource(tmp_path, refused=frozenset({last})), tmp_path / "shards", first)
    raised = error.value
    assert type(raised) is SubmitterError
    assert raised.code == "scorer_crashed"
    assert (raised.message, raised.hint) == ("It crashed on purpose.", "Mend it.")
    kept = ShardFolder(tmp_path / "shards", "fingerprint").load(set(local.overall.index)).scores
    assert kept
    assert all(local.overall[pair_id] == score for pair_id, score in kept.items())
    found = run(clients.AccidentSource(tmp_path), tmp_path / "shards", second)
    assert found.resumed_pairs == len(kept) < found.cost.pairs
    # The rest is cut into other batches, so it has other last bits; what was kept is as it was.
    assert (found.overall - local.overall).abs().max() < 1e-6
    assert all(found.overall[pair_id] == score for pair_id, score in kept.items())
    assert found.cost.images == local.cost.images


@pytest.mark.slow
def test_batches_are_drawn_as_they_are_needed_and_no_worker_outlives_a_run_given_up(
    engine: RayEngine, tmp_path: Path
) -> None:
    import ray

    drawn: list[int] = []
    answers = engine.run(batches(1000, drawn), clients.AccidentSource(tmp_path))
    assert isinstance(answers, Generator)
    with closing(answers):
        for done in range(1, 31):
            next(answers)
            assert len(drawn) <= done + 2
    assert ray.is_initialized()
    assert clients.gone(clients.pids(tmp_path))


@pytest.mark.slow
def test_nothing_is_started_where_nothing_is_asked(engine: RayEngine, tmp_path: Path) -> None:
    assert not list(engine.run(batches(0), clients.AccidentSource(tmp_path)))
    assert not clients.pids(tmp_path)


@pytest.mark.slow
def test_a_source_that_cannot_be_sent_is_named(engine: RayEngine) -> None:
    with refusal("source_not_portable", "UnsendableSource", kind=PlatformError):
        list(engine.run(batches(1), clients.UnsendableSource()))


class _Ticks:
    """A clock that moves on whenever it is looked at, so that every batch is told of."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        self._now += 1.0
        return self._now


def _processes_of(folder: Path) -> list[str]:
    """Processes that still name this folder on their command line."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder) in line:
            lines.append(line)
    return lines
