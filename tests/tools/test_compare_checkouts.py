"""Comparing checkouts: rows bit for bit by what they are of, and the command on tiny checkouts."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from tools.compare_checkouts import BROKEN, DIFFERENT, interpreter_of, main
from tools.row_differences import (
    FACTS,
    IGNORED,
    Difference,
    Level,
    Table,
    compare_tables,
    make_table,
    same,
)

Record = dict[str, Any]


# Rows, without what differs in every run.

ROW = {
    "entry_id": "clip 1",
    "measure": "srcc",
    "skill": None,
    "value": 0.1,
    "ci_high": None,
    "rank": 1,
    "note": "",
}
OTHER = {**ROW, "entry_id": "blip 1", "value": 0.2}
PUBLISHED = ("value", "ci_low", "p_corrected", "rank_high", "tier", "n_items", "note")
KEY, NAME = "clip 1 · srcc", "boards/ts2"
FACT = {"n_tests": 3, "notes": [{"note": "few"}]}


def table(*rows: Record, board: str = "ts2", name: str = NAME, **facts: Any) -> Table:
    return make_table(board, "rankings", name, rows, facts={**FACT, **facts})


def value(name: str, a: Any, b: Any, row: str = KEY) -> Difference:
    return Difference(Level.VALUE, "ts2", NAME, row, name, a, b)


A = table(ROW, OTHER)
BIT = math.nextafter(0.1, 1)
WIDER = table(ROW, name="boards/ts2?skill=colour")
MISSING = Difference(Level.ROW, "ts2", NAME, "blip 1 · srcc", only_in="A")
NOTES = value("notes", FACT["notes"], [], FACTS)


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        ([table(OTHER, ROW)], []),
        ([table({**ROW, "value": BIT}, OTHER)], [value("value", 0.1, BIT)]),
        ([table({**ROW, "rank": 1.0}, OTHER)], [value("rank", 1, 1.0)]),
        ([table({**ROW, "ci_high": math.nan}, OTHER)], [value("ci_high", None, math.nan)]),
        ([table(ROW)], [MISSING]),
        ([table(ROW, OTHER, notes=[])], [NOTES]),
        ([A, table(ROW, board="gecko")], [Difference(Level.BOARD, "gecko", only_in="B")]),
        ([A, WIDER], [Difference(Level.TABLE, "ts2", WIDER.name, only_in="B")]),
    ],
)
def test_a_difference_is_told_as_what_it_is(b: list[Table], expected: list[Difference]) -> None:
    comparison = compare_tables([A], b)
    # NaN is not equal to itself, so the values are compared by their text.
    assert repr(list(comparison.differences)) == repr(expected)
    assert comparison.equal == (not expected)


def test_values_are_the_same_by_their_bits_and_a_tolerance_is_of_floats_alone() -> None:
    nan = math.nan
    equal = [(nan, nan, 0.0), ({"a": [nan], "b": 1}, {"b": 1, "a": [nan]}, 0.0),
             (0.1, 0.1 + 1e-12, 1e-9), ([{"p": 0.1}], [{"p": 0.1 + 1e-12}], 1e-9)]  # fmt: skip
    other = [(nan, None, 0.0), (0.0, -0.0, 0.0), (1, 1.0, 0.0), (1, True, 0.0), ([1, 2], [2, 1], 0.0),
             (0.1, 0.1 + 1e-6, 1e-9), (1, 2, 1e-9), (nan, 0.1, 1e-9), ({"p": 1}, {"q": 1}, 1e-9)]  # fmt: skip
    assert [case for case in equal if not same(*case)] == []
    assert [case for case in other if same(*case)] == []


def test_what_differs_in_every_run_is_left_out_at_any_depth_and_what_is_published_never() -> None:
    for name in IGNORED:
        a, b = (table({**ROW, name: n}, OTHER, provenance={"ts2": {name: n}}) for n in (7, 8))
        assert compare_tables([a], [b]).differences == ()
    for name in PUBLISHED:
        comparison = compare_tables([table({**ROW, name: 7})], [table({**ROW, name: 8})])
        assert comparison.per_field() == {name: 1}


def test_a_new_field_is_a_note_and_a_lost_one_a_difference() -> None:
    wider = table({**ROW, "best_share": 1.0}, {**OTHER, "best_share": 0.0}, rule="strict")
    gained, lost = compare_tables([A], [wider]), compare_tables([wider], [A])
    assert gained.equal
    assert [note.split("`")[1] for note in gained.notes] == ["rule", "best_share"]
    fields = [(d.level, d.field, d.only_in) for d in lost.differences]
    assert fields == [(Level.FIELD, name, "A") for name in ("rule", "best_share")]


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
    row: Record
    whose = {"version": "1", "submitter": "us"}
    entries, queue, ranked = list[Record](), list[Record](), list[Record]()
    for rank, (entry_id, of) in enumerate(((CLIP, 0.1 + 0.2), (BLIP, 0.25)), 1):
        submission, _, name = entry_id.partition("/")
        row = {"entry_id": entry_id, "metric": name, "benchmarks": "tiny", "published_at": NOW}
        entries.append(whose | row)
        row = {"submission_id": submission, "name": name, "state": "published", "wait_s": None}
        queue.append(whose | row)
        row = {"entry_id": entry_id, "measure": "srcc", "rank": rank, "value": of}
        ranked.append(row | {"tier": rank, "pairs_per_s": 17.5})
    pair = {"entry_a": CLIP, "entry_b": BLIP, "p_value": 0.03, "p_corrected": 0.03}
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
            "boards/tiny/pairs": {"about": {"correction": "joint"}, "rows": [pair]},
        },
    }


def make_checkout(folder: Path, content: Record, *, bundle: bool) -> Path:
    """What its commands and its site answer, and whether it has released results."""
    (folder / "evaluator").mkdir(parents=True)
    (folder / "evaluator" / "__init__.py").touch()
    (folder / "evaluator" / "__main__.py").write_text(EVALUATOR)
    (folder / "app.py").write_text(APP)
    (folder / "answers.json").write_text(json.dumps(content))
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

    def make(change: Callable[[Record], object], *, bundle: bool = False) -> tuple[Path, Path]:
        other = answers()
        change(other)
        return (
            make_checkout(tmp_path / "a", answers(), bundle=bundle),
            make_checkout(tmp_path / "b", other, bundle=bundle),
        )

    return make


def board(content: Record) -> list[Record]:
    rows: list[Record] = content["v1"]["boards/tiny"]["rows"]
    return rows


def run_later(content: Record) -> None:
    """Another time and speed, another order of the lines, other ids of the same metrics."""
    content["v1"]["boards/tiny"]["about"]["as_of"] = "2026-11-23T12:00:00+00:00"
    board(content)[0]["pairs_per_s"] = 11.0
    board(content).reverse()
    moved = json.dumps(content["v1"])
    for entry_id in (CLIP, BLIP):
        old = entry_id.partition("/")[0]
        moved = moved.replace(old, f"{old}99")
    content["v1"] = json.loads(moved)


def test_a_later_run_of_the_same_is_equal(pair: Pair, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = run(*pair(run_later, bundle=True), "--keep", kept, "--json")
    assert done.exit_code == EQUAL, done.stderr
    report = json.loads(done.stdout)
    assert (report["equal"], report["differences"], report["notes"]) == (True, [], [])
    rows = {kind: count["rows_a"] for kind, count in report["compared"].items()}
    assert rows["entries"] == rows["submissions"] == 2
    assert rows["rankings"] == 6  # The slice, without those trained on it, by two skills.
    assert rows["tests"] == 3
    assert (rows["released measures"], rows["released tests"]) == (2, 1)
    for side in "AB":
        files = {path.name for path in (kept / side).iterdir()}
        assert {"store", "demo.log", "app.log", "rows.json"} <= files
    # Metrics for which lower is better are named to the commands.
    tables = json.loads((kept / "A" / "rows.json").read_text())
    released = [table for table in tables if table["name"].endswith("tiny-results")]
    assert all(row["lower"] for table in released for row in table["rows"].values())


def change_much(content: Record) -> None:
    board(content)[0].update(value=NEXT)
    board(content).pop()
    content["v1"]["boards/tiny/pairs"]["rows"][0].update(p_value=0.04)
    content["v1"]["benchmarks"]["rows"].append({"name": "new", "headline": "x"})
    content["meta"][0]["value"] = NEXT


@pytest.mark.slow
def test_what_changed_is_told_and_grouped_by_board_for_people(pair: Pair) -> None:
    checkouts = pair(change_much, bundle=True)
    done = run(*checkouts, "--json")
    assert done.exit_code == DIFFERENT
    report = json.loads(done.stdout)
    assert report["per_field"] == {
        "value": 4, "(row missing)": 4, "p_value": 3, "(board missing)": 1,
    }  # fmt: skip
    assert len(report["differences"]) == sum(report["per_field"].values())
    done = run(*checkouts, "--only", "demo")
    assert f"clip 1 · srcc | value: {0.1 + 0.2!r} in A, {NEXT!r} in B" in done.stdout


def test_a_tolerance_and_ignored_fields_make_it_equal(pair: Pair) -> None:
    a, b = pair(lambda content: board(content)[0].update(value=NEXT))
    for words in (("--tolerance", "1e-9"), ("--ignore", "value")):
        assert run(a, b, "--only", "demo", *words).exit_code == EQUAL


@pytest.mark.first_quick
@pytest.mark.parametrize("broken", ["demo", "app", "meta"])
def test_a_side_that_fails_is_told_with_the_end_of_its_log(pair: Pair, broken: str) -> None:
    done = run(*pair(lambda content: content["broken"].append(broken), bundle=True))
    assert (done.exit_code, done.stdout) == (BROKEN, "")
    assert "error: B: " in done.stderr
    assert ("no site" if broken == "app" else "it broke") in done.stderr


def test_what_is_no_answer_of_the_api_nor_a_list_of_results_is_a_failure(pair: Pair) -> None:
    a, b = pair(lambda content: content["v1"].update(benchmarks=["no", "table"]), bundle=True)
    assert run(a, b, "--only", "demo").exit_code == BROKEN
    (b / "benchmarks/released/released.toml").write_text("[[scores")
    assert run(a, b, "--only", "bundle").exit_code == BROKEN


def test_wrong_usage(pair: Pair) -> None:
    a, _ = pair(lambda _: None)
    for words in ("", "{a}", "{a} no-such-revision", "{a} {a}/evaluator", "{a} {a} --tolerance -1",
                  "{a} {a} --only models", "{a} {a} --keep {a}"):  # fmt: skip
        assert run(*words.format(a=a).split()).exit_code == USAGE, words


def test_a_revision_is_exported_and_removed(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = pair(lambda _: None)
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


def test_the_interpreter_is_the_named_one_or_that_of_the_checkout(tmp_path: Path) -> None:
    assert interpreter_of(tmp_path, None) == Path(sys.executable)
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    assert interpreter_of(tmp_path, None) == own
    assert interpreter_of(tmp_path, Path("python3.11")) == Path("python3.11")
