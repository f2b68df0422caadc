"""Pools of prompts: what is read, what is left out, and everything that is wrong at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.problems import problems_of
from evaluator.prompts.pool import Pool, read_pool
from tests.kit.refusals import refused

ROWS = [
    {"prompt_id": "a", "prompt": "A red  cube", "subject": ["thing", "colour"], "style": "photo"},
    {"prompt_id": "b", "prompt": "a red cube ", "subject": ["thing"], "style": "ink"},
    {"prompt_id": "c", "prompt": "", "subject": ["nothing"], "style": "photo"},
    {"prompt_id": "d", "prompt": "two dogs", "subject": ["animal"], "style": ""},
    {"prompt_id": "e", "prompt": "two cats", "subject": [], "style": "ink"},
]


def written(folder: Path, form: str) -> Path:
    """The rows as a file of some form."""
    file, table = folder / f"pool.{form}", pd.DataFrame(ROWS)
    if form == "csv":
        table.assign(subject=table["subject"].str.join(" ; ")).to_csv(file, index=False)
    elif form == "jsonl":
        file.write_text("\n".join(map(json.dumps, ROWS)))
    else:
        table.to_parquet(file)
    return file


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_table_of_any_form_is_read_with_each_prompt_once(tmp_path: Path, form: str) -> None:
    pool = read_pool(written(tmp_path, form), ("subject", "style"))
    assert (pool.ids, pool.texts) == (("a", "d", "e"), ("A red  cube", "two dogs", "two cats"))
    assert (pool.rows, pool.empty, pool.repeated) == (5, 1, 1)
    subject, style = pool.dimensions
    assert (subject.categories, style.categories) == (
        ("animal", "colour", "thing"),
        ("ink", "photo"),
    )
    assert subject.labels.tolist() == [[False, True, True], [True, False, False], [False] * 3]
    assert [pool.skills(place) for place in range(3)] == [
        ("subject:colour", "subject:thing", "style:photo"), ("subject:animal",), ("style:ink",),
    ]  # fmt: skip


def without_ids(tmp_path: Path) -> Pool:
    file = tmp_path / "pool.csv"
    pd.DataFrame({"prompt": ["x", "y", "x"], "kind": ["1", "2", "3"]}).to_csv(file, index=False)
    return read_pool(file, ("kind",))


def test_prompts_without_ids_are_named_by_what_they_say(tmp_path: Path) -> None:
    first = without_ids(tmp_path)
    assert len(set(first.ids)) == len(first.ids) == 2
    assert {len(name) for name in first.ids} == {12}


def test_embeddings_are_clustered_to_one_more_dimension(tmp_path: Path) -> None:
    file = tmp_path / "pool.csv"
    pd.DataFrame({"prompt": [f"p{n}" for n in range(60)] + ["p0"]}).to_csv(file, index=False)
    centres = np.repeat(np.eye(3) * 10, (30, 20, 10), axis=0)
    vectors = np.r_[centres + np.random.default_rng(0).normal(size=(60, 3)), [[99, 99, 99]]]
    pool = read_pool(file, (), vectors, clusters=3, seed=4)
    (cluster,) = pool.dimensions
    assert (cluster.name, cluster.categories) == ("cluster", ("1", "2", "3"))
    assert cluster.labels.sum(axis=0).tolist() == [30, 20, 10]
    groups = [np.flatnonzero(column).tolist() for column in cluster.labels.T]
    assert groups == [list(range(30)), list(range(30, 50)), list(range(50, 60))]
    again = read_pool(file, (), vectors, clusters=3, seed=4)
    np.testing.assert_array_equal(cluster.labels, again.dimensions[0].labels)


SEVEN = {"prompt": [*"abcdefg"], "k": [*"1212121"]}
SAME, EACH = np.ones((7, 4)), np.arange(28.0).reshape(7, 4)


@pytest.mark.parametrize(
    ("table", "dimensions", "vectors", "codes"),
    [
        ({"text": ["a"]}, ("kind", "style"), None, {"missing_columns"}),
        (SEVEN, ("k", "k"), None, {"no_dimensions"}),
        (SEVEN | {"cluster": [*"1212121"]}, ("cluster",), EACH, {"no_dimensions"}),
        (SEVEN | {"prompt_id": [*"abcdeff"]}, ("k",), None, {"bad_prompt_ids"}),
        (SEVEN | {"prompt_id": [*"abcdef", None]}, ("k",), None, {"bad_prompt_ids"}),
        (SEVEN, ("k",), np.ones((3, 4)), {"bad_embeddings"}),
        (SEVEN, ("k",), np.ones(7), {"bad_embeddings"}),
        (SEVEN, ("k",), EACH * np.nan, {"bad_embeddings"}),
        (SEVEN, ("k",), EACH.astype(str), {"bad_embeddings"}),
        (SEVEN, ("k",), SAME, {"bad_clusters"}),
        (SEVEN | {"k": [""] * 7}, ("k",), None, {"bad_labels"}),
        (SEVEN | {"k": [None] * 7, "j": [["x;y"]] * 7}, ("k", "j"), SAME, {"bad_labels", "bad_clusters"}),
        ({"prompt": [str(n) for n in range(501)]}, ("prompt",), None, {"bad_labels"}),
        ({"prompt_id": ["", "x"]}, ("k",), np.ones(2), {"missing_columns", "bad_prompt_ids", "bad_embeddings"}),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_is_told_at_once(
    tmp_path: Path,
    table: dict[str, list[Any]],
    dimensions: tuple[str, ...],
    vectors: Any,
    codes: set[str],
) -> None:
    file = tmp_path / "pool.parquet"
    pd.DataFrame(table).to_parquet(file, index=False)
    with pytest.raises(SubmitterError) as caught:
        read_pool(file, dimensions, vectors, clusters=2)
    assert {one.code for one in problems_of(caught.value)} == codes


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"k": [["x", "y"]]}, "bad_labels"),
        ({"k": [{"x": 1}]}, "bad_labels"),
        ({"k": {"x": 1}}, "bad_labels"),
        ({"k": ["x"], "prompt_id": ["a", "b"]}, "bad_prompt_ids"),
    ],
)
def test_what_is_itself_a_list_or_an_object_is_no_label_and_no_id(
    tmp_path: Path, row: dict[str, Any], code: str
) -> None:
    file = tmp_path / "pool.jsonl"
    file.write_text(json.dumps({"prompt": "a", **row}))
    with pytest.raises(SubmitterError) as caught:
        read_pool(file, ("k",))
    assert [one.code for one in problems_of(caught.value)] == [code]


def test_a_missing_label_in_a_list_is_none(tmp_path: Path) -> None:
    file = tmp_path / "pool.jsonl"
    file.write_text('{"prompt": "a", "k": ["x", null]}\n{"prompt": "b", "k": null}')
    (kind,) = read_pool(file, ("k",)).dimensions
    assert (kind.categories, kind.labels.tolist()) == (("x",), [[True], [False]])


@pytest.mark.filterwarnings("error")
def test_no_cluster_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "pool.csv"
    pd.DataFrame({"prompt": [f"p{n}" for n in range(30)]}).to_csv(file, index=False)
    far = np.repeat([[0.0], [1e9], [1e9 + 1e-3]], 10, axis=0)
    for seed in range(10):
        (cluster,) = read_pool(file, (), far, clusters=3, seed=seed).dimensions
        assert cluster.labels.any(axis=0).all()
        assert cluster.labels.sum(axis=1).tolist() == [1] * 30


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1.0, 1e160, 1e300])
def test_clusters_do_not_depend_on_the_unit_of_the_embeddings(tmp_path: Path, unit: float) -> None:
    file = tmp_path / "pool.csv"
    pd.DataFrame({"prompt": [f"p{n}" for n in range(30)]}).to_csv(file, index=False)
    vectors = np.random.default_rng(0).random((30, 3)) + np.repeat([[0], [5], [9]], 10, axis=0)
    (cluster,) = read_pool(file, (), vectors * unit, clusters=3).dimensions
    assert cluster.labels.sum(axis=0).tolist() == [10, 10, 10]


def test_other_columns_are_kept_as_text(tmp_path: Path) -> None:
    file = tmp_path / "pool.jsonl"
    rows: list[dict[str, Any]] = [
        {"prompt": "x", "skills": ["count", "colour"], "elements": ["2 cups", "red"], "n": 3},
        {"prompt": "y", "skills": "", "elements": [{"a": 1}], "n": None},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    pool = read_pool(file, ())
    assert {name: pool.others[name] for name in ("skills", "elements")} == {
        "skills": ("count;colour", ""), "elements": ("2 cups;red", '[{"a": 1}]'),
    }  # fmt: skip
    assert [pool.skills(place) for place in (0, 1)] == [("count;colour",), ()]


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    for name, content in (("a.parquet", b"x"), ("a.jsonl", b"{")):
        (tmp_path / name).write_bytes(content)
        with refused("bad_prompts"):
            read_pool(tmp_path / name, ("k",))
