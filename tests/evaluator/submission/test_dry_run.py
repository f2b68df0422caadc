"""The dry run of `check`: what it finds of modules, what they cost, and the receipt it leaves."""

from __future__ import annotations

import io
import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Limits
from evaluator.scoring.asking import Size
from evaluator.submission import costs as projection
from evaluator.submission.costs import LARGE_SIDE, MEDIUM_SIDE, Costs, Rates, measured
from evaluator.submission.dry_run import Drawn, DryRun, Machine, dry_run, evenly, receipt_of
from evaluator.submission.receipts import (
    MAX_BYTES,
    differences,
    environment_versions,
    read_receipt,
    written,
)
from evaluator.submission.validate import ScoringModule, validated_source
from leaderboard.publication.results import scores_sha256
from leaderboard.records import Receipt
from tests.evaluator.submission.archives import folder_of
from tests.kit.refusals import refused
from tests.kit.tiers import led_by

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TEXTS = ["a red circle", "two blue squares", "no star"]
LIMITS = Limits(start_s=60.0, batch_s=60.0, job_s=300.0)
REGISTRY = load_registry()
GOOD = """
    class Scorer:
        def score(self, images, prompts):
            print("asked about", len(images))
            return [len(p) + im.getpixel((3, 3))[0] / 256 for im, p in zip(images, prompts)]
"""
Check = Callable[..., tuple[ScoringModule, DryRun]]


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[Check]:
    with ExitStack() as stack:

        def run(
            source: str, *names: str, tell: Callable[..., None] = lambda *_: None, outputs: str = ""
        ) -> tuple[ScoringModule, DryRun]:
            files = {
                "assay.toml": f'name = "mine"\n{outputs}',
                "scorer.py": textwrap.dedent(source),
            }
            folder = folder_of(tmp_path / "m", {k: v.encode() for k, v in files.items()})
            module = stack.enter_context(validated_source(folder, REGISTRY))
            machine = Machine(PlainProcess(), ("process",), LIMITS, (), tmp_path / "scratch")
            drawn = [Drawn(REGISTRY[name], None, 40) for name in names or ("demo_ts2",)]
            return module, dry_run(module, drawn, machine, tell, NOW)

        yield run


@pytest.mark.slow
def test_a_good_module_is_scored_tested_timed_and_gets_a_receipt(checked: Check) -> None:
    names, told = ("demo_ts2", "demo_evalmuse"), list[tuple[str, int]]()
    module, found = checked(GOOD, *names, tell=lambda name, at: told.append((name, at.done)))
    assert (found.failure, found.capabilities) == (None, Capability.SCORE)
    assert tuple(run.drawn.name for run in found.runs) == names
    for run in found.runs:
        questions = run.drawn.questions(None)
        by_pair = {p.pair_id: len(questions.texts[p.text_id]) for p in questions.pairs}
        ((_, scores),) = run.scores.items()
        assert {pair: int(score) for pair, score in scores.items()} == by_pair
        assert run.rows
        assert (run.drawn.name, run.drawn.n_pairs) in told
    assert told[-1][0] == names[-1]
    assert found.trust is not None and found.trust.failed == ()
    assert found.costs is not None and found.costs.small[0].pair >= 0
    assert found.start_s is not None
    assert found.peak_memory_bytes > 1 << 20
    assert "asked about" in found.log
    receipt = receipt_of(module, found, NOW)
    assert read_receipt(written(receipt)) == receipt
    assert differences(receipt, module.content.sha256, environment_versions()) == ()
    columns = {run.drawn.name: run.scored.table.overall.iloc[:, 0] for run in found.runs}
    pairs = sum(map(len, columns.values()))
    assert (receipt.benchmark, receipt.pairs) == ("+".join(names), pairs)
    assert receipt.isolation == ("process",)
    named = pd.concat([scores.add_prefix(f"{name}/") for name, scores in columns.items()])
    assert receipt.scores_sha256 == scores_sha256(named)


@pytest.mark.slow
def test_each_output_is_tried_on_its_first_benchmark_and_every_run_has_a_box(
    checked: Check,
) -> None:
    """The scores of the second depend on the batch, which is found out."""
    _, found = checked(
        """
        class Scorer:
            def score(self, images, prompts):
                return [(len(p), len(p) + len(prompts)) for p in prompts]
        """,
        "demo_ts2",
        "demo_evalmuse",
        outputs='[outputs.a]\n[outputs.b]\nbenchmarks = ["demo_evalmuse"]',
    )
    assert found.failure is None and found.costs is not None
    reports = {name: (one.benchmark, bool(one.why_not)) for name, one in found.reports.items()}
    assert reports == {"mine-a": ("demo_ts2", False), "mine-b": ("demo_evalmuse", True)}
    assert {check.name for check in found.reports["mine-b"].failed} >= {"batch", "alone"}
    assert all(run.testing_s > 0 and run.asking_s > 0 for run in found.runs)


