"""Batches of dead actors: asked again alone, given up after three deaths, never lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scoring.asking import Batch, RawItem
from evaluator.scoring.ray_cluster import RayOptions, Slots, slots_of
from evaluator.scoring.ray_engine import BatchQueue


def batches(n: int) -> Iterator[Batch]:
    return (Batch(i, (RawItem(f"image-{i}", b"", ()),)) for i in range(n))


def taken(queue: BatchQueue, *held: Batch) -> Batch:
    batch = queue.take(held)
    assert batch is not None
    return batch


def test_batches_come_in_their_order_and_once() -> None:
    queue = BatchQueue(batches(3))

    assert [taken(queue).number for _ in range(3)] == [0, 1, 2]
    assert queue.take(()) is None
    assert queue.empty


def test_those_drawn_ahead_come_first() -> None:
    queue = BatchQueue(batches(3))

    assert queue.draw_ahead(2) == 2
    assert [taken(queue).number for _ in range(3)] == [0, 1, 2]


def test_fewer_batches_than_asked_for_are_all() -> None:
    assert BatchQueue(batches(1)).draw_ahead(4) == 1


def test_a_suspect_is_asked_alone() -> None:
    queue = BatchQueue(batches(4))
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
    queue = BatchQueue(batches(2))
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
        ({"CPU": 2}, RayOptions(), 1, Slots(2, 1, 0)),
        ({"CPU": 8}, RayOptions(), 4, Slots(2, 4, 0)),
        ({"CPU": 2}, RayOptions(), 4, Slots(1, 2, 0)),
        ({"CPU": 2}, RayOptions(actors=4), 1, Slots(4, 0.5, 0)),
        ({"CPU": 16, "GPU": 4}, RayOptions(), 8, Slots(4, 4, 1)),
        ({"CPU": 16, "GPU": 4}, RayOptions(gpus=0), 8, Slots(2, 8, 0)),
        ({"CPU": 16, "GPU": 4}, RayOptions(gpus=0.5), 1, Slots(8, 1, 0.5)),
        ({"CPU": 16, "GPU": 4}, RayOptions(actors=2), 1, Slots(2, 1, 1)),
    ],
)
def test_a_cluster_is_divided_by_gpus_else_by_threads(
    resources: dict[str, float], options: RayOptions, threads: int, expected: Slots
) -> None:
    assert slots_of(resources, options, threads) == expected


@pytest.mark.parametrize("options", [RayOptions(gpus=1), RayOptions(actors=0)])
def test_a_cluster_without_room_for_one_actor_is_refused(options: RayOptions) -> None:
    with pytest.raises(SubmitterError, match="the cluster has 2 CPUs and 0 GPUs") as error:
        slots_of({"CPU": 2}, options, threads=1)

    assert error.value.code == "ray_no_room"
