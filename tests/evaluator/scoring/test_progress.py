"""Progress: how far, how fast, how long."""

from __future__ import annotations

from evaluator.scoring.progress import Progress, Tracker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_rate_and_time_left_count_only_what_this_start_did() -> None:
    clock = Clock()
    tracker = Tracker(100, already_done=40, clock=clock)
    assert tracker.now() == Progress(40, 100, 0.0, None, "scoring")
    clock.now += 4
    tracker.advance(20)
    assert tracker.now() == Progress(60, 100, 5.0, 8.0, "scoring")


def test_the_time_it_takes_to_load_a_model_spoils_no_estimate() -> None:
    clock = Clock()
    tracker = Tracker(1000, stage="starting", clock=clock)
    clock.now += 290
    tracker.enter("scoring")
    clock.now += 10
    tracker.advance(100)
    assert tracker.now().eta_s == 2700
    for _ in range(2):
        clock.now += 10
        tracker.advance(100)
    assert tracker.now() == Progress(300, 1000, 10.0, 70.0, "scoring")


def test_a_new_stage_is_told_at_once_with_the_next_pairs() -> None:
    clock = Clock()
    heard: list[Progress] = []
    tracker = Tracker(9, heard.append, stage="starting", every_s=60.0, clock=clock)
    tracker.enter("scoring")
    tracker.advance(1)
    tracker.advance(1)
    assert [(p.done, p.stage) for p in heard] == [(0, "starting"), (1, "scoring")]


def test_a_listener_hears_the_start_now_and_then_and_the_end() -> None:
    clock = Clock()
    heard: list[Progress] = []
    tracker = Tracker(5, heard.append, every_s=1.0, clock=clock)
    for step in (0.1, 0.1, 1.0, 0.1, 0.1):
        clock.now += step
        tracker.advance(1)
    assert [progress.done for progress in heard] == [0, 3, 5]
    assert heard[-1].eta_s == 0.0


def test_a_run_that_is_done_already_has_nothing_left() -> None:
    assert Tracker(3, already_done=3).now().eta_s == 0.0
