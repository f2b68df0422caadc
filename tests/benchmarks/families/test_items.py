"""Items of a card: pairs in the released order, their ids by the shape of a row, and the sample."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.families.items import Items
from tests.benchmarks.families.cards import benchmark_of, card_of_rows
from tests.kit.refusals import refused

PREFERENCE = {"gold": None, "family": "preference", "headline": {"facet": None}}
SIDES = {"image": ["x", "y"], "model": ["mx", "my"]}


def items(folder: Path, rows: list[dict[str, Any]], columns: Any, **keys: Any) -> Items:
    board = benchmark_of(folder, card_of_rows(columns, keys), labels_json=rows)
    return board.items(board.folder(None))


COLUMNS = {k: k for k in ("image", "prompt", "text")} | {"mean": {"from": "mean", "type": "float"}}
ROWS = [
    {"image": i, "prompt": p, "text": f"text {p}", "mean": 1, "split": s, "tags": t}
    for i, p, s, t in [("a", 1, "x", ["u", "v"]), ("b", 1, "y", []), ("c", 2, "x", ["v", "v"])]
]


def test_a_row_is_a_pair_named_by_a_column_or_by_its_number(tmp_path: Path) -> None:
    found = items(tmp_path / "1", ROWS, COLUMNS, items={"pair": "image"})
    assert found.pair_ids == ("a", "b", "c")
    assert found.clusters == ("1", "2")
    assert found.pairs["position"].tolist() == [0, 1, 0]
    assert items(tmp_path / "2", ROWS, COLUMNS, items={"pair": ""}).pair_ids == ("0", "1", "2")


def test_splits_and_skills_are_text_and_lists(tmp_path: Path) -> None:
    more = {"split": "split", "tags": {"from": "tags", "type": "list_str"}}
    found = items(tmp_path, ROWS, {**COLUMNS, **more}, items={"split": "split", "skills": "tags"})
    assert found.rows["split"].tolist() == ["x", "y", "x"]
    assert {k: v.tolist() for k, v in found.skills().items()} == {
        "u": [True, False, False],
        "v": [True, False, True],
    }


def test_a_pair_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with refused("data_malformed", "'a'"):
        items(tmp_path, [ROWS[0], ROWS[0]], COLUMNS)


def test_a_pair_of_two_texts_is_refused(tmp_path: Path) -> None:
    other = {**ROWS[0], "text": "another"}
    with refused("data_malformed", "'a'", "two images or texts"):
        items(tmp_path, [ROWS[0], other], COLUMNS, items={"pair": "", "shared": True})


def test_a_list_of_images_may_have_a_list_of_who_made_them(tmp_path: Path) -> None:
    rows = [{"p": "x", "images": ["a", "b"], "models": ["m", "n"], "ranks": [2, 1]}]
    lists = {name: {"from": name, "type": "list_str"} for name in ("images", "models")}
    columns = {"p": "p", "ranks": {"from": "ranks", "type": "list_int"}, **lists}
    named = {"pair": "", "prompt": "p", "text": "p", "image": "images", "model": "models"}
    found = items(
        tmp_path, rows, columns,
        **PREFERENCE | {"headline": {"measure": "accuracy", "facet": None}}, items=named | {"shared": True},
        preference={"ranks": "ranks"},
    )  # fmt: skip
    assert dict(zip(found.pairs["image"], found.pairs["model"], strict=True)) == {
        "a": "m",
        "b": "n",
    }


@pytest.mark.parametrize("keep", [0.25, 0.5, 1.0])
def test_a_sample_keeps_the_smallest_hashes_of_each_stratum(tmp_path: Path, keep: float) -> None:
    rows = [
        {"image": f"{p}/{i}", "prompt": f"p{p}", "text": "t", "mean": 1, "split": "ab"[p % 2]}
        for p in range(8)
        for i in range(2)
    ]
    found = items(
        tmp_path, rows, {**COLUMNS, "split": "split"},
        items={"sample": {"by": "prompt", "keep": keep, "strata": "split"}},
    )  # fmt: skip
    expected = set()
    for stratum in (range(0, 8, 2), range(1, 8, 2)):
        names = sorted(
            (f"p{p}" for p in stratum), key=lambda n: hashlib.sha256(n.encode()).digest()
        )
        expected |= set(names[: round(keep * 4)])
    assert set(found.clusters) == expected
    assert len(found.pair_ids) == 2 * len(expected)
