"""What every card of the registry must say, so that no board rests on a promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.published import published
from benchmarks.registry import BUILT_IN, load_registry
from benchmarks.released.bundle import is_bundled
from benchmarks.schema import Benchmark

EVERY = sorted(load_registry().items())
BENCHMARKS = [pytest.param(benchmark, id=name) for name, benchmark in EVERY]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_headline_is_a_measure_the_card_explains(benchmark: Benchmark) -> None:
    card = benchmark.card
    assert card.headline.measure in card.measures
    assert all(info.meaning and info.title for info in card.measures.values())
    assert card.revision
    assert card.citation or card.simulated


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_file_that_is_not_public_has_its_format_described(benchmark: Benchmark) -> None:
    for file in benchmark.card.files:
        if file.supplied and file.role != "images":  # of images the sentence says all
            assert "FORMAT.md" in file.supplied, file.path
            named = next(w for w in file.supplied.split() if "FORMAT.md" in w).strip("`.,;()")
            assert (BUILT_IN.parent / named).is_file(), named


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_file_from_the_web_is_at_a_fixed_commit_and_hashed(benchmark: Benchmark) -> None:
    for file in benchmark.card.files:
        assert not file.path.startswith(("/", "..")), file.path
        if file.url and not file.folder:
            assert file.sha256, file.path
            assert file.size > 0, file.path


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_without_data_the_missing_file_is_named_and_nothing_else_happens(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    needed = [file.path for file in benchmark.card.files if file.role == "answers"]
    assert benchmark.has_answers(tmp_path) is all(map(is_bundled, needed))
    assert benchmark.has_questions(tmp_path) is (not benchmark.card.files)
    assert list(tmp_path.iterdir()) == []


def test_every_printed_figure_belongs_to_a_benchmark_of_the_registry() -> None:
    named = {cell.benchmark for cell in published()} - {None}
    assert named <= {name for name, _ in EVERY}
