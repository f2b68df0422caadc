"""Images of a card: in a folder, in archives, in Parquet files, and at addresses that `fetch` reads."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.families.benchmark import CardBenchmark
from benchmarks.fetch import fetch
from benchmarks.sources.parquet_images import ParquetImages
from benchmarks.sources.remote import Hub
from tests.benchmarks.families.cards import LABELS, RATED, benchmark_of, with_keys
from tests.kit.hub.server import running_hub
from tests.kit.refusals import refused

NAMES = ("a.png", "b.png", "c.png")
CONTENT = {name: f"image {name}".encode() for name in NAMES}


def board(folder: Path, images: Mapping[str, Any], *files: Mapping[str, Any]) -> CardBenchmark:
    """Three rated images, whose files lie in `folder / "data"`."""
    declared = [*RATED["files"], *files]
    return benchmark_of(
        folder, with_keys(RATED, {"images": dict(images), "files": declared}), labels_csv=LABELS
    )


def declared(path: str, **keys: Any) -> dict[str, Any]:
    found = {"path": path, "role": "images", **keys}
    return found if "url" in keys else found | {"supplied": "Ask its authors."}


def contents(one: CardBenchmark, data: Path) -> dict[str, bytes]:
    return {name: read() for name, read in one.questions(data).images.items()}


def table_file(path: Path, columns: Mapping[str, Any], row_group_size: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path, row_group_size=row_group_size)
    return path


def test_images_of_a_folder_and_of_an_archive(tmp_path: Path) -> None:
    place = tmp_path / "data" / "set"
    place.mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "data" / "set.zip", "w") as archive:
        for name, content in CONTENT.items():
            (place / f"x_{name}").write_bytes(content)
            archive.writestr(f"x_{name}", content)
    for source, path in (("folder", "set"), ("zip", "set.zip")):
        one = board(
            tmp_path / source, {"source": source, "path": path, "name": "x_{image}"},
            declared(path, folder=source == "folder"),
        )  # fmt: skip
        assert one.has_images(tmp_path / "data")
        assert not one.has_images(tmp_path)
        assert contents(one, tmp_path / "data") == CONTENT


@pytest.mark.parametrize("form", ["bytes", "struct"])
def test_images_of_a_column_are_found_by_their_names(tmp_path: Path, form: str) -> None:
    cells: Any = [CONTENT[name] for name in reversed(NAMES)]
    if form == "struct":
        cells = [{"bytes": content, "path": "somewhere.png"} for content in cells]
    columns = {"file": list(reversed(NAMES)), "picture": cells}
    table_file(tmp_path / "data" / "set.parquet", columns, row_group_size=2)
    one = board(
        tmp_path, {"source": "parquet", "path": "set.parquet", "name": "picture", "key": "file"},
        declared("set.parquet"),
    )  # fmt: skip
    assert contents(one, tmp_path / "data") == CONTENT


def pairs(folder: Path, files: Sequence[Sequence[int]], **images: Any) -> CardBenchmark:
    """Rows with two images each, in several Parquet files, which hold the images too."""
    for at, rows in enumerate(files):
        table_file(
            folder / "data" / f"rows{at}.parquet",
            {
                "prompt": [f"p{k}" for k in rows],
                "uid_0": [f"left{k}" for k in rows],
                "uid_1": [f"right{k}" for k in rows],
                "jpg_0": [f"left{k}".encode() for k in rows],
                "jpg_1": [{"bytes": f"right{k}".encode(), "path": None} for k in rows],
            },
        )
    paths = [f"rows{at}.parquet" for at in range(len(files))]
    card = with_keys(
        RATED,
        {
            "family": "preference", "kind": "preference", "gold": None,
            "headline": {"measure": "accuracy", "facet": None},
            "tables": [{
                "name": "t", "path": paths,
                "columns": {key: key for key in ("prompt", "uid_0", "uid_1")},
            }],
            "items": {"pair": "", "text": "prompt", "image": images.pop("image", "")},
            "files": [{**RATED["files"][0], "path": path, "beside": False} for path in paths],
            "preference": {"winner": "a"},
            "images": {"source": "parquet", "name": ["jpg_0", "jpg_1"], **images},
        },
    )  # fmt: skip
    return benchmark_of(folder, card)


def test_images_of_several_columns_are_found_by_their_rows(tmp_path: Path) -> None:
    one = pairs(tmp_path, [[0, 1, 2], [3, 4]], key="@row")
    assert one.has_images(tmp_path / "data")
    questions = one.questions(tmp_path / "data")
    answers: Any = one.answers(tmp_path / "data")
    found = contents(one, tmp_path / "data")
    assert len(found) == 10
    for pair in questions.pairs:
        assert found[pair.image_id].decode()[-1] == questions.texts[pair.text_id][1]
    better = [questions.pairs[line].image_id for line in answers.items.cells[::2, 2]]
    assert {found[name].decode()[:-1] for name in better} == {"left"}


def test_images_of_several_columns_are_found_by_their_names(tmp_path: Path) -> None:
    names = ["uid_0", "uid_1"]
    one = pairs(tmp_path, [[0, 1], [2]], key=names, image=names)
    found = contents(one, tmp_path / "data")
    assert found == {
        f"{side}{k}": f"{side}{k}".encode() for side in ("left", "right") for k in range(3)
    }


def test_rows_of_images_that_are_not_those_of_the_table_are_refused(tmp_path: Path) -> None:
    one = pairs(tmp_path, [[0, 1, 2]], key="@row")
    table = one.card.tables[0].model_copy(update={"where": {"prompt": ("p0", "p2")}})
    one.card = one.card.model_copy(update={"tables": (table,)})
    with refused("data_malformed", "3 rows of images for 2 rows"):
        one.questions(tmp_path / "data")


ONE = {"source": "parquet", "path": "set.parquet", "name": "picture", "key": "file"}


@pytest.mark.parametrize(
    ("columns", "code", "word"),
    [
        ({"file": ["a.png"], "picture": [b"x"]}, "images_missing", "lacks 2 of the 3"),
        ({"file": list(NAMES)}, "data_malformed", "no column picture"),
        ({"picture": [b"x"] * 3}, "data_malformed", "no column file"),
        ({"file": list(NAMES), "picture": ["x"] * 3}, "data_malformed", "string"),
        ({"file": list(NAMES), "picture": [{"path": "x"}] * 3}, "data_malformed", "struct"),
    ],
)
def test_a_table_without_the_images_is_refused(
    tmp_path: Path, columns: dict[str, Any], code: str, word: str
) -> None:
    table_file(tmp_path / "data" / "set.parquet", columns)
    one = board(tmp_path, ONE, declared("set.parquet"))
    assert one.has_images(tmp_path / "data") is (code == "images_missing")
    with refused(code, word):
        one.questions(tmp_path / "data")


def test_an_image_that_is_not_there_is_named_by_its_row(tmp_path: Path) -> None:
    cells = [{"bytes": b"x", "path": None}, {"bytes": None, "path": "b.png"}, None]
    path = table_file(tmp_path / "set.parquet", {"file": list(NAMES), "picture": cells}, 3)
    images = ParquetImages([path], ["picture"], ["file"])
    assert images.read("a.png") == b"x"
    for name, row in (("b.png", "data row 2"), ("c.png", "data row 3")):
        with refused("data_malformed", row):
            images.read(name)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    columns = {
        "file": [f"{k}" for k in range(50)],
        "picture": [bytes([k]) * 9_000 for k in range(50)],
    }
    path = table_file(tmp_path / "set.parquet", columns, 50)
    whole = path.read_bytes()
    images = ParquetImages([path], ["picture"], ["file"])
    assert images.read("49") == bytes([49]) * 9_000
    path.write_bytes(whole[:200])
    with refused("data_malformed", "cannot be read as Parquet"):
        images.read("48")
    with refused("data_malformed", "cannot be read as Parquet"):
        ParquetImages([path], ["picture"], ["file"]).read("48")
    path.write_bytes(b"\0" * 200 + whole[200:])
    with refused("data_malformed", "cannot be read as Parquet"):
        ParquetImages([path], ["picture"], ["file"]).read("3")


def test_images_are_read_from_several_threads(tmp_path: Path) -> None:
    names = [str(k) for k in range(64)]
    columns = {"file": names, "picture": [name.encode() * 1_000 for name in names]}
    images = ParquetImages([table_file(tmp_path / "s.parquet", columns, 40)], ["picture"], ["file"])
    found: dict[str, bytes] = {}

    def read(part: Sequence[str]) -> None:
        found.update({name: images.read(name) for name in part})

    assert str(images).endswith("s.parquet")
    threads = [threading.Thread(target=read, args=(names[k::4],)) for k in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {name: name.encode() * 1_000 for name in names}


def test_a_table_is_read_without_its_images(tmp_path: Path) -> None:
    one = pairs(tmp_path, [[0, 1]], key="@row")
    assert set(one.items(one.folder(tmp_path / "data")).rows) >= {"prompt", "uid_0", "uid_1"}
    assert not {"jpg_0", "jpg_1"} & set(one.items(one.folder(tmp_path / "data")).rows)


@pytest.mark.parametrize(
    ("images", "place"),
    [
        ({"source": "parquet", "path": "set.parquet", "name": ["x", "y"], "key": "z"}, "images"),
        ({"source": "zip", "path": "set.parquet", "name": ["x", "y"]}, "images"),
        ({"source": "url", "path": "set.parquet", "name": "{image}"}, "images.path"),
        ({"source": "parquet", "path": "other.parquet"}, "images.path"),
    ],
)
def test_images_that_cannot_be_found_are_refused(
    tmp_path: Path, images: dict[str, Any], place: str
) -> None:
    with refused("invalid_benchmark", place):
        board(tmp_path, images, declared("set.parquet"))


def test_images_at_an_address_are_fetched_into_their_folder(tmp_path: Path) -> None:
    where = {"source": "url", "path": "set/images", "name": "{prompt}/{image}"}
    named = declared("set/images", folder=True, url="https://pictures.example/set")
    one = board(tmp_path, where, named)
    assert one.remote_names("labels.csv", tmp_path) == ()
    names = ("a cat/a.png", "a cat/b.png", "a dog/c.png")
    assert one.remote_names("set/images", tmp_path) == names
    data = tmp_path / "data"
    with refused("images_missing"):
        one.questions(data)
    with running_hub() as hub:
        hub.web |= {f"set/{name}": CONTENT[name[-5:]] for name in names}
        # A card's addresses are https; that of the test's server is not.
        files = [
            file.model_copy(update={"url": hub.web_address("set")}) if file.url else file
            for file in one.card.files
        ]
        one.card = one.card.model_copy(update={"files": tuple(files)})
        done = fetch(one, data, Hub(hub.endpoint), sleep=lambda _: None)
    assert done.downloaded == {"set/images": sum(map(len, CONTENT.values()))}
    assert contents(one, data) == CONTENT
