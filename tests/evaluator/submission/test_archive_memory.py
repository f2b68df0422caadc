"""Nothing of an archive is ever held whole; `benchmarks_perf.archives` has the large ones."""

from __future__ import annotations

import json
import random
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.submission.archives.archive import taken_in
from evaluator.submission.archives.limits import ArchiveLimits
from evaluator.submission.validate import examine_source
from tests.benchmarks.toy import Toy
from tests.evaluator.submission.archives import folder_of, refused, tarred, zipped

MIB = 1 << 20
N_DATA = 24 * MIB


@contextmanager
def within(most: int) -> Iterator[None]:
    """No more than so many bytes are held at once."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak / MIB:.1f} MiB"


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    tensor = {"dtype": "U8", "shape": [N_DATA], "data_offsets": [0, N_DATA]}
    header = json.dumps({"weight": tensor}).encode()
    data = random.Random(1).randbytes(MIB) * (N_DATA // MIB)
    return {
        "assay.toml": b'name = "m"\nweights = "w.safetensors"',
        "scorer.py": b"class Scorer: ...",
        "w.safetensors": len(header).to_bytes(8, "little") + header + data,
    }


@pytest.mark.parametrize("form", ["folder", "stored.zip", "deflated.zip", "a.tar", "a.tar.gz"])
def test_a_large_module_is_examined_hashed_and_packed_piece_by_piece(
    files: dict[str, bytes], tmp_path: Path, form: str
) -> None:
    if form == "folder":
        source = folder_of(tmp_path / form, files)
    elif form.endswith(".zip"):
        method = zipfile.ZIP_STORED if form.startswith("stored") else zipfile.ZIP_DEFLATED
        source = zipped(tmp_path / form, files, method)
    else:
        source = tarred(tmp_path / form, files)
    with within(6 * MIB):
        found = examine_source(source, {"toy": Toy()}, tmp_path / "scratch")
        assert (found.problems, found.n_bytes) == ((), sum(map(len, files.values())))
        with taken_in(source, tmp_path / "scratch") as content:
            content.pack_to(tmp_path / "packed.zip")
            assert content.sha256 == found.content_sha256


def test_an_archive_of_very_many_files_is_refused_in_little_memory(tmp_path: Path) -> None:
    limits = ArchiveLimits(entries=200)
    many = {f"d/{i}": b"" for i in range(limits.members - 1)}
    sources = [zipped(tmp_path / "a.zip", many), tarred(tmp_path / "a.tar.gz", many)]
    for source in sources:
        with within(6 * MIB):
            refused(source, "too_many_files", limits)


def test_a_bomb_in_either_form_is_refused_in_little_memory(tmp_path: Path) -> None:
    limits = ArchiveLimits(ratio_from=2 * MIB)
    zeros = {"zeros": bytes(32 * MIB)}
    sources = [
        zipped(tmp_path / "a.zip", zeros, zipfile.ZIP_DEFLATED),
        tarred(tmp_path / "a.tar.gz", zeros),
    ]
    for source in sources:
        with within(6 * MIB):
            refused(source, "bomb", limits)