SCORE = "class Scorer:\n  def score(self, i, p):"


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("source", "code", "line"),
    led_by(
        [
            (f"import nothing_like\n{SCORE} ...", "import_failed", 1),
            (f"{SCORE} ...\n  def __init__(self): 1 / 0", "init_failed", 3),
            (f"{SCORE}\n    return p[0].x", "scorer_raised", 3),
            (f"{SCORE} return [1.0]", "wrong_count", 2),
            (f"{SCORE} return ['a'] * len(p)", "wrong_type", 2),
            (f"{SCORE} return [1e999] * len(p)", "not_finite", 2),
        ],
        lambda case: case[1] == "scorer_raised",
    ),
)
def test_a_fault_is_told_with_its_line(source: str, code: str, line: int, checked: Check) -> None:
    _, found = checked(source)
    assert found.failure is not None and found.failure.code == code
    assert f"scorer.py:{line}" in found.failure.message
    assert (found.runs, found.costs) == ([], None)


def test_a_failure_leaves_what_was_found_before_it(checked: Check) -> None:
    _, found = checked("""
        class Scorer:
            def score(self, images, prompts):
                if images[0].width > 300:
                    print("\\x1b[31mtoo large\\x1b[0m \\u202e")
                    raise RuntimeError("\\x1b[2J too large")
                return [float(len(p)) for p in prompts]
    """)
    assert found.failure is not None and found.failure.code == "scorer_raised"
    assert "too large" in found.failure.message and "too large \n" in found.log
    assert not {"\x1b", "\u202e"} & set(found.failure.message + found.log)
    assert len(found.runs) == 1 and found.trust is not None and found.costs is None
    assert found.peak_memory_bytes > 0


# Part of a benchmark: drawn evenly, and judged by what was drawn alone --------------------------


def test_one_cluster_is_drawn_from_each_stretch() -> None:
    clusters = [f"c{i:03}" for i in range(100)]
    drawn = evenly(clusters, 10, seed=1)
    assert [int(name[1:]) // 10 for name in drawn] == list(range(10))
    assert drawn == evenly(clusters, 10, seed=1) != evenly(clusters, 10, seed=2)
    assert evenly(["a", "b"], 5, seed=1) == ("a", "b")


@pytest.mark.parametrize("name", ["demo_croc", "demo_evalmuse", "demo_gecko", "demo_ts2"])
def test_both_sides_hold_the_drawn_pairs_and_the_rest_is_not_missing(name: str) -> None:
    drawn = Drawn(REGISTRY[name], None, 60)
    questions, answers = drawn.questions(None), drawn.answers(None)
    assert sorted(pair.pair_id for pair in questions.pairs) == sorted(answers.pair_ids)
    assert 30 <= drawn.n_pairs == len(questions.pairs) <= 100 < drawn.n_pairs_whole
    assert {p.image_id for p in questions.pairs} == set(questions.images)
    scores = np.random.default_rng(1).normal(size=len(answers.pair_ids))
    table = pd.DataFrame({"mine": scores}, index=pd.Index(answers.pair_ids, name="pair_id"))
    rows = drawn.evaluate(ScoreTable(table), answers, 100).rows
    headline = [row for row in rows if drawn.card.headline.matches(row) and row.skill is None]
    assert headline and all(math.isfinite(row.value) for row in headline)
    assert all(row.n_missing == 0 for row in rows)
    whole = Drawn(REGISTRY[name], None, None)
    assert whole.answers(None).pair_ids == REGISTRY[name].answers(None).pair_ids
    assert whole.n_pairs == whole.n_pairs_whole


# What an image, a text and a pair cost, found by asking differently -----------------------------


@dataclass
class Slow:
    """A scorer whose every part takes a known time on a clock of its own."""

    capabilities: Capability = Capability.SCORE
    per_image: float = 0.0
    per_pixel: float = 0.0
    per_text: float = 0.0
    per_pair: float = 0.0
    now: float = 0.0
    pairs: int = 0
    seen: set[str] = field(default_factory=set)

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> list[float]:
        for data in images:
            with Image.open(io.BytesIO(data)) as image:
                self.now += self.per_image + self.per_pixel * image.width * image.height
        new = {text for _, text in pairs} - self.seen
        self.seen |= new
        self.now += self.per_text * len(new) + self.per_pair * len(pairs)
        self.pairs += len(pairs)
        return [0.0] * len(pairs)

    def score_rows(
        self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]], outputs: int
    ) -> list[list[float]]:
        return [[score] * outputs for score in self.score(images, pairs)]

    def score_elements(
        self, images: Sequence[bytes] | None, items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> list[float]:
        self.now += sum(0.25 for _, _, elements in items for _ in elements)
        return []

    def measured(self) -> Costs:
        pictures = []
        for shade in range(20):
            buffer = io.BytesIO()
            Image.new("RGB", (64, 48), (shade, 0, 0)).save(buffer, "PNG")
            pictures.append(buffer.getvalue())
        return measured(self, pictures, TEXTS, clock=lambda: self.now)


@pytest.mark.slow
def test_the_parts_of_a_scorer_are_told_apart() -> None:
    dual = Slow(Capability.SCORE | Capability.ENCODE, per_image=0.03, per_text=0.02, per_pair=1e-3)
    small = dual.measured().small[0]
    assert (small.image, small.text, small.pair) == pytest.approx((0.03, 0.02, 0.001))
    elements = Capability.SCORE | Capability.SCORE_ELEMENTS
    cross = Slow(elements, per_pixel=1e-5, per_pair=0.01).measured()
    small = cross.small[0]
    assert (cross.small_side, small.text) == (64, 0.0)
    assert (small.image, small.pair) == pytest.approx((1e-5 * 64 * 48, 0.01))
    assert cross.medium.image == pytest.approx(1e-5 * MEDIUM_SIDE**2)
    assert cross.large.image == pytest.approx(1e-5 * LARGE_SIDE**2)
    assert cross.large.elements == pytest.approx(0.5)


def test_a_slow_scorer_is_asked_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "LARGE_SIDE", 64)
    monkeypatch.setattr(projection, "SIDES", (64, 64))
    slow, fast = Slow(per_pair=10.0), Slow(per_pair=0.01)
    assert slow.measured().small[0].elements == fast.measured().small[0].elements == 0.0
    assert slow.pairs < 50 < fast.pairs


