"""The bundled demo split is data: it does not change unless its revision does.

After a deliberate change, give `revision` in benchmarks/demo/pinned.toml and in the four cards a new
number, run `python -m tools.demo_split`, and pin the new hashes; published rows name the revision.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from benchmarks.__main__ import command_line
from benchmarks.demo import load
from benchmarks.demo.fingerprint import fingerprint, pinned, pinned_revision
from benchmarks.demo.protocol import BENCHMARKS
from benchmarks.errors import SubmitterError

BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of one benchmark in another place, where they may be spoilt."""
    shutil.copytree(load.FOLDER / "ts2", tmp_path / "ts2")
    monkeypatch.setattr(load, "FOLDER", tmp_path)
    load._checked_bytes.cache_clear()
    yield tmp_path
    load._checked_bytes.cache_clear()


def test_the_pinned_hashes_belong_to_this_revision() -> None:
    assert pinned_revision() == "demo-1"
    assert set(pinned()) == set(BY_NAME)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_part_is_the_pinned_one(name: str) -> None:
    answers = BY_NAME[name].answers(None)
    assert fingerprint(BY_NAME[name].questions(None), answers) == pinned()[name]
    assert not answers.sources  # nothing of a data folder


def test_describe_shows_the_hashes_and_that_they_agree() -> None:
    done = CliRunner().invoke(command_line(), ["describe", "demo_ts2", "--facts", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["facts"]["fingerprint"]
    assert {row["part"]: row["sha256"] for row in rows} == pinned()["demo_ts2"]
    assert all(row["as pinned"] for row in rows)


def test_every_file_has_a_hash_and_every_hash_a_file() -> None:
    there = {str(path.relative_to(load.FOLDER)) for path in load.FOLDER.rglob("*.parquet")}
    assert there == set(load.hashes())


@pytest.mark.parametrize("family", ["croc", "ts2", "evalmuse", "gecko", "models"])
def test_pictures_are_plain_png_files_of_one_size(family: str) -> None:
    for encode in list(load.pictures(family).values())[:3]:
        picture = Image.open(io.BytesIO(encode()))
        assert (picture.format, picture.size, picture.info) == ("PNG", (128, 128), {})


@pytest.mark.parametrize("file", ["nodes", "pictures", "texts", "question_pairs"])
@pytest.mark.parametrize(("content", "code"), [(None, "data_missing"), (b"PAR1", "data_malformed")])
def test_a_file_that_is_gone_or_changed_is_named(
    file: str, content: bytes | None, code: str, copied: Path
) -> None:
    path = copied / "ts2" / f"{file}.parquet"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SubmitterError) as caught:
        load.ts2_answers(), load.questions("ts2")
    assert caught.value.code == code
    assert f"benchmarks/demo/files/ts2/{file}.parquet" in str(caught.value)
    assert str(copied) not in str(caught.value)
