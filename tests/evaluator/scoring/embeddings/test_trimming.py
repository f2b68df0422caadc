"""A folder of embeddings that is kept within a bound."""

from __future__ import annotations

import os
from pathlib import Path

from evaluator.scoring.embeddings.cache import EmbeddingCache
from evaluator.scoring.embeddings.packs import About
from evaluator.scoring.embeddings.trimming import trim
from tests.evaluator.scoring.embeddings.test_embedding_cache import (
    ME,
    OTHER,
    digest,
    filled,
    packs,
    vector,
)


def aged(folder: Path, about: About, seconds: int) -> Path:
    """The pack of a scorer, used so long after the beginning."""
    (pack,) = packs(folder / about.fingerprint)
    os.utime(pack, (seconds, seconds))
    return pack


def test_what_was_used_longest_ago_goes_until_the_rest_fits(tmp_path: Path) -> None:
    filled(tmp_path, range(8), ME)
    filled(tmp_path, range(8), OTHER)
    mine, other = aged(tmp_path, ME, 1000), aged(tmp_path, OTHER, 2000)
    both = mine.stat().st_size + other.stat().st_size
    assert trim(tmp_path, both) == 0
    assert trim(tmp_path, both - 1) > 0
    assert packs(tmp_path) == [other]
    assert trim(tmp_path, 0) > 0
    assert packs(tmp_path) == []


def test_a_pack_that_is_opened_counts_as_used(tmp_path: Path) -> None:
    filled(tmp_path, range(8), ME)
    filled(tmp_path, range(8), OTHER)
    mine, other = aged(tmp_path, ME, 1000), aged(tmp_path, OTHER, 2000)
    with EmbeddingCache(tmp_path, ME) as cache:
        trim(tmp_path, other.stat().st_size)
        row = cache.find("image", digest(3))
    assert packs(tmp_path) == [mine]
    assert row is not None
    assert row.vector.tobytes() == vector(3).tobytes()


def test_a_run_reads_on_in_a_pack_that_was_removed(tmp_path: Path) -> None:
    filled(tmp_path, range(8), ME)
    with EmbeddingCache(tmp_path, ME) as cache:
        trim(tmp_path, 0)
        assert cache.find("image", digest(3)) is not None


def test_a_folder_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    assert trim(tmp_path / "none", 0) == 0