# How long it would take on each benchmark -------------------------------------------------------

COSTS = Costs(
    small=(Rates(0.1, 0.0, 0.0), Rates(0.2, 0.0, 0.0)),
    medium=Rates(1.0, 0.5, 0.1),
    large=Rates(2.0, 0.5, 0.2),
    small_side=128,
)
SIZE = Size((10, 10), (4, 4), (20, 20), elements=False, small=False, from_card=True)
SMALL = replace(SIZE, small=True)
PACE = projection.MeasuredTimes((0.5, 3.0), waiting=0.25, measuring={"ts2": 0.125, "croc": 2.0})
BY_ELEMENTS = replace(COSTS, medium=Rates(0.0, 0.0, 0.0, elements=0.5))


@pytest.mark.parametrize(
    ("costs", "size", "more", "span"),
    [
        (COSTS, SIZE, (), (10 + 2 + 2, 20 + 2 + 4)),
        (COSTS, SMALL, (), (1.0, 2.0)),
        (BY_ELEMENTS, replace(SIZE, elements=True), (), (10.0, 20 + 2 + 4)),
        # What reading alone takes where a scorer is faster; ends are put in order.
        (replace(COSTS, reading=(20.0, 30.0)), SIZE, (), (10 * 20.0 / 2, 26 + 10 * 30.0)),
        (replace(COSTS, large=Rates(0.1, 0.0, 0.0)), SIZE, (), (1.0, 14.0)),
        # Scorer, waiting and measures one after the other.
        (COSTS, SIZE, (PACE, "ts2"), (7.0, 78 + 2.5 + 2.5)),
        (COSTS, SIZE, (PACE, "never asked"), (7.0, 78 + 2.5 + 40)),
        (COSTS, SIZE, (projection.pace_of(COSTS, []),), (14.0, 26.0)),
    ],
)
def test_each_image_text_and_pair_is_paid_once(
    costs: Costs, size: Size, more: tuple[Any, ...], span: tuple[float, float]
) -> None:
    assert projection.span_s(costs, size, *more) == pytest.approx(span)


@pytest.mark.parametrize("scorer_s", [0.01, 1.5, 400.0])
@pytest.mark.parametrize("waited_s", [0.0, 50.0])
@pytest.mark.parametrize("size", [SIZE, SMALL])
def test_what_a_check_took_it_expects(scorer_s: float, waited_s: float, size: Size) -> None:
    one = projection.Ran("ts2", size, scorer_s, scorer_s + waited_s, 7.0)
    pace = projection.pace_of(COSTS, [projection.Ran("croc", SMALL, 1.2, 1.3, 0.1), one])
    low, high = projection.span_s(COSTS, size, pace, "ts2")
    assert low - 1e-9 <= one.scorer_s
    assert one.asking_s + one.measuring_s <= high + 1e-9


