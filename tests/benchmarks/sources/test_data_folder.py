"""What a folder of data says of counts, rows and how to get what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.sources.folder import DataFile, DataFolder, data_row, folder_images
from benchmarks.sources.output import check_output, write_whole
from tests.benchmarks.refusals import refused

FILE = DataFile(path="toy/table.csv", role="answers", supplied="Ask the authors.")


def folder(root: Path, **counts: int) -> DataFolder:
    return DataFolder(root, "toy", [FILE], counts)


def test_rows_are_counted_after_the_header_whatever_the_lines_are(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / FILE.path).write_text('name\n\na\n"two\nlines"\n\nwrong\n')
    table = folder(tmp_path).read_table(FILE.path, ["name"])
    assert data_row(table.index[table["name"] == "wrong"][0]) == "data row 3"


@pytest.mark.parametrize("found", [31_999, 33_501])
def test_a_count_out_of_its_bounds_is_refused(tmp_path: Path, found: int) -> None:
    bounds = {"images, at least": 32_000, "images, at most": 33_500}
    for fits in (32_000, 32_717, 33_500):
        folder(tmp_path, **bounds).check_range(FILE.path, "images", fits)
    with pytest.raises(SubmitterError, match=f"{found} images; expected about 32000 to 33500"):
        folder(tmp_path, **bounds).check_range(FILE.path, "images", found)
    folder(tmp_path).check_range(FILE.path, "images", found)


def test_images_of_an_operator_are_asked_of_the_operator(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError) as caught:
        folder_images("toy", tmp_path, {"a": "a.png"}, remedy=folder(tmp_path).remedy(FILE.path))
    assert (caught.value.code, caught.value.hint) == ("images_missing", "Ask the authors.")
    with pytest.raises(SubmitterError, match="fetch toy` downloads"):
        folder_images("toy", tmp_path, {"a": "a.png"})


def test_no_declared_file_of_an_operator_is_said_to_be_downloaded(tmp_path: Path) -> None:
    for benchmark in load_registry().values():
        data = benchmark.folder(tmp_path)
        for file in benchmark.card.files:
            assert ("benchmarks fetch" in data.remedy(file.path)) == (not file.supplied)


def test_a_file_that_cannot_be_written_leaves_nothing_and_keeps_what_was_there(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("before")

    def fail(place: Path) -> None:
        place.write_text("ha")
        raise OSError(28, "No space left on device")

    with refused("cannot_write"):
        write_whole(out, fail)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out.csv", "before")]
    with pytest.raises(SubmitterError, match="is a folder"):
        check_output(tmp_path, force=True)
    with pytest.raises(SubmitterError, match="cannot be written"):
        write_whole(tmp_path / "none" / "x.csv", lambda place: place.write_text("x"))
