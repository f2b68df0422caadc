"""`python -m benchmarks` on prompt sets: listed, described, exported as a folder to draw into."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.prompt_sets.folder_template import MANIFEST, TABLE, FolderTemplate, template_files
from benchmarks.prompt_sets.prompt_set import Drawing, load_prompt_sets
from evaluator.generation.manifest import parse_generations, parse_rows
from leaderboard.records import ModelCard
from tests.kit.checks import Command

SETS = load_prompt_sets()
DEMO = SETS["demo_prompts"]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return Command(main, monkeypatch, capsys)


def told(call: Command, *words: object) -> Any:
    """What is told to programs."""
    assert call(*words, "--json") == 0
    return json.loads(call.out)


@pytest.mark.slow
def test_sets_are_listed_with_what_is_asked_for_and_behind_the_benchmarks(call: Command) -> None:
    assert call("prompts") == 0
    assert all(name in call.out for name in SETS)
    lines = {line["name"]: line for line in told(call, "prompts")}
    assert set(lines) == set(SETS)
    assert lines["demo_prompts"].items() >= {
        "n_prompts": 76, "prompts": True, "track": "models", "rated_by": "demo_gecko",
    }.items()  # fmt: skip
    assert lines["demo_prompts"]["seeds"] == [1, 2]
    gecko = lines["gecko_s"]
    assert (gecko["prompts"], gecko["n_prompts"], gecko["problems"]) == (False, None, {})
    tracks = {line["name"]: line["track"] for line in told(call, "list")}
    assert list(tracks.values()) == sorted(tracks.values())
    assert {name for name, track in tracks.items() if track == "models"} == set(SETS)
    call("list")
    assert call.out.index("demo_gecko") < call.out.index("demo_prompts")


def test_a_broken_set_stands_in_the_list_beside_the_others(call: Command, tmp_path: Path) -> None:
    (tmp_path / "gecko").mkdir()
    (tmp_path / "gecko/prompts.csv").write_text("x\n1\n")
    assert call("prompts", "--data", tmp_path) == 0
    row = next(line for line in call.out.splitlines() if line.strip().startswith("gecko_s "))
    assert "broken" in row
    assert "gecko_s: " in call.out
    assert "dataset_id" in call.out


def test_a_prompt_set_is_described_with_seeds_and_sizes(call: Command) -> None:
    assert call("describe", "demo_prompts") == 0
    for part in ("152 images", "seeds 1, 2", "64 to 1024", "demo_gecko"):
        assert part in call.out
    said = told(call, "describe", "gecko_s")
    assert (said["track"], said["drawing"]["seeds"]) == ("models", [42, 3407, 5096])
    assert said["problem"]["code"] == "data_missing"
    assert call("describe", "demo_prompts", "--facts") == 0


def test_the_judge_of_a_sets_authors_is_named_with_the_metrics_that_are_it(call: Command) -> None:
    assert call("describe", "geneval2") == 0
    for part in ("judge: Soft-TIFA", "softtifa-am, softtifa-gm"):
        assert part in " ".join(call.out.split())
    judges = {line["name"]: line["judge"] for line in told(call, "prompts")}
    assert judges["geneval2"]["metrics"] == ["softtifa-am", "softtifa-gm"]
    assert judges["geneval"]["metrics"] == []
    assert judges["demo_prompts"] is judges["partiprompts"] is None


@pytest.mark.slow
@pytest.mark.paper
def test_facts_are_what_was_printed_and_what_the_ratings_of_its_models_say(
    call: Command, assay_data: Path
) -> None:
    words = ("describe", "evalmuse_ranking", "--facts", "--data", assay_data)
    [(title, rows)] = told(call, *words)["facts"].items()
    assert title.startswith("EvalMuse-40K, Table 10")
    assert rows[0]["fga-blip2 all"] == "3.74 (1)"
    assert call(*words) == 0
    assert "Dreamina v2.0Pro" in call.out
    facts = told(call, "describe", "tifa160_prompts", "--facts", "--data", assay_data)["facts"]
    means = {row["model"]: row["human_avg"] for row in facts["TIFA160: Mean rating by model"]}
    assert round(means["mini_dalle"], 4) == 3.7969


def test_prompts_of_a_set_are_written_as_those_of_a_benchmark(
    call: Command, tmp_path: Path
) -> None:
    out = tmp_path / "demo.jsonl"
    assert call("prompts", "demo_prompts", "--out", out) == 0
    first = json.loads(out.read_text(encoding="utf-8").splitlines()[0])
    assert set(first) == {"prompt_id", "prompt", "split", "skills"}
    assert first["skills"] == "color;color:simple"


def test_a_folder_to_draw_into_is_what_a_submission_of_generations_is(
    call: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "my-model"
    assert call("prompts", "demo_prompts", "--manifest", "--out", folder) == 0
    for part in ("76 prompts", "152 images", f"python -m evaluator check {folder}"):
        assert part in call.err
    names = ["assay.toml", "images", "images.jsonl", "prompts.csv"]
    assert sorted(p.name for p in folder.iterdir()) == names
    manifest = parse_generations((folder / "assay.toml").read_bytes())
    assert (manifest.name, manifest.benchmark) == ("my-model", "demo_prompts")
    assert (manifest.benchmark_revision, manifest.seeds) == (DEMO.card.revision, (1, 2))
    rows, broken = parse_rows((folder / "images.jsonl").read_bytes())
    assert not broken
    prompts = DEMO.set_prompts(None)
    assert [(r.prompt_id, r.prompt, r.seed) for r in rows] == [
        (one.prompt_id, one.text, seed) for one in prompts for seed in (1, 2)
    ]
    assert list(pd.read_csv(folder / "prompts.csv")["prompt_id"]) == [p.prompt_id for p in prompts]
    # What is commented out in the manifest is read once it is not.
    lines = (folder / "assay.toml").read_text(encoding="utf-8").splitlines()
    whole = [x.removeprefix("# ") if x.startswith("# ") and " = " in x else x for x in lines]
    assert set(ModelCard.model_fields) <= set(tomllib.loads("\n".join(whole)))
    manifest = parse_generations("\n".join(whole).encode())
    assert (manifest.steps, manifest.guidance) == (28, 7.0)
    assert (manifest.selection, manifest.best_of) == ("best_of", 4)
    assert manifest.model_card().drawn_on == "2026-01-31"


def test_seeds_name_and_form_can_be_chosen(call: Command, tmp_path: Path) -> None:
    folder = tmp_path / "some folder"
    words = ("prompts", "demo_prompts", "--manifest", "--out", folder)
    chosen = ("--seeds", "7,18446744073709551615", "--name", "sd3", "--format", "parquet")
    assert call(*words, *chosen) == 0
    values = tomllib.loads((folder / "assay.toml").read_text())
    assert (values["name"], values["seeds"]) == ("sd3", [7, 2**64 - 1])
    assert len(pd.read_parquet(folder / "prompts.parquet")) == 76


@pytest.mark.paper
def test_a_benchmark_of_metrics_can_be_drawn_too(
    call: Command, assay_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    assert call("prompts", "gecko", "--data", assay_data, "--manifest", "--out", folder) == 0
    first = json.loads((folder / "images.jsonl").read_bytes().splitlines()[0])
    assert set(first) == {"prompt_id", "seed", "file", "prompt"}
    assert tomllib.loads((folder / "assay.toml").read_text())["seeds"] == [42, 3407, 5096]


DRAW = ("demo_prompts", "--manifest")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (DRAW, 2, "new folder"),
        ((*DRAW, "--out", "m", "--force"), 2, "replaces no"),
        (("demo_prompts", "--seeds", "1"), 2, "--manifest"),
        (("demo_prompts", "--name", "m"), 2, "--manifest"),
        (("demo_prompts", "--json"), 2, "--format jsonl"),
        (("--manifest", "--out", "m"), 2, "prompt set"),
        (("--out", "m.csv"), 2, "prompt set"),
        (("nothing",), 1, "unknown_benchmark"),
        ((*DRAW, "--out", "m", "--seeds", "x"), 1, "bad_seeds"),
        ((*DRAW, "--out", "a b"), 1, "bad_metric_name"),
        ((*DRAW, "--out", "m", "--name", "<b>"), 1, "bad_metric_name"),
        ((*DRAW, "--out", "x" * 300), 1, "bad_metric_name"),
        (("gecko_s", "--manifest", "--out", "m"), 1, "data_missing"),
        (("demo_ts2", "--manifest", "--out", "m"), 1, "no_prompts"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(
    call: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...],
    *, code: int, says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert call("prompts", *words) == code
    assert says in call.err
    assert "Traceback" not in call.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(call: Command, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/mine.txt").write_text("mine")
    assert call("prompts", *DRAW, "--out", tmp_path / "m") == 1
    assert "folder_exists" in call.err
    assert [p.name for p in (tmp_path / "m").iterdir()] == ["mine.txt"]


def test_fetch_knows_prompt_sets_and_finds_what_is_there(
    call: Command, assay_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "gecko").mkdir()
    content = (assay_data / "gecko/prompts.csv").read_bytes()
    (tmp_path / "gecko/prompts.csv").write_bytes(content)
    done = told(call, "fetch", "gecko_s_rel", "--data", tmp_path)
    assert done["there"] == ["gecko/prompts.csv"]


def test_a_prompt_set_has_no_questions_to_export(call: Command, tmp_path: Path) -> None:
    assert call("questions", "demo_prompts", "--out", tmp_path / "q") == 1
    assert "[images_missing]: demo_prompts" in call.err


# The files of the folder.

WANTED = FolderTemplate(
    [("A/1", 'a "red" cup\nof tea'), ("a-1", "größer \u2028")],
    (1, 2**64 - 1),
    "gecko_s",
    "e5f8ac2",
    Drawing(least_side=256, most_side=2048),
)


def rows_of(wanted: FolderTemplate) -> list[dict[str, object]]:
    lines = template_files("m", wanted)[TABLE].split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines]


def test_every_prompt_is_wanted_once_with_every_seed() -> None:
    found = rows_of(WANTED)
    assert len(found) == WANTED.n_images == 4
    asked = [(name, seed, text) for name, text in WANTED.prompts for seed in WANTED.seeds]
    assert [(row["prompt_id"], row["seed"], row["prompt"]) for row in found] == asked
    assert len({str(row["file"]).lower() for row in found}) == 4
    assert {(row["least_side"], row["most_side"]) for row in found} == {(256, 2048)}


def test_the_manifest_says_whose_prompts_they_are() -> None:
    assert tomllib.loads(template_files("my-model", WANTED)[MANIFEST].decode()) == {
        "kind": "generations", "name": "my-model", "version": "1", "benchmark": "gecko_s",
        "benchmark_revision": "e5f8ac2", "seeds": [1, 2**64 - 1], "images": TABLE,
    }  # fmt: skip
    own = FolderTemplate([("a", "b")], (1,))
    assert "benchmark" not in tomllib.loads(template_files("m", own)[MANIFEST].decode())
    assert set(rows_of(own)[0]) == {"prompt_id", "seed", "file", "prompt"}
