"""The demo benchmarks are data: they do not change unless their revision does.

If a test here fails after a deliberate change, give `REVISION` (benchmarks/demo/shots.py) and the
`revision` of the four cards a new number and pin the new hashes (benchmarks/demo/pinned.toml);
published rows name the revision they were computed on.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from benchmarks.__main__ import command_line
from benchmarks.demo.benchmark import BENCHMARKS
from benchmarks.demo.fingerprint import fingerprint, pinned, pinned_revision
from benchmarks.demo.png import encode
from benchmarks.demo.shots import REVISION

BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}


@cache
def found(name: str) -> Mapping[str, str]:
    benchmark = BY_NAME[name]
    return fingerprint(benchmark.questions(None), benchmark.answers(None))


def test_the_pinned_hashes_belong_to_this_revision() -> None:
    assert pinned_revision() == REVISION == "demo-1"
    assert set(pinned()) == set(BY_NAME)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_part_is_the_pinned_one(name: str) -> None:
    assert found(name) == pinned()[name]


@pytest.mark.parametrize("name", BY_NAME)
def test_nothing_is_read_from_files(name: str) -> None:
    assert not BY_NAME[name].answers(None).sources


def test_a_picture_is_the_same_file_whatever_the_compression_library() -> None:
    image = next(iter(BY_NAME["demo_ts2"].questions(None).images.values()))()
    pixels = np.asarray(Image.open(io.BytesIO(image)))
    assert encode(pixels) == image


def test_describe_shows_the_hashes_and_that_they_agree() -> None:
    done = CliRunner().invoke(command_line(), ["describe", "demo_ts2", "--facts", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["facts"]["fingerprint"]
    assert {row["part"]: row["sha256"] for row in rows} == pinned()["demo_ts2"]
    assert all(row["as pinned"] for row in rows)
