"""Embeddings on disk: the same bits come back, from many writers, and damage costs no run."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluator.scorers.embeddings import (
    About,
    EmbeddingCache,
    digest_of_text,
    trim,
)
from tests.evaluator.scorers.common import refusal

ME = About("a" * 64, "pil, 224 pixels", "clip")
OTHER = About("b" * 64, "pil, 224 pixels", "siglip")


def digest(number: int) -> bytes:
    return hashlib.sha256(f"image {number}".encode()).digest()


def vector(number: int) -> NDArray[np.float32]:
    return np.random.default_rng(number).normal(size=6).astype(np.float32)


def filled(folder: Path, numbers: range, about: About = ME) -> None:
    with EmbeddingCache(folder, about) as cache:
        for number in numbers:
            cache.add("image", digest(number), vector(number))


def n_found(cache: EmbeddingCache) -> int:
    return sum(cache.find("image", digest(number)) is not None for number in range(300))


def packs(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


def test_a_row_comes_back_bit_for_bit_in_this_run_and_the_next(tmp_path: Path) -> None:
    remarks = (("image_rotated", "It was turned."),)
    with EmbeddingCache(tmp_path, ME) as cache:
        cache.add("image", digest(1), vector(1), remarks)
        cache.add("text", digest_of_text("a cup"), vector(2))
        now = cache.find("image", digest(1))
    then = EmbeddingCache(tmp_path, ME).find("image", digest(1))
    text = EmbeddingCache(tmp_path, ME).find("text", digest_of_text("a cup"))
    for row in (now, then):
        assert row is not None
        assert row.remarks == remarks
        assert row.vector.tobytes() == vector(1).tobytes()
    assert text is not None
    assert text.vector.tobytes() == vector(2).tobytes()


def test_what_was_not_kept_is_not_found(tmp_path: Path) -> None:
    filled(tmp_path, range(50))
    cache = EmbeddingCache(tmp_path, ME)
    assert n_found(cache) == 50
    assert cache.find("image", digest(50)) is None
    assert cache.find("text", digest(1)) is None
    assert cache.find("image", bytes(32)) is None
    assert cache.find("image", b"\xff" * 32) is None


def test_digests_that_end_in_zeros_are_told_apart(tmp_path: Path) -> None:
    keys = [bytes([7] * n + [0] * (32 - n)) for n in range(33)]
    with EmbeddingCache(tmp_path, ME) as cache:
        for number, key in enumerate(keys):
            cache.add("image", key, vector(number))
    again = EmbeddingCache(tmp_path, ME)
    for number, key in enumerate(keys):
        row = again.find("image", key)
        assert row is not None
        assert row.vector.tobytes() == vector(number).tobytes()


def test_another_scorer_or_preparation_has_rows_of_its_own(tmp_path: Path) -> None:
    filled(tmp_path, range(3))
    assert n_found(EmbeddingCache(tmp_path, OTHER)) == 0
    assert n_found(EmbeddingCache(tmp_path, About(ME.fingerprint, "torchvision", "clip"))) == 0


def test_a_few_packs_are_written_not_one_file_per_image(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ME, rows_per_pack=100) as cache:
        for number in range(250):
            cache.add("image", digest(number), vector(number))
            cache.flush_if_due()
    assert len(packs(tmp_path)) == 3
    assert n_found(EmbeddingCache(tmp_path, ME)) == 250


def test_rows_do_not_wait_for_long(tmp_path: Path) -> None:
    times: Iterator[float] = iter([0.0, 5.0, 11.0, 11.0])
    cache = EmbeddingCache(tmp_path, ME, every_s=10, clock=lambda: next(times))
    cache.add("image", digest(1), vector(1))
    cache.flush_if_due()
    assert not packs(tmp_path)
    cache.flush_if_due()
    assert len(packs(tmp_path)) == 1


def _write(folder: str, first: int) -> None:
    filled(Path(folder), range(first, first + 30))


def test_many_processes_write_to_one_folder(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("fork")) as pool:
        list(pool.map(_write, [str(tmp_path)] * 6, [0, 20, 40, 0, 60, 80]))
    cache = EmbeddingCache(tmp_path, ME)
    for number in range(110):
        row = cache.find("image", digest(number))
        assert row is not None
        assert row.vector.tobytes() == vector(number).tobytes()
    assert len(packs(tmp_path)) == 5, "equal packs are one file"


@pytest.mark.parametrize("damage", ["cut off", "altered", "not a pack"])
def test_a_damaged_pack_is_removed_and_the_others_are_used(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path, range(10))
    good = packs(tmp_path)[0]
    filled(tmp_path, range(10, 20))
    bad = next(path for path in packs(tmp_path) if path != good)
    data = bytearray(bad.read_bytes())
    if damage == "cut off":
        bad.write_bytes(data[:-7])
    elif damage == "altered":
        data[-3] ^= 1
        bad.write_bytes(data)
    else:
        bad.unlink()
        bad = bad.with_name(f"{hashlib.sha256(b'none').hexdigest()}.safetensors")
        bad.write_bytes(b"none")
    with caplog.at_level(logging.WARNING):
        cache = EmbeddingCache(tmp_path, ME)
    assert not bad.exists()
    assert bad.name in caplog.text
    assert n_found(cache) == 10
    assert cache.find("image", digest(3)) is not None


def test_what_a_killed_writer_left_is_cleared_after_a_day(tmp_path: Path) -> None:
    filled(tmp_path, range(2))
    folder = packs(tmp_path)[0].parent
    old, new = folder / "old.tmp", folder / "new.tmp"
    old.touch()
    new.touch()
    os.utime(old, (0, time.time() - 2 * 86400))
    EmbeddingCache(tmp_path, ME)
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize("fingerprint", ["..", "", "../../etc"])
def test_a_fingerprint_names_no_other_folder(tmp_path: Path, fingerprint: str) -> None:
    with refusal("unknown_embeddings"):
        EmbeddingCache(tmp_path, About(fingerprint, "pil, 224 pixels", "clip"))


def test_vectors_that_are_no_numbers_are_not_kept(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ME) as cache:
        cache.add("image", digest(1), np.full(6, np.nan, np.float32))
        assert cache.find("image", digest(1)) is None
    assert not packs(tmp_path)


def test_a_full_disk_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaluator.scorers.embeddings.write_pack", full)
    filled(tmp_path, range(4))
    assert "4 embeddings were not kept: [Errno 28] No space left" in caplog.text


# A folder of embeddings that is kept within a bound
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
    assert trim(tmp_path / "none", 0) == 0


def test_a_pack_that_is_opened_counts_as_used(tmp_path: Path) -> None:
    filled(tmp_path, range(8), ME)
    filled(tmp_path, range(8), OTHER)
    mine, other = aged(tmp_path, ME, 1000), aged(tmp_path, OTHER, 2000)
    with EmbeddingCache(tmp_path, ME) as cache:
        trim(tmp_path, other.stat().st_size)
        row = cache.find("image", digest(3))
        assert packs(tmp_path) == [mine]
        trim(tmp_path, 0)
        assert cache.find("image", digest(4)) is not None, "a run reads on in what was removed"
    assert row is not None
    assert row.vector.tobytes() == vector(3).tobytes()
