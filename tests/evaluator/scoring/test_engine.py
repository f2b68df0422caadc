"""The engine: the same scores however a plan is run; nothing asked twice, nothing lost; progress."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from PIL import Image

from benchmarks.errors import PlatformError
from benchmarks.schema import Questions
from evaluator.scoring.asking import (
    Answered,
    Batch,
    ClientSource,
    Engine,
    Item,
    Ready,
    Reply,
    ScoringPlan,
)
from evaluator.scoring.column import ShardFolder
from evaluator.scoring.contract import Verdict
from evaluator.scoring.engine import EngineOptions, LocalEngine, ScoreColumn, answered, run_plan
from evaluator.scoring.progress import Progress, Tracker
from evaluator.scoring.sandbox import SandboxSource
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scoring import fakes

GRID = [(i, t) for i in range(12) for t in range(3)]
SMALL = EngineOptions(batch_pairs=6, keep_every_s=0.0, ahead=2)


def run(
    questions: Questions,
    client: fakes.FakeClient | fakes.FakeSession,
    folder: Path,
    *,
    seed: bytes = b"seed",
    options: EngineOptions = SMALL,
    engine: Engine | None = None,
    heard: list[Progress] | None = None,
) -> ScoreColumn:
    return run_plan(
        ScoringPlan.of(questions, seed),
        questions,
        SandboxSource(client, "fake")
        if isinstance(client, fakes.FakeSession)
        else fakes.FakeSource(client),
        ShardFolder(folder, "fingerprint"),
        None if heard is None else heard.append,
        engine=engine,
        options=options,
    )


def plain(questions: Questions) -> dict[str, float]:
    """Pair by pair, with nothing shared."""
    return {
        pair.pair_id: fakes.content_score(
            questions.images[pair.image_id](), questions.texts[pair.text_id]
        )
        for pair in questions.pairs
    }


@dataclass
class Backwards:
    """An engine that answers in an order of its own, and not always as it should."""

    repeats: bool = False
    forgets: bool = False
    name: str = "backwards"
    seen: list[int] = field(default_factory=list)

    def run(self, batches: Iterable[Batch], source: ClientSource) -> Iterator[Answered]:
        with source.open() as client:
            drawn = list(batches)
            self.seen = [batch.number for batch in drawn]
            for batch in drawn[: 0 if self.forgets else None :][::-1]:
                yield answered(client, batch)
                if self.repeats:
                    yield answered(client, batch)


@pytest.mark.parametrize(
    "options",
    [
        EngineOptions(),
        EngineOptions(batch_pairs=1),
        EngineOptions(batch_pairs=7, batch_bytes=200),
        EngineOptions(window=1),
        EngineOptions(batch_pairs=4, window=5, ahead=1, fetchers=1),
    ],
)
def test_however_batches_are_cut_a_pair_gets_the_same_score(
    tmp_path: Path, options: EngineOptions
) -> None:
    questions = fakes.questions_of(GRID)
    for seed in (b"one", b"two"):
        column = run(
            questions, fakes.FakeClient(), tmp_path / seed.decode(), seed=seed, options=options
        )
        assert column.overall.to_dict() == plain(questions)


def test_answers_may_come_in_any_order(tmp_path: Path) -> None:
    questions = fakes.questions_of(GRID)
    engine = Backwards()
    column = run(questions, fakes.FakeClient(), tmp_path, engine=engine)
    assert engine.seen == list(range(6))
    assert column.overall.to_dict() == plain(questions)
    assert column.environment == {"device": "cpu", "engine": "backwards"}


@pytest.mark.parametrize(
    ("engine", "code"),
    [(Backwards(repeats=True), "batch_answered_twice"), (Backwards(forgets=True), "batches_lost")],
)
def test_an_engine_that_loses_or_repeats_a_batch_is_caught(
    tmp_path: Path, engine: Backwards, code: str
) -> None:
    with refusal(code, kind=PlatformError):
        run(fakes.questions_of(GRID), fakes.FakeClient(), tmp_path, engine=engine)


def test_wherever_a_run_is_killed_it_goes_on_with_only_what_is_missing(tmp_path: Path) -> None:
    questions = fakes.questions_of(GRID, elements=True)
    whole = run(questions, fakes.FakeClient(elements=True, answers=True), tmp_path / "whole")
    assert whole.elements is not None
    assert whole.answers is not None
    for n in range(6):
        with pytest.raises(RuntimeError):
            run(
                questions,
                fakes.FakeClient(elements=True, answers=True, fails_after=n),
                tmp_path / str(n),
            )
        again = fakes.FakeClient(elements=True, answers=True)
        column = run(questions, again, tmp_path / str(n), seed=b"another")
        assert sum(len(pairs) for r in again.requests for _, pairs in r) == 36 - 6 * n
        assert column.resumed_pairs == 6 * n
        assert column.overall.equals(whole.overall)
        assert column.elements is not None
        assert column.answers is not None
        pd.testing.assert_frame_equal(column.elements, whole.elements)
        pd.testing.assert_frame_equal(column.answers, whole.answers)
        assert column.cost.images == column.cost.images_encoded == 12
        assert column.cost.calls == 6
        assert column.cost.seconds == 1.5


def test_each_image_is_decoded_and_encoded_once_and_each_text_once(tmp_path: Path) -> None:
    questions = fakes.questions_of(GRID)
    client = fakes.FakeClient()
    column = run(questions, client, tmp_path)
    assert len(client.made_ready) == len(set(client.made_ready)) == 12
    cost = column.cost
    assert cost.images_decoded == cost.images_encoded == cost.images == 12
    assert (cost.texts_encoded, cost.pairs) == (3, 36)
    assert cost.pairs_per_s == 36 / 1.5

    source = fakes.FakeSource(fakes.FakeClient(fails_after=0))
    second = run_plan(
        ScoringPlan.of(questions, b"x"), questions, source, ShardFolder(tmp_path, "fingerprint")
    )
    assert source.opened == 0
    assert source.client.made_ready == []
    assert second.overall.equals(column.overall)
    assert second.cost == cost


class Alive(bytes):
    """Bytes that are counted for as long as anybody holds them."""

    now = most = 0

    def __init__(self, *_: object) -> None:
        with _LOCK:
            Alive.now += 1
            Alive.most = max(Alive.most, Alive.now)

    def __del__(self) -> None:
        with _LOCK:
            Alive.now -= 1


_LOCK = threading.RLock()


class CountingClient(fakes.FakeClient):
    """Its images, too, are counted while they are held."""

    def ready(self, data: bytes) -> Ready:
        return Ready(Alive(data), len(data))

    def ask(self, items: Sequence[Item]) -> Reply:
        return Reply(tuple(tuple(Verdict(1.0) for _ in item.asked) for item in items))


def test_images_held_at_once_do_not_grow_with_the_number_of_images(tmp_path: Path) -> None:
    def most_alive(n_images: int) -> int:
        questions = fakes.questions_of([(i, 0) for i in range(n_images)])
        images = dict.fromkeys(questions.images, lambda: Alive(b"an image"))
        Alive.now = Alive.most = 0
        column = run(
            replace(questions, images=images),
            CountingClient(),
            tmp_path / str(n_images),
            options=EngineOptions(batch_pairs=8, ahead=8, window=16, keep_every_s=1e9),
            engine=LocalEngine(ahead_batches=2),
        )
        assert column.verdict.scored == n_images
        assert Alive.now == 0
        return Alive.most

    # Read ahead, in two windows, in four batches encoded, and in four batches ready.
    bound = 8 + 2 + 2 * 16 + 4 * 8 + 4 * 8
    assert most_alive(200) <= bound
    assert most_alive(2_000) <= bound


def test_what_is_wrong_with_an_item_is_named_and_the_rest_is_scored(tmp_path: Path) -> None:
    questions = _with_bad_items()
    column = run(questions, fakes.FakeClient(), tmp_path)
    found = {(f.code, f.item, f.item_id): f.scored for f in column.findings}
    unscored = {("no_score", "pair", f"pair-{n}"): False for n in (9, 13, 17, 21)}
    assert found == unscored | {
        ("text_empty", "text", "text-3"): True,
        ("image_unreadable", "image", "image-0"): False,
        ("image_unreadable", "image", "image-1"): False,
        ("image_converted", "image", "image-2"): True,
        ("text_truncated", "text", "text-2"): True,
    }
    scored = column.overall[column.overall.notna()]
    assert len(column.overall) == 24
    assert len(scored) == 24 - 8 - 4
    assert (column.verdict.scored, column.verdict.pairs) == (12, 24)
    assert column.verdict.unscored == {"image_unreadable": 8, "no_score": 4}
    assert column.verdict.remarks == {
        "text_empty": 1, "image_converted": 1, "text_truncated": 1,
    }  # fmt: skip


def _with_bad_items() -> Questions:
    """Six images with four texts each: one no image, one not there, one grey; one text each bad."""
    questions = fakes.questions_of([(i, t) for i in range(6) for t in range(4)])
    grey = io.BytesIO()
    Image.new("L", (2, 2), 9).save(grey, format="PNG")

    def gone() -> bytes:
        raise FileNotFoundError(2, "No such file or directory", "one.png")

    images = {
        **questions.images,
        "image-0": lambda: b"no image",
        "image-1": gone,
        "image-2": grey.getvalue,
    }
    texts = {**questions.texts, "text-1": fakes.UNSCORED, "text-2": fakes.LONG, "text-3": " \n"}
    return replace(questions, images=images, texts=texts)


def test_findings_survive_a_restart(tmp_path: Path) -> None:
    questions = _with_bad_items()
    whole = run(questions, fakes.FakeClient(), tmp_path / "whole")
    with pytest.raises(RuntimeError):
        run(questions, fakes.FakeClient(fails_after=2), tmp_path / "cut")
    resumed = run(questions, fakes.FakeClient(), tmp_path / "cut")
    assert set(resumed.findings) == set(whole.findings)
    assert len(resumed.findings) == len(whole.findings)
    assert resumed.verdict == whole.verdict


def test_a_file_that_could_not_be_read_is_tried_again_by_the_next_start(tmp_path: Path) -> None:
    questions = fakes.questions_of(GRID)
    broken = replace(questions, images={**questions.images, "image-3": _broken_disk})
    assert run(broken, fakes.FakeClient(), tmp_path).verdict.unscored == {"image_unreadable": 3}
    client = fakes.FakeClient()
    mended = run(questions, client, tmp_path)
    assert len(client.made_ready) == 1
    assert mended.findings == ()
    assert mended.overall.to_dict() == plain(questions)


def _broken_disk() -> bytes:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("read", [lambda: b"no image", _broken_disk])
def test_a_benchmark_without_one_readable_image_is_our_fault(
    tmp_path: Path, read: Callable[[], bytes]
) -> None:
    questions = fakes.questions_of(GRID)
    broken = replace(questions, images=dict.fromkeys(questions.images, read))
    with refusal("image_unreadable", "12 images", kind=PlatformError):
        run(broken, fakes.FakeClient(), tmp_path)
    # What was found while nothing could be read does not stay once it can.
    assert run(questions, fakes.FakeClient(), tmp_path).verdict.scored == 36


def test_answers_are_kept_in_the_order_of_the_benchmark(tmp_path: Path) -> None:
    questions = fakes.questions_of(GRID)
    column = run(questions, fakes.FakeClient(answers=True), tmp_path)
    assert column.answers is not None
    assert list(column.answers.columns) == [
        "pair_id", "question_id", "question", "expected", "raw", "value", "valid",
    ]  # fmt: skip
    assert list(column.answers["pair_id"]) == [pair.pair_id for pair in questions.pairs]
    assert column.answers["value"].tolist() == column.overall.tolist()
    assert column.answers["question"][0] == "prompt number 0?"
    assert run(questions, fakes.FakeClient(), tmp_path / "none").answers is None


def test_a_listener_hears_what_is_being_done(tmp_path: Path) -> None:
    heard: list[Progress] = []
    run(fakes.questions_of(GRID), fakes.FakeClient(), tmp_path, heard=heard)
    assert (heard[0].stage, heard[0].done, heard[0].total) == ("starting", 0, 36)
    assert (heard[1].stage, heard[1].done) == ("scoring", 6)
    assert (heard[-1].stage, heard[-1].done, heard[-1].eta_s) == ("scoring", 36, 0.0)


def test_starts_in_different_environments_are_all_named(tmp_path: Path) -> None:
    class OnGpu(fakes.FakeClient):
        @property
        def environment(self) -> dict[str, str]:
            return {"device": "cuda", "precision": "bf16"}

    questions = fakes.questions_of(GRID)
    with pytest.raises(RuntimeError):
        run(questions, fakes.FakeClient(fails_after=2), tmp_path)
    column = run(questions, OnGpu(), tmp_path)
    assert column.environment == {"device": "cpu; cuda", "precision": "bf16", "engine": "local"}


@settings(max_examples=25)
@given(pairs=fakes.PAIRS)
def test_a_box_is_sent_each_image_once_and_gives_each_pair_its_score(
    pairs: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    questions, session = fakes.questions_of(pairs), fakes.FakeSession()
    column = run(questions, session, tmp_path_factory.mktemp("run"))
    assert column.overall.to_dict() == plain(questions)
    assert list(column.overall.index) == [pair.pair_id for pair in questions.pairs]
    assert len(session.images) == len(set(session.images)) == len(questions.images)


def test_a_failure_between_two_writes_loses_nothing(tmp_path: Path) -> None:
    rarely = replace(SMALL, keep_every_s=1e9)
    with pytest.raises(RuntimeError):
        run(fakes.questions_of(GRID), fakes.FakeSession(fails_after=3), tmp_path, options=rarely)
    assert len(list(tmp_path.iterdir())) == 1
    assert run(fakes.questions_of(GRID), fakes.FakeSession(), tmp_path).resumed_pairs == 18


def test_elements_are_asked_where_a_text_has_them(tmp_path: Path) -> None:
    questions = fakes.questions_of(GRID, elements=True)
    column = run(questions, fakes.FakeSession(elements=True), tmp_path)
    assert column.elements is not None
    assert list(column.elements.itertuples(index=False, name=None)) == [
        (f"pair-{n}", "a", fakes.content_score(fakes.picture(i), f"part {t}"))
        for n, (i, t) in enumerate(GRID)
        if t in {0, 2}
    ]
    resumed = run(questions, fakes.FakeSession(elements=True, fails_after=0), tmp_path)
    assert resumed.elements is not None
    assert column.elements.equals(resumed.elements)


@pytest.mark.parametrize(("can", "has"), [(True, False), (False, True)])
def test_without_elements_there_is_no_table_of_them(tmp_path: Path, can: bool, has: bool) -> None:
    column = run(fakes.questions_of(GRID, elements=has), fakes.FakeSession(elements=can), tmp_path)
    assert column.elements is None


def test_a_benchmark_without_pairs_has_an_empty_column(tmp_path: Path) -> None:
    column = run(fakes.questions_of([]), fakes.FakeSession(), tmp_path)
    assert column.overall.empty
    assert column.overall.dtype == "float64"
    assert column.cost.pairs_per_s == 0.0


class Steps:
    """A clock that moves when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def moved(clock: Steps, tracker: Tracker, *steps: tuple[float, int]) -> Progress:
    """The progress once so many pairs were done, each time after some seconds."""
    for seconds, pairs in steps:
        clock.now += seconds
        tracker.advance(pairs)
    return tracker.now()


