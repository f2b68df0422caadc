"""Comparing checkouts: rows bit for bit by what they are of, and the command on tiny checkouts."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from tests.conftest import REPOSITORY
from tools.compare_checkouts import BROKEN, DIFFERENT, interpreter_of, main
from tools.row_differences import (
    FACTS,
    IGNORED,
    Difference,
    Level,
    Table,
    compare_tables,
    key_of,
    labels_of,
    make_table,
    same,
)

Record = dict[str, Any]


# Rows, without what differs in every run.

ROW = {
    "entry_id": "clip 1", "measure": "srcc", "skill": None, "value": 0.1, "ci_low": math.nan,
    "ci_high": None, "tier_holm_5_percent": 1, "rank": 1, "note": "",
}  # fmt: skip
OTHER = {**ROW, "entry_id": "blip 1", "value": 0.2}
PUBLISHED = (
    "value", "ci_low", "ci_high", "p_value", "p_holm", "rank_low", "rank", "rank_high",
    "tier_holm_5_percent", "n_items", "n_clusters", "n_missing", "note", "plan", "seed",
)  # fmt: skip
KEY, NAME = "clip 1 · srcc", "boards/ts2"
FACT = {"n_tests": 3, "notes": [{"note": "few"}]}


def table(*rows: Record, board: str = "ts2", name: str = NAME, **facts: Any) -> Table:
    return make_table(board, "rankings", name, rows, facts={**FACT, **facts})


def changed(name: str, value: Any) -> Table:
    return table({**ROW, name: value}, OTHER)


def value(name: str, a: Any, b: Any, row: str = KEY) -> Difference:
    return Difference(Level.VALUE, "ts2", NAME, row, name, a, b)


A = table(ROW, OTHER)
BIT = math.nextafter(0.1, 1)
WIDER = table(ROW, name="boards/ts2?skill=colour")


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        ([A], []),
        ([table(OTHER, ROW)], []),
        ([changed("value", BIT)], [value("value", 0.1, BIT)]),
        ([changed("tier_holm_5_percent", 2)], [value("tier_holm_5_percent", 1, 2)]),
        ([changed("rank", 1.0)], [value("rank", 1, 1.0)]),
        ([changed("note", "few")], [value("note", "", "few")]),
        ([changed("ci_high", math.nan)], [value("ci_high", None, math.nan)]),
        ([table(ROW)], [Difference(Level.ROW, "ts2", NAME, "blip 1 · srcc", only_in="A")]),
        ([table(ROW, OTHER, {**ROW, "skill": "colour"})],
         [Difference(Level.ROW, "ts2", NAME, f"{KEY} · colour", only_in="B")]),
        ([table(ROW, OTHER, notes=[])], [value("notes", [{"note": "few"}], [], FACTS)]),
        ([A, table(ROW, board="gecko"), table(ROW, board="gecko", name="boards/gecko/pairs")],
         [Difference(Level.BOARD, "gecko", only_in="B")]),
        ([], [Difference(Level.BOARD, "ts2", only_in="A")]),
        ([A, WIDER], [Difference(Level.TABLE, "ts2", WIDER.name, only_in="B")]),
    ],
)  # fmt: skip
def test_a_difference_is_told_as_what_it_is(b: list[Table], expected: list[Difference]) -> None:
    found = compare_tables([A], b)
    # NaN is not equal to itself, so the values are compared by their text.
    assert repr(list(found.differences)) == repr(expected)
    assert found.equal == (not expected)


@pytest.mark.parametrize(
    ("a", "b", "tolerance", "equal"),
    [
        (math.nan, math.nan, 0.0, True), (math.nan, None, 0.0, False), (0.0, -0.0, 0.0, False),
        (1, 1.0, 0.0, False), (1, True, 0.0, False), (math.inf, math.inf, 0.0, True),
        ({"a": 1, "b": [math.nan]}, {"b": [math.nan], "a": 1}, 0.0, True),
        ([1, 2], [2, 1], 0.0, False), (0.1, 0.1 + 1e-12, 1e-9, True),
        (0.1, 0.1 + 1e-6, 1e-9, False), (1e12, 1e12 + 1, 1e-9, True), (1, 2, 1e-9, False),
        (math.nan, math.nan, 1e-9, True), (math.nan, 0.1, 1e-9, False), (None, 0.0, 1e-9, False),
        ([{"p": 0.1}], [{"p": 0.1 + 1e-12}], 1e-9, True), ([0.1], [0.1, 0.2], 1e-9, False),
        ({"p": 0.1}, {"q": 0.1}, 1e-9, False),
    ],
)  # fmt: skip
def test_values_are_the_same_by_their_bits_and_a_tolerance_is_of_floats_alone(
    a: object, b: object, tolerance: float, equal: bool
) -> None:
    assert same(a, b, tolerance) is equal


def test_what_differs_in_every_run_is_left_out_at_any_depth_and_what_is_published_never() -> None:
    for name in IGNORED:
        a, b = (
            table({**ROW, name: n}, OTHER, provenance={"ts2": {name: n}}) for n in (7, 8)
        )  # fmt: skip
        assert compare_tables([a], [b]).differences == ()
    for name in PUBLISHED:
        found = compare_tables([table({**ROW, name: 7})], [table({**ROW, name: 8})])
        assert found.per_field() == {name: 1}
    assert compare_tables([A], [changed("note", "few")], ignored=["note"]).equal


def test_a_new_field_is_a_note_and_a_lost_one_a_difference() -> None:
    wider = table({**ROW, "p_best": 1.0}, {**OTHER, "p_best": 0.0}, rule="strict")
    gained, lost = compare_tables([A], [wider]), compare_tables([wider], [A])
    assert gained.equal
    assert [note.split("`")[1] for note in gained.notes] == ["rule", "p_best"]
    found = [(d.level, d.field, d.only_in) for d in lost.differences]
    assert found == [(Level.FIELD, name, "A") for name in ("rule", "p_best")]


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"entry_id": "clip 1", "metric": "clip", "version": "1", "value": 3}, "clip 1"),
        ({"entry_a": "clip 1", "metric_a": "clip", "entry_b": "blip 1"}, "clip 1 · blip 1"),
        ({"metric": "clip", "measure": "rank", "split": "nat"}, "clip · rank · nat"),
        ({"metric": "clip", "version": "1", "benchmark": "index"}, "index · clip · 1"),
        ({"token": "srcc~paper", "measure": "srcc", "skill": "count"}, "srcc~paper · count"),
        ({"value": 3}, "all"),
    ],
)
def test_a_key_says_what_a_row_is_of(row: Record, key: str) -> None:
    assert key_of(row) == key
    assert list(table(ROW, ROW).rows) == [KEY, f"{KEY} #2"]


def entry(entry_id: str, version: str = "1", submitter: str = "us") -> dict[str, str]:
    metric = entry_id.partition("/")[2]
    return {"entry_id": entry_id, "metric": metric, "version": version, "submitter": submitter}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("a/clip"), entry("b/blip")], ["clip 1", "blip 1"]),
        ([entry("a/clip"), entry("b/clip", "2")], ["clip 1", "clip 2"]),
        ([entry("a/clip"), entry("b/clip", submitter="you")], ["clip 1 by us", "clip 1 by you"]),
        ([entry("a/clip", version="")], ["clip"]),
        ([entry("a/clip"), entry("b/clip")], []),
    ],
)
def test_a_metric_has_a_name_that_tells_it_apart(
    entries: list[dict[str, str]], expected: list[str]
) -> None:
    assert list(labels_of(entries, ()).values()) == expected


def test_other_bytes_of_a_submission_give_it_another_id_and_the_same_rows() -> None:
    def side(*ids: str) -> Table:
        submissions = [
            {"submission_id": one, "name": name, "version": "1", "submitter": "us"}
            for one, name in zip(ids, ("m1", "m2", "m3"), strict=True)
        ]
        row = {"submission_id": ids[0], "better_than": ",".join(sorted(ids[1:])), "value": 0.1}
        known = labels_of((), submissions)
        facts = {"judges": [{"metric": ids[0]}]}
        return make_table("p", "model rankings", "models/p", [row], facts=facts, labels=known)

    assert compare_tables([side("x", "a", "b")], [side("y", "d", "c")]).equal


# Tiny checkouts: an `evaluator` and an `app.py` that answer what `answers.json` says.

EVALUATOR = """\
import json, pathlib, sys

