"""Cards of strangers: what no card may hold, and what is only ever data."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.families import load_card
from benchmarks.families.untrusted import FILL_IN
from benchmarks.problems import ProblemsError
from tests.benchmarks.families.cards import LABELS, RATED, with_keys, write_card
from tests.kit.refusals import refused

FILE = RATED["files"][0]


def nested(depth: int) -> dict[str, Any]:
    return {"x": nested(depth - 1)} if depth else {"x": 1}


def file(**keys: Any) -> dict[str, Any]:
    return {"files": [with_keys(FILE, keys)]}


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "escape sequence in a title": ({"title": "\x1b[2J"}, "title: '\\x1b[2J'"),
    "text that runs backwards": ({"summary": "a\u202eb"}, "summary: 'a\\u202eb'"),
    "null in a path": (file(path="a\0.csv"), "files.0.path: 'a\\x00.csv'"),
    "key with a line feed and a bell": ({"links": {"a\x07": "b"}}, "links: the key 'a\\x07'"),
    "text of a book": ({"description": "x" * 20_001}, "description: has 20,001"),
    "number that is none": ({"gold": {"mean": {"scale": [0, float("inf")]}}}, "gold.mean.scale.1"),
    "number of 400 digits": ({"gold": {"mean": {"n": 10**400}}}, "gold.mean.n: a number beyond"),
    "tables in tables": ({"links": nested(20)}, "links.x: is nested"),
    "blank to fill in": ({"licence": FILL_IN}, "licence: is to be filled in"),
    "name of 61 letters": ({"name": "a" * 61}, "name"),
    "name of a path": ({"name": "../mine"}, "name"),
    "file outside": (file(path="../../labels.csv"), "files.0.path: '../../labels.csv'"),
    "copy outside": (file(also=["/etc/passwd"]), "files.0.path: '/etc/passwd'"),
    "file on this machine": (file(supplied="", url="file:///etc/passwd"), "files.0.url"),
    "images at an address that is not declared": (
        {"images": {"source": "url", "path": "x", "name": "file:///{image}"}}, "images.path: 'x'",
    ),
    "images of a folder that is not declared": (
        {"images": {"source": "folder", "path": "/etc"}}, "images.path: '/etc'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_what_no_card_may_hold_is_refused_with_its_place(tmp_path: Path, case: str) -> None:
    keys, says = ODD[case]
    with refused("invalid_benchmark", says) as caught:
        load_card(write_card(tmp_path, with_keys(RATED, keys)))
    assert caught.value.message.isprintable()
    assert isinstance(caught.value, ProblemsError)
    located = [problem.line is not None for problem in caught.value.problems]
    assert all(located) is (case != "tables in tables")


def test_signs_of_many_scripts_are_no_control_characters(tmp_path: Path) -> None:
    title = "क्\u200dष 👩\u200d🎨️ العربية"
    card = load_card(write_card(tmp_path, with_keys(RATED, {"title": title}))).card
    assert card.title == title


# Data that are small on the disk alone.


def bomb(form: str) -> bytes:
    buffer = io.BytesIO()
    if form == "xlsx":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/worksheets/sheet1.xml", bytes(1 << 20))
    elif form == "parquet":
        table = pa.table({name: pa.array(["x"] * 9) for name in ("image", "prompt", "mean")})
        pq.write_table(table, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("form", "limit"), [("xlsx", "_LARGEST_WORKBOOK"), ("parquet", "_MOST_CELLS")]
)
def test_a_table_that_grows_when_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, limit: str
) -> None:
    monkeypatch.setattr(f"benchmarks.families.tables.{limit}", 20)
    table = with_keys(RATED["tables"][0], {"path": f"labels.{form}"})
    card = with_keys(RATED, {"tables": [table], **file(path=f"labels.{form}")})
    (tmp_path / f"labels.{form}").write_bytes(bomb(form))
    with refused("data_malformed", f"labels.{form}", "more than 20"):
        load_card(write_card(tmp_path, card)).answers(None)


def test_lists_whose_pairs_would_fill_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.families.comparisons._MOST_COMPARISONS", 5)
    columns = {"prompt": "prompt", "mean": None, "image": {"from": "image", "type": "list_str"}}
    columns["ranks"] = {"from": "ranks", "type": "list_int"}
    ranked = {
        "family": "preference", "gold": None, "preference": {"ranks": "ranks"},
        "headline": {"measure": "accuracy", "variant": "assay", "facet": None},
        "items": {"pair": None}, "tables": [with_keys(RATED["tables"][0], {"columns": columns})],
    }  # fmt: skip
    card = write_card(
        tmp_path,
        with_keys(RATED, ranked),
        labels_csv='prompt,image,ranks\na cat,"[""a"",""b"",""c"",""d""]","[1,2,3,4]"\n',
    )
    with refused("data_malformed", "ranks 6 pairs"):
        load_card(card).answers(None)


def images_of(folder: Path, images: dict[str, str], *files: dict[str, Any]) -> Any:
    keys = {"images": images, "files": [FILE, *files]}
    card = write_card(folder, with_keys(RATED, keys), labels_csv=LABELS)
    return load_card(card).questions(folder).images


def test_a_template_names_declared_files_only(tmp_path: Path) -> None:
    with refused("images_missing", "'a.png/../..'"):
        images_of(tmp_path, {"source": "folder", "path": "{image}/../.."})


def test_an_archive_of_kilobytes_that_holds_gigabytes_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.sources.archives.LARGEST_IMAGE", 1 << 20)
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.png", "b.png", "c.png"):
            archive.writestr(name, bytes(2 << 20))
    packed = {"path": "p.zip", "role": "images", "beside": True, "supplied": "By hand."}
    images = images_of(tmp_path, {"source": "zip", "path": "p.zip"}, packed)
    with refused("data_malformed", "a.png", "2,097,152 bytes"):
        images["a.png"]()