def test_trust_checks_are_those_seen_or_as_long_as_larger_pictures_make_them() -> None:
    assert projection.trust_span_s(COSTS, 3.0, small=True) == (3.0, 3.0)
    most = 324 * 2.0 + 324 * 0.5 + 1020 * 0.2
    assert projection.trust_span_s(COSTS, 3.0, small=False) == pytest.approx((3.0, most))


def test_sizes_are_counted_where_the_data_are_and_read_from_the_card_elsewhere() -> None:
    here, card, bounds = (
        projection.size_of(REGISTRY[name], None) for name in ("demo_croc", "croc_hum", "evalmuse")
    )
    assert here is not None and card is not None and bounds is not None
    assert (here.images, here.texts, here.pairs) == ((384, 384), (140, 140), (768, 768))
    assert (here.small, here.from_card) == (True, False)
    counts = REGISTRY["croc_hum"].card.counts
    assert (card.images, card.pairs) == ((counts["images"],) * 2, (2 * counts["images"],) * 2)
    assert card.texts == (2 * counts["prompt pairs"],) * 2
    assert bounds.images[0] < bounds.images[1] and bounds.texts == (1, bounds.images[1])


def test_every_benchmark_has_a_line_and_none_is_guessed() -> None:
    limits = Limits(job_s=61.0)
    lines = projection.projections(
        REGISTRY, None, COSTS, once_s=3.0, limits=limits, wanted=["demo_ts2"]
    )
    found = {one.benchmark: one for one in lines}
    assert set(found) == set(REGISTRY)
    unknown, demo, large = (found[name] for name in ("croc_syn", "demo_ts2", "croc_hum"))
    assert (unknown.size, unknown.low_s, unknown.fits) == (None, None, None)
    assert demo.low_s == pytest.approx(29.5)
    assert (demo.fits, demo.wanted) == ("perhaps", True)
    assert (large.fits, large.wanted) == ("no", False)
    assert projection.fits_into(1.0, 5.0, 10.0) == "yes"


# Receipts: strict to read, and compared in words ------------------------------------------------


def receipt(**changes: Any) -> Receipt:
    values: dict[str, Any] = {
        "content_sha256": "a" * 64,
        "versions": {"python": "3.11.9", "torch": "2.15.0"},
        "isolation": ("no network", "read-only files"),
        "benchmark": "demo_croc",
        "pairs": 200,
        "scores_sha256": "b" * 64,
        "checked_at": NOW,
    }
    return Receipt(**{**values, **changes})


def altered(**changes: Any) -> bytes:
    return json.dumps({**json.loads(written(receipt())), **changes}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"not json", b"[]", b"\xff\xfe", b"[" * 5000, b"{}", altered() + b" " * MAX_BYTES,
        altered(more=1), altered(pairs="200"), altered(schema_version=2), altered(pairs=-1),
        altered(content_sha256="A" * 64), altered(versions={"torch": "2\n3"}),
        altered(versions={"<b>": "1"}), altered(versions={"\x1b[2Jtorch": "1"}),
        altered(versions={f"p{i}": "1" for i in range(201)}), altered(benchmark="=1+1"),
        altered(isolation=["\u202egnp.exe"]), altered(isolation=["\x1b[31mred"]),
    ],
)  # fmt: skip
def test_what_is_no_receipt_is_refused_and_not_echoed_raw(content: bytes) -> None:
    with refused("bad_receipt") as caught:
        read_receipt(content)
    assert "\x1b" not in str(caught.value)


def test_a_receipt_is_compared_with_the_content_and_the_environment() -> None:
    one = receipt(versions={"python": "3.11.9", "torch": "2.15.0", "timm": "1.0"})
    with refused("receipt_mismatch", "aaaaaaaaaaaa", "check"):
        differences(one, "c" * 64, {})
    ours = {"python": "3.11.9", "torch": "2.16.0", "pillow": "12.0"}
    pillow, timm, torch = differences(one, "a" * 64, ours)
    assert "pillow 12.0" in pillow and "timm 1.0" in timm
    assert "torch 2.15.0" in torch and "2.16.0" in torch
    same = receipt(versions=environment_versions())
    assert read_receipt(written(same)) == same
    assert differences(same, "a" * 64, environment_versions()) == ()
    many = receipt(versions={f"p{i:02}": "1" for i in range(40)})
    *_, last = said = differences(many, "a" * 64, {})
    assert len(said) == 13 and "28" in last


def test_versions_are_those_that_run() -> None:
    found = environment_versions()
    assert found["numpy"] == np.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["assay"]
