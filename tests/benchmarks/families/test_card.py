"""The schema of a card: one form of everything, columns and files that there are, errors with lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.families import load_card
from benchmarks.families.card import with_named_group
from tests.benchmarks.families.cards import LABELS, RATED, benchmark_of, with_keys, write_card
from tests.kit.refusals import refused

TABLE = RATED["tables"][0]


def tables(**keys: Any) -> dict[str, Any]:
    return {"tables": [with_keys(TABLE, keys)]}


PREFERENCE = {
    "family": "preference", "gold": None, "headline": {"measure": "accuracy", "facet": None},
}  # fmt: skip
GROUP = {"family": "group", "gold": None, "headline": {"measure": "accuracy", "facet": None}}


def preference(**keys: Any) -> dict[str, Any]:
    return PREFERENCE | {"preference": {"winner": "a"} | keys}


REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "key that is not known": ({"famly": "x"}, ("famly",)),
    "family that is not known": ({"family": "ranking"}, ("family",)),
    "no kind": ({"kind": None}, ("kind",)),
    "section of another family": ({"group": {"rule": "winoground"}}, ("[group]",)),
    "no section of its own": ({"gold": None}, ("[gold]",)),
    "no scale": ({"gold": {"mean": {"scale": None}}}, ("gold.mean.scale",)),
    "scale upside down": ({"gold": {"mean": {"scale": [5, 1]}}}, ("scale",)),
    "two forms of a rating": ({"gold": {"mean": {"rating": "mean"}}}, ("exactly one of ratings",)),
    "column that is in no table": ({"gold": {"mean": {"mean": "mos"}}}, ("'mos'",)),
    "item that is in no table": ({"items": {"model": "who"}}, ("'who'",)),
    "file that is not declared": (tables(path="other.csv"), ("other.csv",)),
    "path that leaves its folder": (tables(path="../labels.csv"), ("../labels.csv",)),
    "absolute path": (tables(path="/etc/passwd"), ("/etc/passwd",)),
    "table without columns": (tables(columns=dict.fromkeys(TABLE["columns"])), ("columns",)),
    "column of two sources": (
        tables(columns={"text": {"from": "a", "const": "b"}}), ("exactly one of from",),
    ),
    "regex without a group": (
        tables(columns={"text": {"from": "a", "regex": "^x$"}}), ("0 groups",),
    ),
    "regex of two groups": (
        tables(columns={"text": {"from": "a", "regex": "(x)(y)"}}), ("2 groups",),
    ),
    "regex that is none": (
        tables(columns={"text": {"from": "a", "regex": "(x"}}), ("regular expression",),
    ),
    "regex that looks back": (
        tables(columns={"text": {"from": "a", "regex": r"(x)\1"}}), ("regular expression",),
    ),
    "headline that is no measure": ({"headline": {"measure": "luck"}}, ("luck",)),
    "measure that is none": ({"evaluation": {"measures": ["srcc", "luck"]}}, ("luck",)),
    "golden figure of no measure": (
        {"golden": {"x": {"metric": "m", "measure": "luck", "value": 1.0, "tol": 0.1}}}, ("luck",),
    ),
    "columns that are a text": ({"tables": [{**TABLE, "columns": "image"}]}, ("columns",)),
    "no table": ({"tables": None}, ("[[tables]]",)),
    "two tables of one name": ({"tables": [TABLE, TABLE]}, ("two tables are named t",)),
    "spread of single ratings": (
        {"gold": {"mean": {"mean": None, "ratings": "mean", "sd": "mean"}}}, ("belong to a mean",),
    ),
    "two forms of a preference": (preference(ranks="mean"), ("exactly one of label",)),
    "label without its values": (PREFERENCE | {"preference": {"label": "mean"}}, ("label needs values",)),
    "ties by a threshold that is not there": (
        preference(metric_ties="threshold"), ("needs a threshold",),
    ),
    "threshold found on what is evaluated": (
        preference(metric_ties="threshold", threshold={"grid": [0.0], "calibrate": "v"})
        | {"headline": {"measure": "accuracy", "facet": None, "split": "v"}},
        ("calibrated on the split",),
    ),
    "group without a rule": (GROUP | {"group": {"threshold": 0.5}}, ("either rule or rules",)),
    "best of how many": (GROUP | {"group": {"rule": "best_of"}}, ("size and gold",)),
    "join of no table": (
        {"joins": [{"left": "t", "right": "tags", "on": "image"}]}, ("'tags'",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_card_cannot_say_is_refused(tmp_path: Path, case: str) -> None:
    keys, says = REFUSED[case]
    with refused("invalid_benchmark", str(tmp_path), *says):
        load_card(write_card(tmp_path, with_keys(RATED, keys)))


def test_all_problems_are_said_at_once_each_with_its_line(tmp_path: Path) -> None:
    wrong = with_keys(RATED, {"kind": "beauty", "gold": {"mean": {"scale": [5, 1]}}})
    path = write_card(tmp_path, wrong)
    lines = path.read_text().splitlines()
    with refused("invalid_benchmark", "kind", "gold.mean") as caught:
        load_card(path)
    for key in ('kind = "beauty"', "[gold.mean]"):
        assert f"(line {lines.index(key) + 1})" in caught.value.message


def test_what_does_not_fit_together_is_said_beside_a_key_that_is_wrong(tmp_path: Path) -> None:
    wrong = with_keys(RATED, {"kind": "beauty", "titel": "x", "gold": {"mean": {"mean": "mos"}}})
    with refused("invalid_benchmark", "kind: ", "titel: ", "gold.mean.mean: column 'mos'"):
        load_card(write_card(tmp_path, wrong))
    with refused("invalid_benchmark", "headline.measure", "kind: ") as caught:
        load_card(write_card(tmp_path, with_keys(wrong, {"headline": {"measure": 1}})))
    assert "mos" not in caught.value.message


@pytest.mark.parametrize("content", [b"name = ", b"\xff", b"a = " + b"[" * 9000, b"x = 1\n" * 2])
def test_what_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "card.toml").write_bytes(content)
    with refused("invalid_benchmark", "card.toml"):
        load_card(tmp_path / "card.toml")


def test_a_card_of_a_megabyte_is_refused(tmp_path: Path) -> None:
    (tmp_path / "card.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    with refused("invalid_benchmark", "1,048,577"):
        load_card(tmp_path / "card.toml")


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("^([^_]+)_", "^(?P<found>[^_]+)_"),
        (r"\((\d+)\)", r"\((?P<found>\d+)\)"),
        ("[(](a)", "[(](?P<found>a)"),
        ("(?:a|b)(c)", "(?:a|b)(?P<found>c)"),
        ("[]()](x)", "[]()](?P<found>x)"),
    ],
)
def test_the_only_group_is_the_one_that_is_kept(pattern: str, named: str) -> None:
    assert with_named_group(pattern) == named


def test_measures_are_those_the_card_chooses_in_its_order(tmp_path: Path) -> None:
    chosen = with_keys(RATED, {"evaluation": {"measures": ["srcc"]}})
    assert list(benchmark_of(tmp_path, chosen, labels_csv=LABELS).card.measures) == ["srcc"]


def test_a_scorers_side_needs_no_table_that_only_says_what_people_said(tmp_path: Path) -> None:
    files = [RATED["files"][0] | {"path": f"{name}.csv"} for name in "pqr"]
    tables = [
        {"name": "p", "path": "p.csv", "columns": {"image": "image", "prompt": "prompt"}},
        {"name": "q", "path": "q.csv", "columns": {"prompt": "prompt", "text": "text"}},
        {"name": "r", "path": "r.csv", "columns": {"image": "image", "mean": "mean"}},
    ]
    on = [("q", "prompt"), ("r", "image")]
    joins = [{"left": "p", "right": right, "on": name} for right, name in on]
    keys = {"files": files, "tables": tables, "joins": joins}
    rows = {
        "p_csv": "image,prompt\na,1\nb,2\nc,2\n",
        "q_csv": "prompt,text\n1,a cat\n2,a dog\n",
        "r_csv": "image,mean\na,1\nb,2\nc,5\n",
    }
    benchmark = load_card(write_card(tmp_path, with_keys(RATED, keys), **rows))
    assert benchmark.asked_from == ("p.csv", "q.csv")
    assert benchmark.released_rows().empty  # Nothing of it is in the bundle.
    assert benchmark.gold_of_pairs(benchmark.answers(None)).tolist() == [1.0, 2.0, 5.0]
    (tmp_path / "r.csv").unlink()
    assert list(benchmark.texts(None).values()) == ["a cat", "a dog"]
    with refused("data_missing", "r.csv"):
        benchmark.answers(None)
