"""`ab`: two folders of the demo's simulated models, by metrics that are asked once for a content."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from evaluator.ab.batches import random_order
from evaluator.ab.journal import halves
from evaluator.commands.ab import FAILED
from evaluator.generation.prompts import Choice, file_prompts
from tests.evaluator.commands.submitting import record, refused, said, typed

SCORER = '''"""Redness, and a line in a file for each pair that was asked."""

from pathlib import Path

CALLS = Path({calls!r})


class Scorer:
    def score(self, images, prompts):
        with CALLS.open("a") as file:
            file.write("x" * len(prompts))
        return [image.getpixel((0, 0))[0] / 255 for image in images]
'''
MANIFEST = """name = "redness"
version = "1"
description = "How red the first pixel is."
entry_point = "scorer:Scorer"
direction = "higher_is_better"
"""


@pytest.fixture
def metric(tmp_path: Path) -> Path:
    folder = tmp_path / "redness"
    folder.mkdir()
    (folder / "scorer.py").write_text(SCORER.format(calls=str(tmp_path / "calls")))
    (folder / "assay.toml").write_text(MANIFEST)
    return folder


@pytest.fixture
def words(tmp_path: Path, metric: Path) -> tuple[object, ...]:
    """Forty prompts of each skill; the candidate is redder at `warm` and the same at `cold`."""
    rows = []
    for n in range(80):
        skill = "warm" if n % 2 else "cold"
        rows.append({"prompt_id": f"p{n}", "prompt": f"<b>{n}</b> {skill}", "skills": skill})
        for model, more in (("base", 0), ("next", 40 if n % 2 else 0)):
            folder = tmp_path / model
            folder.mkdir(exist_ok=True)
            shade = 60 + n + more + (n * 7 % 5 if more else 0)
            Image.new("RGB", (8, 8), (shade, n, 0)).save(folder / f"p{n}.png")
    pd.DataFrame(rows).to_csv(tmp_path / "prompts.csv", index=False)
    return (
        "ab", tmp_path / "base", tmp_path / "next", "--prompts", tmp_path / "prompts.csv",
        "--metric", metric, "--isolation", "none", "--cache", tmp_path / "cache",
    )  # fmt: skip


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines(keepends=True)


def outcomes(told: Any) -> dict[str | None, str]:
    return {one["skill"]: one["outcome"] for one in told["skills"]}


def test_each_skill_is_told_and_nothing_is_asked_twice(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    told = record(*words, "--out", tmp_path / "report.html")
    assert outcomes(told) == {None: "better", "cold": "tied", "warm": "better"}
    cold = next(one for one in told["skills"] if one["skill"] == "cold")
    assert cold["by_metric"]["redness"]["identical"] is True and "same images" in cold["sentence"]
    asked = (tmp_path / "calls").read_text()
    assert len(asked) == 120, "forty contents are those of both models"
    assert record(*words) == told
    assert (tmp_path / "calls").read_text() == asked
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/webp;base64,") == 48
    assert "<b>1</b>" not in page and "&lt;b&gt;1&lt;/b&gt; warm" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "better" in said(*words)


@pytest.mark.slow
def test_programs_go_by_the_exit_code(words: tuple[object, ...]) -> None:
    other_way = (words[0], words[2], words[1], *words[3:])
    for given, fail_on, code in (
        (words, "worse", 0), (other_way, "worse", FAILED), (other_way, "nothing", 0),
        (words, "not-better", 0), (other_way, "not-better", FAILED),
        ((*words, "--skill", "cold"), "not-better", FAILED),
    ):  # fmt: skip
        done = typed(*given, "--fail-on", fail_on)
        assert done.exit_code == code, (fail_on, done.output)


@pytest.mark.slow
def test_a_journal_confirms_on_the_other_half(words: tuple[object, ...], tmp_path: Path) -> None:
    file = tmp_path / "looks.jsonl"
    told = record(*words, "--journal", file)
    assert outcomes(told)[None] == "better"
    assert told["look"]["confirmation"] == 1
    cold = next(one for one in told["skills"] if one["skill"] == "cold")
    assert cold["outcome"] == "tied" and "have the same images" in cold["sentence"]
    assert {one["half"] for one in told["skills"]} == {"screening"}
    assert {one["half"] for one in record(*words)["skills"]} == {None}
    assert record(*words, "--journal", file) == told
    shown = said(*words, "--journal", file)
    assert "screens" in shown and "says" not in shown and "says" in said(*words)
    assert len(file.read_text().splitlines()) == 2
    refused("other_journal", *words, "--skill", "warm", "--journal", file)


def test_images_that_are_the_same_on_the_screening_half_alone_are_undecided(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    _, held_out = halves(file_prompts(tmp_path / "prompts.csv", Choice()).prompts)
    changed = next(one.prompt_id for one in held_out if one.skills == ("cold",))
    Image.new("RGB", (8, 8), (1, 2, 3)).save(tmp_path / "next" / f"{changed}.png")
    told = record(*words, "--journal", tmp_path / "looks.jsonl")
    cold = next(one for one in told["skills"] if one["skill"] == "cold")
    assert cold["outcome"] == "undecided" and "images that screen are the same" in cold["sentence"]


@pytest.mark.slow
def test_batches_are_asked_as_they_are_drawn(words: tuple[object, ...], tmp_path: Path) -> None:
    batched = (*words, "--journal", tmp_path / "looks.jsonl", "--batches")
    prompts = file_prompts(tmp_path / "prompts.csv", Choice()).prompts
    screening, held_out = halves(prompts)
    later = [one.prompt_id for one in random_order(held_out)[20:]]
    for name in later:
        (tmp_path / "next" / f"{name}.png").rename(tmp_path / f"{name}.png")
    told = record(*batched)
    assert (told["look"]["asked"], told["look"]["open"]) == (20, True)
    assert (told["to_draw"], outcomes(told)[None]) == (later, "undecided")
    assert f"Draw these, and look again: {', '.join(later)}." in said(*batched).replace("\n", " ")
    for name in later:
        (tmp_path / f"{name}.png").rename(tmp_path / "next" / f"{name}.png")
    told = record(*batched)
    assert (told["look"]["asked"], told["look"]["open"], told["to_draw"]) == (40, False, [])
    assert outcomes(told)[None] == "better"
    last = tmp_path / "next" / f"{later[-1]}.png"
    whole = last.read_bytes()
    last.write_bytes(b"no image")
    refused("other_images", *batched)
    anew = record(*batched[:-2], tmp_path / "anew.jsonl", "--batches")
    assert anew["to_draw"] == later[-1:]
    assert last.name in said(*batched[:-2], tmp_path / "anew.jsonl", "--batches")
    last.write_bytes(whole)
    refused("other_margin", *batched, "--margin", "0.2")
    (tmp_path / "next" / f"{screening[0].prompt_id}.png").unlink()
    refused("prompt_unmatched", *batched)
    for wrong in ((*words, "--batches"), (*batched, "--partial")):
        assert typed(*wrong).exit_code == 2


def test_what_cannot_be_compared_is_told(words: tuple[object, ...], tmp_path: Path) -> None:
    base = tmp_path / "base"
    refused("same_folder", words[0], base, base, *words[3:])
    refused("no_metrics", *words[:5], "--cache", tmp_path / "c")
    refused("unknown_choice", *words, "--skill", "hot")
    refused("unknown_scorer", *words[:5], "--metric", "no-metric")
    refused("no_folder", words[0], tmp_path / "nowhere", *words[2:])
    other = tmp_path / "other.csv"
    other.write_text("prompt_id,prompt\nq,text\n")
    assert "common" in refused("prompt_unmatched", *words[:4], other, *words[5:], "--partial")
    (base / "p3.png").unlink()
    assert "base/p3" in refused("prompt_unmatched", *words)
    told = record(*words, "--partial")
    assert (told["prompts"], outcomes(told)["warm"]) == (79, "better")
    (tmp_path / "prompts.csv").write_text(
        "".join(line for line in lines_of(tmp_path / "prompts.csv") if not line.startswith("p3,"))
    )
    (base / "p5.png").write_bytes(b"no image")
    assert "p5.png" in refused("image_unreadable", *words)
    assert record(*words, "--partial")["prompts"] == 78
    refused("cannot_write", *words, "--out", tmp_path / "nowhere" / "r.html")


def test_images_that_a_table_withholds_are_refused_and_counted_with_partial(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    rows = []
    for n in range(80):
        refusals = [2, 3] if n in (4, 5) else []
        rows.append({"prompt_id": f"p{n}", "seed": 1, "file": None if n == 6 else f"p{n}.png"})
        rows += [{"prompt_id": f"p{n}", "seed": seed, "file": None} for seed in refusals]
    table = tmp_path / "next" / "images.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "next/p4" in refused("images_withheld", *words)
    told = record(*words, "--partial", "--out", tmp_path / "report.html")
    assert (told["withheld"], told["prompts"]) == ([0, 5], 79)
    assert "0 images of base and 5 of next" in (tmp_path / "report.html").read_text()
    assert "5 of next" in said(*words, "--partial")
    table.write_text(
        table.read_text().replace('"p6", "seed": 1, "file": null', '"p7", "seed": 2, "file": null')
    )
    with table.open("a") as file:
        file.write(json.dumps({"prompt_id": "p6", "seed": 1, "file": "p6.png"}) + "\n")
    batched = record(*words, "--journal", tmp_path / "looks.jsonl", "--batches")
    assert batched["withheld"] == [0, 5], "told, and not refused where no --partial can be said"


@pytest.mark.parametrize("name", ["prompts.CSV", "prompts.tsv", "prompts", "nowhere.txt"])
def test_a_table_of_prompts_is_csv_by_its_name(
    words: tuple[object, ...], tmp_path: Path, name: str
) -> None:
    if not name.startswith("nowhere"):
        shutil.copy(tmp_path / "prompts.csv", tmp_path / name)
    given = (*words[:4], tmp_path / name, *words[5:])
    if name.lower().endswith(".csv"):
        assert outcomes(record(*given))[None] == "better"
    else:
        refused("bad_prompts", *given)


def test_skills_with_spaces_between_them_are_chosen(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    table = tmp_path / "prompts.csv"
    table.write_text(table.read_text().replace(",warm", ",hot ; warm"))
    assert record(*words, "--skill", "warm")["prompts"] == 40


@pytest.mark.slow
def test_an_image_without_a_score_is_refused_and_shown_with_partial(
    words: tuple[object, ...], tmp_path: Path, metric: Path
) -> None:
    code = SCORER.format(calls=str(tmp_path / "calls")).replace(
        "return [", "return [None if image.getpixel((0, 0))[1] in (7, 8) else "
    )  # fmt: skip
    (metric / "scorer.py").write_text(code)
    assert "2 images of base and 2 of next" in refused("image_unscored", *words)
    told = record(*words, "--partial")
    assert told["metrics"][0]["unscored"] == [2, 2]
    assert {one["skill"]: one["by_metric"]["redness"]["n"] for one in told["skills"]} == {
        None: 78, "cold": 39, "warm": 39,
    }  # fmt: skip


@pytest.mark.slow
def test_two_metrics_of_one_name_are_refused_and_an_edited_one_is_another(
    words: tuple[object, ...], tmp_path: Path, metric: Path
) -> None:
    record(*words, "--journal", tmp_path / "j")
    twin = tmp_path / "twin"
    shutil.copytree(metric, twin)
    refused("same_metric", *words, "--metric", twin)
    (metric / "scorer.py").write_text((metric / "scorer.py").read_text() + "\n# another\n")
    refused("other_journal", *words, "--journal", tmp_path / "j")


def test_a_run_that_is_stopped_keeps_what_it_scored(
    words: tuple[object, ...], tmp_path: Path, metric: Path
) -> None:
    code = (metric / "scorer.py").read_text()
    (metric / "scorer.py").write_text(
        code.replace("return [", "assert len(CALLS.read_text()) < 90\n        return [")
    )
    assert typed(*words).exit_code != 0
    (file,) = (tmp_path / "cache").glob("*.jsonl")
    kept = len(lines_of(file))
    assert 0 < kept < 120
