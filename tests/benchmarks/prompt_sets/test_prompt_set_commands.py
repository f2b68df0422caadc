"""`python -m benchmarks` on prompt sets: listed, described, exported as a folder to draw into."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.prompt_sets.registry import load_prompt_sets
from evaluator.generation.manifest import parse_generations
from evaluator.generation.rows import parse_rows

SETS = load_prompt_sets()


@dataclass
class Ended:
    code: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["benchmarks", *map(str, words)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return run


def test_without_a_name_the_sets_are_listed_with_what_is_asked_for(call: Call) -> None:
    end = call("prompts")
    assert end.code == 0
    assert all(name in end.out for name in SETS)
    lines = {line["name"]: line for line in json.loads(call("prompts", "--json").out)}
    assert set(lines) == set(SETS)
    demo = lines["demo_prompts"]
    assert (demo["n_prompts"], demo["prompts"], demo["seeds"]) == (76, True, [1, 2])
    assert (demo["track"], demo["rated_by"]) == ("models", "demo_gecko")
    assert lines["gecko_s"]["prompts"] is False
    assert lines["gecko_s"]["n_prompts"] is None
    assert lines["gecko_s"]["problems"] == {}


def test_a_broken_set_stands_in_the_list_beside_the_others(call: Call, tmp_path: Path) -> None:
    (tmp_path / "gecko").mkdir()
    (tmp_path / "gecko/prompts.csv").write_text("x\n1\n")
    end = call("prompts", "--data", tmp_path)
    assert end.code == 0
    row = next(line for line in end.out.splitlines() if line.strip().startswith("gecko_s "))
    assert "broken" in row
    assert "gecko_s: " in end.out
    assert "has no column dataset_id" in end.out


def test_the_list_of_benchmarks_ends_with_the_prompt_sets(call: Call) -> None:
    lines = json.loads(call("list", "--json").out)
    tracks = [line["track"] for line in lines]
    assert tracks == sorted(tracks)
    assert {line["name"] for line in lines if line["track"] == "models"} == set(SETS)
    shown = call("list").out
    assert shown.index("demo_gecko") < shown.index("prompt set") < shown.index("demo_prompts")


def test_a_prompt_set_is_described_with_seeds_and_sizes(call: Call) -> None:
    end = call("describe", "demo_prompts")
    assert end.code == 0
    assert "152 images: 2 images of each prompt, seeds 1, 2" in end.out
    assert "sides of 64 to 1024 pixels" in end.out
    assert "see demo_gecko" in end.out
    said = json.loads(call("describe", "gecko_s", "--json").out)
    assert said["track"] == "models"
    assert said["drawing"]["seeds"] == [42, 3407, 5096]
    assert said["problem"]["code"] == "data_missing"


@pytest.mark.paper
def test_facts_of_a_prompt_set_are_what_was_printed(call: Call, assay_data: Path) -> None:
    words = ("describe", "evalmuse_ranking", "--facts", "--data", assay_data)
    [(title, rows)] = json.loads(call(*words, "--json").out)["facts"].items()
    assert title.startswith("EvalMuse-40K, Table 10")
    assert rows[0]["fga-blip2 all"] == "3.74 (1)"
    end = call(*words)
    assert end.code == 0
    assert "Dreamina v2.0Pro" in end.out
    assert call("describe", "demo_prompts", "--facts").code == 0


@pytest.mark.paper
def test_facts_of_a_prompt_set_are_also_what_the_ratings_of_its_models_say(
    call: Call, assay_data: Path
) -> None:
    words = ("describe", "tifa160_prompts", "--facts", "--data", assay_data)
    facts = json.loads(call(*words, "--json").out)["facts"]
    rows = {row["model"]: row for row in facts["TIFA160: Mean rating by model"]}
    assert round(rows["mini_dalle"]["human_avg"], 4) == 3.7969


def test_prompts_of_a_set_are_written_as_those_of_a_benchmark(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "demo.jsonl"
    assert call("prompts", "demo_prompts", "--out", out).code == 0
    first = json.loads(out.read_text(encoding="utf-8").splitlines()[0])
    assert set(first) == {"prompt_id", "prompt", "split", "skills"}
    assert first["skills"] == "color;color:simple"


def test_a_folder_to_draw_into_is_what_a_submission_of_generations_is(
    call: Call, tmp_path: Path
) -> None:
    folder = tmp_path / "my-model"
    end = call("prompts", "demo_prompts", "--manifest", "--out", folder)
    assert end.code == 0
    assert "76 prompts in prompts.csv, 152 images in images.jsonl" in end.err
    assert f"python -m evaluator check {folder}" in end.err
    assert sorted(p.name for p in folder.iterdir()) == [
        "assay.toml",
        "images",
        "images.jsonl",
        "prompts.csv",
    ]
    manifest = parse_generations((folder / "assay.toml").read_bytes())
    assert (manifest.name, manifest.benchmark) == ("my-model", "demo_prompts")
    assert manifest.benchmark_revision == SETS["demo_prompts"].card.revision
    assert manifest.seeds == (1, 2)
    rows, broken = parse_rows((folder / "images.jsonl").read_bytes())
    assert not broken
    prompts = SETS["demo_prompts"].set_prompts(None)
    assert [(r.prompt_id, r.prompt, r.seed) for r in rows] == [
        (one.prompt_id, one.text, seed) for one in prompts for seed in (1, 2)
    ]
    assert list(pd.read_csv(folder / "prompts.csv")["prompt_id"]) == [p.prompt_id for p in prompts]


def test_what_is_commented_out_in_the_manifest_is_read_once_it_is_not(
    call: Call, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    call("prompts", "demo_prompts", "--manifest", "--out", folder)
    lines = (folder / "assay.toml").read_text(encoding="utf-8").splitlines()
    whole = [x.removeprefix("# ") if x.startswith("# ") and " = " in x else x for x in lines]
    assert len(tomllib.loads("\n".join(whole))) > len(tomllib.loads("\n".join(lines)))
    manifest = parse_generations("\n".join(whole).encode())
    assert (manifest.steps, manifest.guidance) == (28, 7.0)
    assert (manifest.selection, manifest.best_of) == ("best_of", 4)
    assert manifest.model_card().drawn_on == "2026-01-31"


def test_seeds_name_and_form_can_be_chosen(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "some folder"
    words = ("prompts", "demo_prompts", "--manifest", "--out", folder)
    end = call(*words, "--seeds", "7,18446744073709551615", "--name", "sd3", "--format", "parquet")
    assert end.code == 0
    values = tomllib.loads((folder / "assay.toml").read_text())
    assert (values["name"], values["seeds"]) == ("sd3", [7, 2**64 - 1])
    assert len(pd.read_parquet(folder / "prompts.parquet")) == 76


@pytest.mark.paper
def test_a_benchmark_of_metrics_can_be_drawn_too(
    call: Call, assay_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    words = ("prompts", "gecko", "--data", assay_data, "--manifest", "--out", folder)
    assert call(*words).code == 0
    first = json.loads((folder / "images.jsonl").read_bytes().splitlines()[0])
    assert set(first) == {"prompt_id", "seed", "file", "prompt"}
    assert tomllib.loads((folder / "assay.toml").read_text())["seeds"] == [42, 3407, 5096]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("demo_prompts", "--manifest"), 2, "needs a new folder"),
        (("demo_prompts", "--manifest", "--out", "m", "--force"), 2, "replaces no folder"),
        (("demo_prompts", "--seeds", "1"), 2, "go with --manifest"),
        (("demo_prompts", "--name", "m"), 2, "go with --manifest"),
        (("demo_prompts", "--json"), 2, "--format jsonl"),
        (("--manifest", "--out", "m"), 2, "name the prompt set"),
        (("--out", "m.csv"), 2, "name the prompt set"),
        (("nothing",), 1, "unknown_benchmark"),
        (("demo_prompts", "--manifest", "--out", "m", "--seeds", "x"), 1, "bad_seeds"),
        (("demo_prompts", "--manifest", "--out", "a b"), 1, "bad_metric_name"),
        (("demo_prompts", "--manifest", "--out", "m", "--name", "<b>"), 1, "bad_metric_name"),
        (("demo_prompts", "--manifest", "--out", "x" * 300), 1, "bad_metric_name"),
        (("gecko_s", "--manifest", "--out", "m"), 1, "data_missing"),
        (("demo_ts2", "--manifest", "--out", "m"), 1, "no_prompts"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    *,
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    end = call("prompts", *words)
    assert end.code == code
    assert says in end.err
    assert "Traceback" not in end.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(call: Call, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/mine.txt").write_text("mine")
    end = call("prompts", "demo_prompts", "--manifest", "--out", tmp_path / "m")
    assert (end.code, [p.name for p in (tmp_path / "m").iterdir()]) == (1, ["mine.txt"])
    assert "error [folder_exists]" in end.err


def test_fetch_knows_prompt_sets_and_finds_what_is_there(
    call: Call, assay_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "gecko").mkdir()
    content = (assay_data / "gecko/prompts.csv").read_bytes()
    (tmp_path / "gecko/prompts.csv").write_bytes(content)
    done = json.loads(call("fetch", "gecko_s_rel", "--data", tmp_path, "--json").out)
    assert done["there"] == ["gecko/prompts.csv"]


def test_a_prompt_set_has_no_questions_to_export(call: Call, tmp_path: Path) -> None:
    end = call("questions", "demo_prompts", "--out", tmp_path / "q")
    assert end.code == 1
    assert "error [images_missing]: demo_prompts is a set of prompts" in end.err
