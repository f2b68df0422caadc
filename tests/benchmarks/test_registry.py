"""Finding benchmarks: adding a folder is all it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.registry import find, load_registry

TOY = (Path(__file__).parent / "toy.py").read_text() + "\n\nBENCHMARKS = (Toy(),)\n"


def add(root: Path, folder: str, source: str) -> None:
    (root / folder).mkdir()
    (root / folder / "protocol.py").write_text(source)


def test_a_folder_with_a_benchmark_is_registered(tmp_path: Path) -> None:
    add(tmp_path, "my_toy", TOY)
    registry = load_registry([tmp_path])
    assert registry["toy"].card.title == "Toy"
    assert set(load_registry()) == set(registry) - {"toy"}


def test_two_folders_may_not_share_a_name(tmp_path: Path) -> None:
    add(tmp_path, "one", TOY)
    add(tmp_path, "two", TOY)
    with pytest.raises(PlatformError, match="Two benchmark folders define 'toy'"):
        load_registry([tmp_path])


def test_a_folder_that_declares_nothing_is_an_error(tmp_path: Path) -> None:
    add(tmp_path, "empty", "BENCHMARKS = 3\n")
    with pytest.raises(PlatformError, match="does not define BENCHMARKS"):
        load_registry([tmp_path])


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SubmitterError, match=r"no benchmark 'nope'.*ts2"):
        find(load_registry(), "nope")


def test_every_benchmark_ranks_by_a_measure_it_explains() -> None:
    for benchmark in load_registry().values():
        assert benchmark.card.headline.measure in benchmark.card.measures
