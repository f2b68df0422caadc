"""The command on tiny checkouts: what it runs, what it says, and how it ends."""

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
from tests.tools.fake_checkout import BLIP, CLIP, answers, make_checkout
from tools.compare_checkouts import BROKEN, DIFFERENT, interpreter_of, main

EQUAL, USAGE = 0, 2
APP = typer.Typer()
APP.command()(main)
NEXT = math.nextafter(0.1 + 0.2, 1)


def run(*words: object) -> Result:
    return CliRunner().invoke(APP, ["--python", sys.executable, *map(str, words)])


@pytest.fixture
def pair(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Two checkouts; the second as a function changes it."""

    def make(
        change: Callable[[dict[str, Any]], object] = lambda _: None,
        *,
        bundles: tuple[bool, bool] = (False, False),
    ) -> tuple[Path, Path]:
        other = answers()
        change(other)
        return (
            make_checkout(tmp_path / "a", answers(), bundle=bundles[0]),
            make_checkout(tmp_path / "b", other, bundle=bundles[1]),
        )

    return make


Pair = Callable[..., tuple[Path, Path]]


def board(said: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = said["v1"]["boards/tiny"]["rows"]
    return rows


def later_run(said: dict[str, Any]) -> None:
    """Another time, another speed, another order of the lines."""
    said["v1"]["boards/tiny"]["about"]["as_of"] = "2026-11-23T12:00:00+00:00"
    board(said)[0]["pairs_per_s"] = 11.0
    board(said).reverse()


def test_two_checkouts_from_start_to_end(pair: Pair, tmp_path: Path) -> None:
    """`python -m tools.compare_checkouts A B`, as a maker runs it."""
    a, b = pair(later_run, bundles=(True, True))
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
        (
            lambda said: said["v1"]["boards/tiny/pairs"]["rows"][0].update(p_value=0.04),
            {"p_value": 3},
        ),
        (lambda said: said["v1"].pop("boards/tiny/pairs"), {"refused": 3, "(row missing)": 3,
         "correction": 3}),
        (
            lambda said: said["v1"]["benchmarks"]["rows"].append({"name": "new", "headline": "x"}),
            {"(row missing)": 1, "(board missing)": 1},
        ),
    ],
    ids=["last bit", "tier", "row", "p-value", "refused", "board"],
)  # fmt: skip
def test_what_changed_on_the_site_is_told(
    pair: Pair, change: Callable[[dict[str, Any]], object], per_field: dict[str, int]
) -> None:
    done = run(*pair(change), "--only", "demo", "--json")
    assert done.exit_code == DIFFERENT
    said = json.loads(done.stdout)
    assert said["per_field"] == per_field
    assert len(said["differences"]) == sum(per_field.values())


def test_differences_are_grouped_by_board_for_people(pair: Pair) -> None:
    done = run(*pair(lambda said: board(said)[0].update(value=NEXT)), "--only", "demo")
    assert done.exit_code == DIFFERENT
    assert "tiny: 3 differences" in done.stdout
    assert f"clip 1 · srcc | value: {0.1 + 0.2!r} in A, {NEXT!r} in B" in done.stdout


@pytest.mark.slow
def test_a_tolerance_and_ignored_fields_make_it_equal(pair: Pair) -> None:
    def change(said: dict[str, Any]) -> None:
        board(said)[0].update(value=NEXT, note="new")
        board(said)[1].update(note="")

    a, b = pair(change)
    done = run(a, b, "--only", "demo", "--tolerance", "1e-9")
    assert done.exit_code == EQUAL
    assert "B adds `note` to rankings" in done.stdout
    assert run(b, a, "--only", "demo", "--ignore", "note", "--ignore", "value").exit_code == EQUAL


def test_other_ids_of_the_same_metrics_are_no_difference(pair: Pair, tmp_path: Path) -> None:
    a, b = pair()
    moved = (b / "answers.json").read_text()
    for entry_id in (CLIP, BLIP):
        old = entry_id.partition("/")[0]
        moved = moved.replace(old, f"{old}99")
    (b / "answers.json").write_text(moved)
    assert run(a, b, "--only", "demo").exit_code == EQUAL


def test_released_scores_are_measured_and_compared(pair: Pair) -> None:
    def change(said: dict[str, Any]) -> None:
        said["meta"][0]["value"] = NEXT
        said["compare"][0]["p_value"] = 0.04

    done = run(*pair(change, bundles=(True, True)), "--only", "bundle", "--json")
    assert done.exit_code == DIFFERENT
    assert [
        (d["board"], d["table"], d["field"]) for d in json.loads(done.stdout)["differences"]
    ] == [
        ("tiny", "meta tiny-results", "value"),
        ("tiny", "compare tiny-results", "p_value"),
    ]


def test_metrics_for_which_lower_is_better_are_named(pair: Pair, tmp_path: Path) -> None:
    run(*pair(bundles=(True, True)), "--only", "bundle", "--keep", tmp_path / "kept")
    tables = json.loads((tmp_path / "kept" / "A" / "rows.json").read_text())
    assert all(row["lower"] for one in tables for row in one["rows"].values())


def test_what_has_no_bundle_is_compared_without_it(pair: Pair) -> None:
    done = run(*pair(bundles=(False, True)), "--json")
    said = json.loads(done.stdout)
    assert (done.exit_code, said["notes"]) == (
        EQUAL,
        ["A has no bundle (benchmarks/released/released.toml)"],
    )
    assert "released measures" not in said["compared"]


@pytest.mark.parametrize(
    ("broken", "words"),
    [("demo", "it broke at the end"), ("app", "no site today"), ("meta", "it broke at the end")],
)
def test_a_side_that_fails_is_told_with_the_end_of_its_log(
    pair: Pair, broken: str, words: str
) -> None:
    done = run(*pair(lambda said: said["broken"].append(broken), bundles=(True, True)))
    assert (done.exit_code, done.stdout) == (BROKEN, "")
    assert "error: B: " in done.stderr
    assert words in done.stderr


@pytest.mark.parametrize(
    ("path", "answer"), [("entries", {"rows": [{}]}), ("benchmarks", ["no", "table"])]
)
def test_an_answer_that_is_none_of_the_api_is_a_failure(
    pair: Pair, path: str, answer: object
) -> None:
    done = run(*pair(lambda said: said["v1"].update({path: answer})), "--only", "demo")
    assert (done.exit_code, done.stdout) == (BROKEN, "")


@pytest.mark.parametrize("listed", ["[[scores", '[[scores]]\nname = "x"'])
def test_a_list_of_released_scores_that_cannot_be_read_is_a_failure(
    pair: Pair, listed: str
) -> None:
    a, b = pair(bundles=(True, True))
    (a / "benchmarks/released/released.toml").write_text(listed)
    assert run(a, b, "--only", "bundle").exit_code == BROKEN


def test_a_bundle_that_is_not_there_cannot_be_all_that_is_compared(pair: Pair) -> None:
    assert run(*pair(bundles=(True, False)), "--only", "bundle").exit_code == BROKEN


def test_an_interpreter_that_does_not_start_is_a_failure(pair: Pair, tmp_path: Path) -> None:
    assert run(*pair(), "--python", tmp_path / "no-python").exit_code == BROKEN


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("{a}",),
        ("{a}", "no-such-revision"),
        ("{a}", "{a}/evaluator"),
        ("{a}", "{a}", "--tolerance", "-1"),
        ("{a}", "{a}", "--only", "models"),
        ("{a}", "{a}", "--keep", "{a}"),
    ],
)
def test_wrong_usage(pair: Pair, words: tuple[str, ...]) -> None:
    a, _ = pair()
    assert run(*(word.format(a=a) for word in words)).exit_code == USAGE


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


def test_the_interpreter_is_the_given_one_or_that_of_the_checkout(tmp_path: Path) -> None:
    assert interpreter_of(tmp_path, None) == Path(sys.executable)
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    assert interpreter_of(tmp_path, None) == own
    assert interpreter_of(tmp_path, Path("python3.11")) == Path("python3.11")
