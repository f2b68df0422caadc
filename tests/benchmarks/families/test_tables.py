"""Tables of a card: seven formats, what a column is made of, rows that are kept, joins, and errors."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.families.tables import JoinedTable, filled, read_tables
from tests.benchmarks.families.cards import RATED, benchmark_of, with_keys
from tests.kit.refusals import refused

ROWS = [
    {"image": "a_1.png", "prompt": "a cat", "mean": 1.5, "yes": "y", "tags": ["x", "y"],
     "told": '{"tags": ["u"]}'},
    {"image": "b_22.png", "prompt": "a dog", "mean": 4.0, "yes": "n", "tags": ["x"],
     "told": '{"tags": ["v"]}'},
]  # fmt: skip


def parquet(rows: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer)
    return buffer.getvalue()


FLAT = [{k: v for k, v in row.items() if k != "tags"} for row in ROWS]
FORMATS: dict[str, bytes] = {
    "csv": pd.DataFrame(FLAT).to_csv(index=False).encode(),
    "tsv": pd.DataFrame(FLAT).to_csv(index=False, sep="\t").encode(),
    "json": json.dumps(ROWS).encode(),
    "jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    "parquet": parquet(ROWS),
}


def read(
    folder: Path, content: bytes, columns: dict[str, Any], form: str = "csv", **keys: Any
) -> JoinedTable:
    """The table `t` of a card whose only file has this content."""
    name = f"labels.{form}"
    table = {"name": "t", "path": name, "columns": {**RATED["tables"][0]["columns"], **columns}}
    file = {**RATED["files"][0], "path": name}
    card = with_keys(RATED, {"tables": [{**table, **keys}], "files": [file]})
    benchmark = benchmark_of(folder, card, **{f"labels_{form}": content})
    return read_tables(benchmark.folder(None), benchmark.card)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_columns(tmp_path: Path, form: str) -> None:
    found = read(tmp_path, FORMATS[form], {}, form).rows
    assert found["image"].tolist() == ["a_1.png", "b_22.png"]
    assert found["mean"].tolist() == [1.5, 4.0]


CELLS: dict[str, tuple[Any, list[Any]]] = {
    "column": ("image", ["a_1.png", "b_22.png"]),
    "constant": ({"const": "v1"}, ["v1", "v1"]),
    "template": ({"template": "{prompt}/{image}"}, ["a cat/a_1.png", "a dog/b_22.png"]),
    "cut out": ({"from": "image", "regex": r"_(\d+)\.png$", "type": "int"}, [1, 22]),
    "mapped": ({"from": "yes", "map": {"y": True, "n": False}, "type": "bool"}, [True, False]),
    "cut, then mapped": ({"from": "image", "regex": "^(.)", "map": {"a": 1, "b": 2}}, ["1", "2"]),
    "row": ({"template": "{@row:03d}"}, ["000", "001"]),
    "file": ("@file", ["labels", "labels"]),
    "list": ({"from": "tags", "type": "list_str"}, [["x", "y"], ["x"]]),
    "list, each entry cut and mapped": (
        {"from": "tags", "regex": "^(.)", "map": {"x": 1, "y": 2}, "type": "list_int"},
        [[1, 2], [1]],
    ),
    "entry of a list": ("tags[0]", ["x", "x"]),
    "entry of a cell of JSON": ("told.tags[0]", ["u", "v"]),
    "cell that is no JSON": ({"from": "prompt.tags", "optional": True}, [None, None]),
    "absent": ({"from": "nothing", "optional": True}, [None, None]),
    "entry that is not everywhere": ({"from": "tags[1]", "optional": True}, ["y", None]),
}


@pytest.mark.parametrize("case", CELLS)
def test_a_column_is_made_of(tmp_path: Path, case: str) -> None:
    column, expected = CELLS[case]
    found = read(tmp_path, FORMATS["json"], {"made": column}, "json").rows["made"]
    assert found.astype(object).where(found.notna(), None).tolist() == expected


def test_text_is_a_row_for_each_line_that_is_not_blank(tmp_path: Path) -> None:
    made = {"image": {"template": "{@row}"}, "mean": {"const": 1}}
    columns = {**made, "prompt": "@value", "text": "@value"}
    found = read(tmp_path, b"a cat\r\n\r\n a dog", columns, "txt").rows
    assert found["prompt"].tolist() == ["a cat", "a dog"]
    assert found["image"].tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("quotes", "expected"), [(True, "A CUP on a wall"), (False, '"A CUP" on a wall')]
)
def test_quotes_of_cells_are_taken_off_or_kept(
    tmp_path: Path, expected: str, *, quotes: bool
) -> None:
    content = b'image\tprompt\tmean\na\t"A CUP" on a wall\t1\n'
    assert read(tmp_path, content, {}, "tsv", quotes=quotes).rows["prompt"].tolist() == [expected]


WRONG: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "no such column": ("image,prompt\na,b\n", {}, ("mean", "image, prompt")),
    "no number": ("image,prompt,mean\na,b,good\n", {}, ("mean", "'good'", "data row 1")),
    "infinite": ("image,prompt,mean\na,b,inf\n", {}, ("mean", "'inf'")),
    "empty": ("image,prompt,mean\na,b,1\nc,,2\n", {}, ("prompt", "1 cells are empty", "data row 2")),
    "not whole": (
        "image,prompt,mean\na,b,1.5\n", {"n": {"from": "mean", "type": "int"}}, ("n:", "'1.5'"),
    ),
    "outside the map": (
        "image,prompt,mean\na,b,1\n", {"n": {"from": "image", "map": {"z": 1}}}, ("'a'", "one of z"),
    ),
    "not cut out": (
        "image,prompt,mean\na,b,1\n", {"n": {"from": "image", "regex": "(x+)"}}, ("'a'", "(x+)"),
    ),
    "text for a number": (
        "image,prompt,mean\na,b,1\n", {"n": {"template": "{image:03d}"}}, ("no number", "image:03d"),
    ),
    "no list": (
        "image,prompt,mean\na,b,1\n", {"n": {"from": "image", "type": "list_str"}}, ("a list", "'a'"),
    ),
    "neither true nor false": (
        "image,prompt,mean\na,b,1\n", {"n": {"from": "image", "type": "bool"}}, ("true or false",),
    ),
    "several at once": (
        "image,prompt,mean\na,,x\n", {}, ("column prompt", "column mean"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_cells_that_do_not_fit_are_named_by_file_row_and_column(tmp_path: Path, case: str) -> None:
    content, columns, says = WRONG[case]
    with refused("data_malformed", "labels.csv", *says):
        read(tmp_path, content.encode(), columns)


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("json", b"{"), ("json", b'{"a": 1}'), ("jsonl", b"{}\n{"), ("parquet", b"PAR1"),
        ("xlsx", b"PK"), ("csv", b"\xff\xfe"), ("txt", b"\xff"), ("yaml", b"a: 1"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused(tmp_path: Path, form: str, content: bytes) -> None:
    with refused("data_malformed", f"labels.{form}"):
        read(tmp_path, content, {}, form)


NESTED = {"models": {"m1": {"r": [1, 2]}, "m2": {"r": [3]}}, "prompt": "p"}
RECORDS: dict[str, tuple[Any, str, dict[str, Any], list[list[Any]]]] = {
    "list below a key": ({"pairs": [{"i": "a"}, {"i": "b"}]}, "pairs[*]", {}, [["a"], ["b"]]),
    "keys of objects": (
        {"00": NESTED}, "*.models.*", {"k": "@1", "m": "@2"},
        [["00", "m1"], ["00", "m2"]],
    ),
    "keys with lists": (
        {"x": [5, 6]}, "*[*]", {"k": "@1", "v": "@value", "n": "@index"},
        [["x", "5", "0"], ["x", "6", "1"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RECORDS)
def test_records_lie_where_the_card_says(tmp_path: Path, case: str) -> None:
    content, places, columns, expected = RECORDS[case]
    columns = columns or {"i": "i"}
    fixed = {name: {"const": "-"} for name in ("image", "prompt", "text")} | {
        "mean": {"const": 1.0}
    }
    found = read(
        tmp_path, json.dumps(content).encode(), {**fixed, **columns}, "json", records=places
    )
    assert found.rows[list(columns)].to_numpy().tolist() == expected


@pytest.mark.parametrize(
    ("content", "keys", "says"),
    [
        ({"a": 5}, {"records": "a.b[*]"}, "no object at"),
        ({"a": {}}, {"records": "a.b[*]"}, "no 'b'"),
        (ROWS, {"explode": "prompt"}, "no list in column prompt"),
    ],
)
def test_records_that_are_not_where_the_card_says_are_refused(
    tmp_path: Path, content: Any, keys: dict[str, Any], says: str
) -> None:
    with refused("data_malformed", "labels.json", says):
        read(tmp_path, json.dumps(content).encode(), {}, "json", **keys)


def test_lists_become_rows_and_rows_that_are_not_wanted_are_counted(tmp_path: Path) -> None:
    found = read(
        tmp_path, FORMATS["json"], {"tag": "tags", "n": {"from": "@index", "type": "int"}}, "json",
        explode="tags", where={"yes": ["y"]},
    )  # fmt: skip
    assert found.rows[["tag", "n"]].to_numpy().tolist() == [["x", 0], ["y", 1]]
    assert found.dropped == {"t": 1}


# Joins

TAGS = {"name": "tags", "path": "tags.csv", "columns": {"image": "image", "tag": "tag"}}


def joined(folder: Path, tags: str, **keys: Any) -> pd.DataFrame:
    """Labels of three images with the tags of another file."""
    file = {**RATED["files"][0], "path": "tags.csv"}
    card = with_keys(
        RATED,
        {
            "tables": [RATED["tables"][0], TAGS],
            "files": [RATED["files"][0], file],
            "joins": [{"left": "t", "right": "tags", "on": "image", **keys}],
        },
    )
    labels = "image,prompt,mean\na,p,1\nb,p,2\n"
    benchmark = benchmark_of(folder, card, labels_csv=labels, tags_csv=f"image,tag\n{tags}")
    return read_tables(benchmark.folder(None), benchmark.card).rows


def test_columns_are_joined_one_to_one_or_as_lists(tmp_path: Path) -> None:
    assert joined(tmp_path / "1", "b,x\na,y\n")["tag"].tolist() == ["y", "x"]
    found = joined(tmp_path / "2", "b,x\nb,y\n", how="many")["tag"]
    assert found.tolist() == [[], ["x", "y"]]
    found = joined(tmp_path / "3", "b,x\nc,y\n", how="many", unmatched="ignore")["tag"]
    assert found.tolist() == [[], ["x"]]
    found = joined(tmp_path / "4", "b,x\na,y\n", on={"image": "image"})["tag"]
    assert found.tolist() == ["y", "x"]


def test_what_is_joined_may_have_been_joined_itself(tmp_path: Path) -> None:
    kinds = {"name": "kinds", "path": "kinds.csv", "columns": {"tag": "tag", "kind": "kind"}}
    files = [RATED["files"][0] | {"path": f"{name}.csv"} for name in ("labels", "tags", "kinds")]
    joins = [
        {"left": "tags", "right": "kinds", "on": "tag"},
        {"left": "t", "right": "tags", "on": "image"},
    ]
    tables = [RATED["tables"][0], TAGS, kinds]
    card = with_keys(RATED, {"tables": tables, "files": files, "joins": joins})
    benchmark = benchmark_of(
        tmp_path, card, labels_csv="image,prompt,mean\na,p,1\nb,p,2\n",
        tags_csv="image,tag\nb,x\na,y\n", kinds_csv="tag,kind\nx,7\ny,8\n",
    )  # fmt: skip
    found = read_tables(benchmark.folder(None), benchmark.card).rows
    assert found["kind"].tolist() == ["8", "7"]


@pytest.mark.parametrize(
    ("tags", "says"),
    [("a,x\nb,y\nz,w\n", "'z'"), ("a,x\n", "'b'"), ("a,x\na,y\nb,z\n", "twice")],
)
def test_a_join_that_does_not_fit_names_the_row(tmp_path: Path, tags: str, says: str) -> None:
    with refused("data_malformed", "tags.csv", says):
        joined(tmp_path, tags)


def test_a_join_on_a_column_that_one_table_lacks_is_refused(tmp_path: Path) -> None:
    with refused("data_malformed", "tags.csv", "no such column"):
        joined(tmp_path, "a,x\nb,y\n", on="prompt")


def test_a_template_takes_names_and_numbers_and_nothing_else() -> None:
    assert filled("{a}/{b:04d}.png", {"a": "x", "b": "7"}) == "x/0007.png"
    assert filled("{a.__class__}", {"a.__class__": "text"}) == "text"
    for template in ("{missing}", "{a.__class__}", "{a!r}", "{a[0]}"):
        with pytest.raises(KeyError):
            filled(template, {"a": "x"})