answers = json.loads(pathlib.Path("answers.json").read_text())
command, *words = sys.argv[1:]
if command in answers["broken"]:
    print("began well")
    sys.exit("line 1\\nit broke at the end")
if command == "demo":
    pathlib.Path(words[words.index("--store") + 1]).mkdir()
else:
    given = pathlib.Path(words[words.index("--scores") + 1])
    assert given.read_text() == "scores"
    rows = answers[command]
    print(json.dumps([{**row, "lower": "--lower-is-better" in words} for row in rows]))
"""
APP = """\
import http.server, json, os, pathlib, sys
from urllib.parse import unquote

answers = json.loads(pathlib.Path("answers.json").read_text())
if "app" in answers["broken"]:
    sys.exit("no site today")
assert pathlib.Path(os.environ["ASSAY_STORE"]).is_dir()


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = unquote(self.path).removeprefix("/v1/")
        found = answers["v1"].get(path) or answers["v1"].get(path.partition("?")[0])
        absent = {"error": {"code": "not_found", "message": "", "hint": ""}}
        content = json.dumps(found or absent).encode()
        self.send_response(200 if found or path == "/health" else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Site).serve_forever()
"""
RELEASED = """\
[[scores]]
name = "tiny-results"
benchmark = "tiny"
path = "tiny/scores.parquet"
lower_is_better = ["distance"]
"""
CLIP, BLIP = "clip-0a1b/clip", "blip-2c3d/blip"
NOW = "2026-11-22T12:00:00+00:00"


def answers() -> Record:
    """One benchmark with two metrics, one of them better."""
    said: Record
    whose = {"version": "1", "submitter": "us"}
    entries, queue, ranked = list[Record](), list[Record](), list[Record]()
    for rank, (entry_id, of) in enumerate(((CLIP, 0.1 + 0.2), (BLIP, 0.25)), 1):
        submission, _, name = entry_id.partition("/")
        said = {"entry_id": entry_id, "metric": name, "benchmarks": "tiny", "published_at": NOW}
        entries.append(whose | said)
        said = {"submission_id": submission, "name": name, "state": "published", "wait_s": None}
        queue.append(whose | said)
        said = {"entry_id": entry_id, "measure": "srcc", "rank": rank, "value": of}
        ranked.append(said | {"tier_holm_5_percent": rank, "pairs_per_s": 17.5})
    pair = {"entry_a": CLIP, "entry_b": BLIP, "p_value": 0.03, "p_holm": 0.03}
    measured = {"measure": "srcc", "versions": "numpy 2"}
    return {
        "broken": [],
        "meta": [
            measured | {"metric": "clip", "value": 0.1 + 0.2},
            measured | {"metric": "blip", "value": None},
        ],
        "compare": [{"metric_a": "clip", "metric_b": "blip", "p_value": 0.03}],
        "v1": {
            "entries": {"rows": entries},
            "queue": {"rows": queue},
            "benchmarks": {"rows": [{"name": "tiny", "headline": "srcc~paper"}]},
            "benchmarks/tiny": {
                "about": {"card": {"description": "Small."}},
                "rows": [{"token": "srcc~paper", "measure": "srcc", "skill": None}],
            },
            "boards/tiny": {"about": {"as_of": NOW}, "rows": ranked},
            "boards/tiny/pairs": {"about": {"correction": "holm"}, "rows": [pair]},
        },
    }


def make_checkout(folder: Path, said: Record, *, bundle: bool) -> Path:
    """What its commands and its site answer, and whether it has released results."""
    (folder / "evaluator").mkdir(parents=True)
    (folder / "evaluator" / "__init__.py").touch()
    (folder / "evaluator" / "__main__.py").write_text(EVALUATOR)
    (folder / "app.py").write_text(APP)
    (folder / "answers.json").write_text(json.dumps(said))
    if bundle:
        released = folder / "benchmarks" / "released"
        (released / "tiny").mkdir(parents=True)
        (released / "released.toml").write_text(RELEASED)
        (released / "tiny" / "scores.parquet").write_text("scores")
    return folder


EQUAL, USAGE = 0, 2
COMMAND = typer.Typer()
COMMAND.command()(main)
NEXT = math.nextafter(0.1 + 0.2, 1)
Pair = Callable[..., tuple[Path, Path]]


def run(*words: object) -> Result:
    return CliRunner().invoke(COMMAND, ["--python", sys.executable, *map(str, words)])


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Two checkouts; the second as a function changes it."""

    def make(
        change: Callable[[Record], object] = lambda _: None, *, a: bool = False, b: bool = False
    ) -> tuple[Path, Path]:
        other = answers()
        change(other)
        return (
            make_checkout(tmp_path / "a", answers(), bundle=a),
            make_checkout(tmp_path / "b", other, bundle=b),
        )

    return make


