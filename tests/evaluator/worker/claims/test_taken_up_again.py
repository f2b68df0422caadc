"""A run that was cut off goes on from its shards, whoever goes on; and its output is told live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Answers, Pair, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from evaluator.isolation.inside.frames import Capability
from evaluator.isolation.supervising.log import BoundedLog
from evaluator.worker.running.said_lines import LONGEST_LINE, SaidLines, after
from leaderboard.store.live.interface import MemoryLive
from tests.benchmarks.toy import Toy, _picture
from tests.evaluator.rig import FakeBackend, FakeSession, Rig
from tests.evaluator.worker.breaking import Killed, published_once, results
from tests.evaluator.worker.stock import stock

N = 200
NAMES = tuple(f"p{n:03d}" for n in range(N))
BATCH = 64
CHECKS = 7


class Long(Toy):
    """With more pairs than one batch takes."""

    def answers(self, data: Path | None) -> Answers:
        return Answers(pair_ids=NAMES, clusters=NAMES)

    def questions(self, data: Path | None) -> Questions:
        return Questions(
            images={name: _picture(n) for n, name in enumerate(NAMES)},
            texts={"text": "a grey pixel"},
            pairs=tuple(Pair(name, name, "text") for name in NAMES),
        )

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        built = MeasuredBuilder(plan.n_resamples)
        for name in scores.metrics:
            values = scores.overall[name].to_numpy()
            row = Row(
                benchmark="toy",
                revision=self.card.revision,
                metric=name,
                measure="mean",
                value=float(values.mean()),
                n_clusters=N,
            )
            built.add(row, resampled_mean(values, plan.counts), NAMES, values)
        return built.build()


class Longer(Long):
    """The same benchmark after a change of its data."""

    card = Toy.card.model_copy(update={"revision": "2"})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, toy=Long())


def dying_in_the_third_batch(rig: Rig) -> FakeBackend:
    def score(n: int, _: str) -> float:
        if len(rig.backend.asked) > checks(rig) + 2 * BATCH + 5:
            raise Killed
        return float(n)

    return FakeBackend(score)


def checks(rig: Rig) -> int:
    """Answers that the trust checks of a run take."""
    if not hasattr(rig, "_checks"):
        place = rig.folder / "counting"
        place.mkdir()
        plain = Rig(place, toy=Long())
        stock(plain.store, ["hub:ada"])
        plain.worker().run_all()
        rig._checks = len(plain.backend.asked) - N  # type: ignore[attr-defined]
    return int(rig._checks)  # type: ignore[attr-defined]


def cut_off(rig: Rig) -> str:
    (name,) = stock(rig.store, ["hub:ada"])
    rig.backend = dying_in_the_third_batch(rig)
    worker = rig.worker("w1")
    with pytest.raises(Killed), worker.heart:
        worker.run_next()
    rig.clock.move(minutes=2)
    rig.backend = FakeBackend()
    return name


def test_another_worker_on_the_same_disk_asks_only_what_is_missing(
    rig: Rig, tmp_path: Path
) -> None:
    name = cut_off(rig)
    assert rig.worker("w2").run_next()
    assert published_once(rig.store, name)
    assert len(rig.backend.asked) == checks(rig) + N - 2 * BATCH
    whole = rig.folder / "whole"
    whole.mkdir()
    plain = Rig(whole, toy=Long())
    assert stock(plain.store, ["hub:ada"]) == (name,)
    plain.worker().run_all()
    assert results(rig.store, name) == results(plain.store, name)


def test_scores_of_other_data_are_never_mixed_in(rig: Rig) -> None:
    name = cut_off(rig)
    rig.toy = Longer()
    assert rig.worker("w2").run_next()
    assert published_once(rig.store, name)
    assert len(rig.backend.asked) == checks(rig) + N, "all of it is asked anew"


@dataclass
class Talking(FakeSession):
    """Prints a line for each batch."""

    def score(self, images: Any, pairs: Any) -> Any:
        self.log += f"\nbatch of {len(pairs)}"
        return super().score(images, pairs)


class TalkingBackend(FakeBackend):
    def start(self, *_: Any, **__: Any) -> Any:
        return Talking(self, Capability.SCORE)


def listening(rig: Rig, seen: list[str], name: str) -> Callable[[object], None]:
    def listen(_: object) -> None:
        seen.append(rig.store.live.said(name))

    return listen


def test_what_a_scorer_prints_is_told_while_it_runs_and_forgotten_at_the_end(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    rig.backend = TalkingBackend()
    seen: list[str] = []
    lines: list[str] = []

    def listen(_: object) -> None:
        seen.append(rig.store.live.said(name))
        worker.heart.beat()
        lines.extend(pulse.last_line for pulse in rig.store.live.pulses())

    worker = rig.worker(listener=listen)
    worker.run_all()
    assert "hello from the scorer" in seen[-1]
    assert f"batch of {BATCH}" in seen[-1]
    assert max(text.count("hello from the scorer") for text in seen) <= 2, "each box says it once"
    assert f"batch of {BATCH}" in lines
    assert rig.store.live.said(name) == ""


def test_where_answers_are_private_nothing_of_the_output_is_told(rig: Rig) -> None:
    class Secret(Long):
        card = Toy.card.model_copy(update={"answers_public": False})

    rig.toy, rig.backend = Secret(), TalkingBackend()
    (name,) = stock(rig.store, ["hub:ada"])
    seen: list[str] = []
    worker = rig.worker(listener=listening(rig, seen, name))
    worker.run_all()
    assert published_once(rig.store, name)
    assert set(seen) == {""}


def test_only_what_is_new_is_passed_on() -> None:
    assert after("", "a\n") == "a\n"
    assert after("a\n", "a\nb\n") == "b\n"
    assert after("a\n", "a\n") == ""


def test_of_long_output_nothing_is_lost_or_repeated_though_its_middle_is_left_out() -> None:
    log, seen, told = BoundedLog(2000), "", ""
    lines = [f"line {n} of many\n" for n in range(500)]
    for line in lines:
        log.feed(line.encode())
        told += after(seen, log.text())
        seen = log.text()
    assert told == "".join(lines)


def test_of_output_that_ran_away_its_end_is_told() -> None:
    other = "z" * 10_000
    assert after("something else entirely", other) == other[-4096:]


def test_a_last_line_is_cut_and_never_empty() -> None:
    said = SaidLines(MemoryLive(), "m-12345678", may_tell=True)
    assert said.last == ""
    said.heard(lambda: "one\n" + "y" * 1000 + "\n\n  \n")
    assert said.last == "y" * LONGEST_LINE
