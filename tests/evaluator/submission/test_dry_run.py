"""The dry run: what it finds of good modules and of bad ones, in a process of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.registry import load_registry
from evaluator.isolation.inside.frames import Capability
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.scoring.progress import Progress
from evaluator.submission.checking.drawn import Drawn
from evaluator.submission.checking.dry_run import DryRun, Machine, dry_run, receipt_of
from evaluator.submission.receipts import differences, environment_versions, read_receipt, written
from evaluator.submission.validate import ScoringModule, validated_source
from leaderboard.publication.score_hash import scores_sha256

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LIMITS = Limits(start_s=60.0, batch_s=60.0, job_s=300.0)
GOOD = """
    class Scorer:
        def score(self, images, prompts):
            print("asked about", len(images))
            return [len(p) + im.getpixel((3, 3))[0] / 256 for im, p in zip(images, prompts)]
"""

Check = Callable[..., DryRun]


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Callable[[str], ScoringModule]]:
    contexts = []

    def made(source: str) -> ScoringModule:
        folder = tmp_path / "module"
        folder.mkdir()
        (folder / "assay.toml").write_text('name = "mine"\n')
        (folder / "scorer.py").write_text(textwrap.dedent(source))
        context = validated_source(folder, load_registry())
        contexts.append(context)
        return context.__enter__()

    yield made
    for context in contexts:
        context.__exit__(None, None, None)


@pytest.fixture
def checked(module: Callable[[str], ScoringModule], tmp_path: Path) -> Check:
    def run(
        source: str, *names: str, tell: Callable[[str, Progress], None] | None = None
    ) -> DryRun:
        machine = Machine(PlainProcess(), ("process",), LIMITS, (), tmp_path / "scratch")
        registry = load_registry()
        drawn = [Drawn(registry[name], None, 40) for name in names or ("demo_ts2",)]
        return dry_run(module(source), drawn, machine, tell or (lambda _name, _at: None), NOW)

    return run


@pytest.mark.slow
def test_a_good_module_is_scored_tested_measured_and_timed(checked: Check) -> None:
    told: list[tuple[str, int]] = []
    found = checked(
        GOOD, "demo_ts2", "demo_evalmuse", tell=lambda name, at: told.append((name, at.done))
    )
    assert found.failure is None
    assert found.capabilities == Capability.SCORE
    assert [run.drawn.name for run in found.runs] == ["demo_ts2", "demo_evalmuse"]
    assert found.pairs == sum(len(run.scores) for run in found.runs)
    for run in found.runs:
        texts = run.drawn.questions(None).texts
        by_pair = {p.pair_id: len(texts[p.text_id]) for p in run.drawn.questions(None).pairs}
        assert {pair: int(score) for pair, score in run.scores.items()} == by_pair
        assert run.rows
        assert told[-1][0] == "demo_evalmuse"
        assert (run.drawn.name, run.drawn.n_pairs) in told
    assert found.trust is not None
    assert found.trust.failed == ()
    assert found.costs is not None
    assert found.costs.small[0].pair >= 0
    assert found.start_s is not None
    assert found.peak_memory_bytes > 1 << 20
    assert "asked about" in found.log


@pytest.mark.slow
def test_its_receipt_is_of_its_content_scores_and_environment(
    module: Callable[[str], ScoringModule], tmp_path: Path
) -> None:
    one = module(GOOD)
    machine = Machine(PlainProcess(), ("process",), LIMITS, (), tmp_path / "scratch")
    drawn = [Drawn(load_registry()[name], None, 20) for name in ("demo_croc", "demo_ts2")]
    found = dry_run(one, drawn, machine, lambda _name, _at: None, NOW)
    receipt = receipt_of(one, found, NOW)
    assert read_receipt(written(receipt)) == receipt
    assert differences(receipt, one.content.sha256, environment_versions()) == ()
    assert (receipt.benchmark, receipt.pairs) == ("demo_croc+demo_ts2", found.pairs)
    assert receipt.isolation == ("process",)
    named = pd.concat([run.scores.add_prefix(f"{run.drawn.name}/") for run in found.runs])
    assert receipt.scores_sha256 == scores_sha256(named)


@pytest.mark.slow
def test_scores_that_depend_on_the_batch_are_found_out(checked: Check) -> None:
    found = checked("""
        class Scorer:
            def score(self, images, prompts):
                return [len(p) + len(prompts) for p in prompts]
    """)
    assert found.failure is None
    assert found.trust is not None
    assert {check.name for check in found.trust.failed} >= {"batch", "alone"}


@pytest.mark.parametrize(
    ("source", "code", "place"),
    [
        (
            "import nothing_like_this\nclass Scorer:\n  def score(self, i, p): ...",
            "import_failed",
            1,
        ),
        (
            "class Scorer:\n  def __init__(self): 1 / 0\n  def score(self, i, p): ...",
            "init_failed",
            2,
        ),
        ("class Scorer:\n  def score(self, i, p):\n    return p[0].x", "scorer_raised", 3),
        ("class Scorer:\n  def score(self, i, p): return [1.0]", "wrong_count", 2),
        ("class Scorer:\n  def score(self, i, p): return ['a'] * len(p)", "wrong_type", 2),
        ("class Scorer:\n  def score(self, i, p): return [1e999] * len(p)", "not_finite", 2),
    ],
)
def test_what_is_wrong_with_a_module_is_told_with_its_line(
    source: str, code: str, place: int, checked: Check
) -> None:
    found = checked(source)
    assert found.failure is not None
    assert found.failure.code == code
    assert f"scorer.py:{place}" in found.failure.message
    assert found.runs == []
    assert found.costs is None


def test_a_failure_leaves_what_was_found_before_it(checked: Check) -> None:
    found = checked("""
        class Scorer:
            def score(self, images, prompts):
                if images[0].width > 300:
                    print("\\x1b[31mtoo large\\x1b[0m \\u202e")
                    raise RuntimeError("\\x1b[2J too large a picture")
                return [float(len(p)) for p in prompts]
    """)
    assert found.failure is not None
    assert found.failure.code == "scorer_raised"
    assert "too large a picture" in found.failure.message
    assert "too large \n" in found.log
    assert not {"\x1b", "\u202e"} & set(found.failure.message + found.log)
    assert len(found.runs) == 1
    assert found.trust is not None
    assert found.costs is None
    assert found.peak_memory_bytes > 0