def board(said: Record) -> list[Record]:
    rows: list[Record] = said["v1"]["boards/tiny"]["rows"]
    return rows


def later_run(said: Record) -> None:
    """Another time, another speed, another order of the lines."""
    said["v1"]["boards/tiny"]["about"]["as_of"] = "2026-11-23T12:00:00+00:00"
    board(said)[0]["pairs_per_s"] = 11.0
    board(said).reverse()


def test_two_checkouts_from_start_to_end(pair: Pair, tmp_path: Path) -> None:
    """`python -m tools.compare_checkouts A B`, as a maker runs it."""
    a, b = pair(later_run, a=True, b=True)
    kept = tmp_path / "kept"
    done = subprocess.run(
        [sys.executable, "-m", "tools.compare_checkouts", a, b, "--keep", kept, "--json"],
        cwd=REPOSITORY,
        env={**os.environ, "ASSAY_STORE": "/nowhere", "PORT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == EQUAL, done.stderr
    said = json.loads(done.stdout)
    assert (said["equal"], said["differences"], said["notes"]) == (True, [], [])
    rows = {kind: count["rows_a"] for kind, count in said["compared"].items()}
    assert rows["entries"] == rows["submissions"] == 2
    assert rows["rankings"] == 6  # The slice, without those trained on it, by two skills.
    assert rows["tests"] == 3
    assert (rows["released measures"], rows["released tests"]) == (2, 1)
    for side in "AB":
        assert {"store", "demo.log", "app.log", "rows.json"} <= {
            one.name for one in (kept / side).iterdir()
        }


@pytest.mark.parametrize(
    ("change", "per_field"),
    [
        (lambda said: board(said)[0].update(value=NEXT), {"value": 3}),
        (lambda said: board(said)[1].update(tier_holm_5_percent=1), {"tier_holm_5_percent": 3}),
        (lambda said: board(said).pop(), {"(row missing)": 3}),
        (lambda said: said["v1"]["boards/tiny/pairs"]["rows"][0].update(p_value=0.04),
         {"p_value": 3}),
        (lambda said: said["v1"].pop("boards/tiny/pairs"),
         {"refused": 3, "(row missing)": 3, "correction": 3}),
        (lambda said: said["v1"]["benchmarks"]["rows"].append({"name": "new", "headline": "x"}),
         {"(row missing)": 1, "(board missing)": 1}),
    ],
    ids=["last bit", "tier", "row", "p-value", "refused", "board"],
)  # fmt: skip
def test_what_changed_on_the_site_is_told(
    pair: Pair, change: Callable[[Record], object], per_field: dict[str, int]
) -> None:
    done = run(*pair(change), "--only", "demo", "--json")
    assert done.exit_code == DIFFERENT
    said = json.loads(done.stdout)
    assert said["per_field"] == per_field
    assert len(said["differences"]) == sum(per_field.values())


def test_differences_are_grouped_by_board_for_people(pair: Pair) -> None:
    done = run(*pair(lambda said: board(said)[0].update(value=NEXT)), "--only", "demo")
    assert done.exit_code == DIFFERENT
    assert "tiny: 3" in done.stdout
    assert f"clip 1 · srcc | value: {0.1 + 0.2!r} in A, {NEXT!r} in B" in done.stdout


@pytest.mark.slow
def test_a_tolerance_and_ignored_fields_make_it_equal(pair: Pair) -> None:
    def change(said: Record) -> None:
        board(said)[0].update(value=NEXT, note="new")
        board(said)[1].update(note="")

    a, b = pair(change)
    done = run(a, b, "--only", "demo", "--tolerance", "1e-9")
    assert done.exit_code == EQUAL
    assert "`note`" in done.stdout
    assert run(b, a, "--only", "demo", "--ignore", "note", "--ignore", "value").exit_code == EQUAL


def test_other_ids_of_the_same_metrics_are_no_difference(pair: Pair) -> None:
    a, b = pair()
    moved = (b / "answers.json").read_text()
    for entry_id in (CLIP, BLIP):
        old = entry_id.partition("/")[0]
        moved = moved.replace(old, f"{old}99")
    (b / "answers.json").write_text(moved)
    assert run(a, b, "--only", "demo").exit_code == EQUAL


def test_released_scores_are_measured_and_compared(pair: Pair, tmp_path: Path) -> None:
    def change(said: Record) -> None:
        said["meta"][0]["value"] = NEXT
        said["compare"][0]["p_value"] = 0.04

    kept = tmp_path / "kept"
    words = ("--only", "bundle", "--json", "--keep", kept)
    done = run(*pair(change, a=True, b=True), *words)
    assert done.exit_code == DIFFERENT
    found = [(d["board"], d["table"], d["field"]) for d in json.loads(done.stdout)["differences"]]
    assert found == [
        ("tiny", "meta tiny-results", "value"),
        ("tiny", "compare tiny-results", "p_value"),
    ]
    # Metrics for which lower is better are named to the commands.
    tables = json.loads((kept / "A" / "rows.json").read_text())
    assert all(row["lower"] for one in tables for row in one["rows"].values())


def test_what_has_no_bundle_is_compared_without_it(pair: Pair) -> None:
    done = run(*pair(b=True), "--json")
    said = json.loads(done.stdout)
    assert done.exit_code == EQUAL
    assert [note.startswith("A has no") for note in said["notes"]] == [True]
    assert "released measures" not in said["compared"]


@pytest.mark.parametrize("broken", ["demo", "app", "meta"])
def test_a_side_that_fails_is_told_with_the_end_of_its_log(pair: Pair, broken: str) -> None:
    done = run(*pair(lambda said: said["broken"].append(broken), a=True, b=True))
    assert (done.exit_code, done.stdout) == (BROKEN, "")
    assert "error: B: " in done.stderr
    assert ("no site" if broken == "app" else "it broke") in done.stderr


@pytest.mark.parametrize(
    ("path", "answer"), [("entries", {"rows": [{}]}), ("benchmarks", ["no", "table"])]
)
def test_an_answer_that_is_none_of_the_api_is_a_failure(
    pair: Pair, path: str, answer: object
) -> None:
    done = run(*pair(lambda said: said["v1"].update({path: answer})), "--only", "demo")
    assert (done.exit_code, done.stdout) == (BROKEN, "")


@pytest.mark.parametrize("listed", ["[[scores", '[[scores]]\nname = "x"', None])
def test_a_bundle_that_cannot_be_read_or_is_not_there_is_a_failure(
    pair: Pair, listed: str | None
) -> None:
    a, b = pair(a=True, b=listed is not None)
    if listed is not None:
        (a / "benchmarks/released/released.toml").write_text(listed)
    assert run(a, b, "--only", "bundle").exit_code == BROKEN


@pytest.mark.parametrize(
    "words",
    ["", "{a}", "{a} no-such-revision", "{a} {a}/evaluator", "{a} {a} --tolerance -1",
     "{a} {a} --only models", "{a} {a} --keep {a}"],
)  # fmt: skip
def test_wrong_usage(pair: Pair, words: str) -> None:
    a, _ = pair()
    assert run(*words.format(a=a).split()).exit_code == USAGE


def test_a_revision_is_exported_and_removed(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = pair()
    monkeypatch.chdir(a)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        who = ["-c", "user.name=us", "-c", "user.email=us@example.org"]
        subprocess.run(["git", *who, *words], check=True)
    changed = answers()
    board(changed)[0]["value"] = NEXT
    (a / "answers.json").write_text(json.dumps(changed))
    done = run("HEAD", ".", "--only", "demo", "--json")
    assert done.exit_code == DIFFERENT, done.stderr
    assert {d["a"] for d in json.loads(done.stdout)["differences"]} == {0.1 + 0.2}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]


def test_the_interpreter_is_the_given_one_or_that_of_the_checkout(
    pair: Pair, tmp_path: Path
) -> None:
    assert interpreter_of(tmp_path, None) == Path(sys.executable)
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    assert interpreter_of(tmp_path, None) == own
    assert interpreter_of(tmp_path, Path("python3.11")) == Path("python3.11")
    assert run(*pair(), "--python", tmp_path / "no-python").exit_code == BROKEN
