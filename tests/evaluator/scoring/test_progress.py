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