def test_rate_and_time_left_count_only_what_this_start_did_and_not_what_loading_took() -> None:
    clock = Steps()
    tracker = Tracker(100, already_done=40, clock=clock)
    assert tracker.now() == Progress(40, 100, 0.0, None, "scoring")
    assert moved(clock, tracker, (4, 20)) == Progress(60, 100, 5.0, 8.0, "scoring")
    assert Tracker(3, already_done=3).now().eta_s == 0.0
    tracker = Tracker(1000, stage="starting", clock=clock)
    clock.now += 290
    tracker.enter("scoring")
    assert moved(clock, tracker, (10, 100)).eta_s == 2700
    last = moved(clock, tracker, (10, 100), (10, 100))
    assert last == Progress(300, 1000, 10.0, 70.0, "scoring")


def test_a_listener_hears_start_and_end_a_new_stage_at_once_and_the_rest_now_and_then() -> None:
    clock = Steps()
    heard: list[Progress] = []
    tracker = Tracker(9, heard.append, stage="starting", every_s=1.0, clock=clock)
    tracker.enter("scoring")
    last = moved(clock, tracker, *[(0.0, 1)] * 2, (0.2, 1), (1.0, 1), (0.1, 1), (0.1, 4))
    told = [(0, "starting"), (1, "scoring"), (4, "scoring"), (9, "scoring")]
    assert [(p.done, p.stage) for p in heard] == told
    assert last.eta_s == 0.0
