"""Images of two models: found by tables and by names, and what is lacking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.errors import PlatformError
from evaluator.ab.images import drawn_images, growing_model, model_images
from evaluator.ab.score_cache import ScoreCache
from evaluator.generation.prompts import Prompt
from tests.kit.refusals import refused

PROMPTS = (Prompt("p1", "a cat"), Prompt("p2", "two dogs"), Prompt("p3", "a tree"))


def picture(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (shade, 0, 0)).save(path)


@pytest.fixture
def by_name(tmp_path: Path) -> Path:
    for name, shade in (("p1.png", 1), ("p2/a.png", 2), ("p2/b.png", 3), ("other.png", 4)):
        picture(tmp_path / "named" / name, shade)
    return tmp_path / "named"


@pytest.fixture
def by_table(tmp_path: Path) -> Path:
    folder, rows = tmp_path / "drawn", []
    for prompt_id, seed, shade in (("p1", 1, 1), ("p1", 2, 5), ("p2", 1, 6), ("zz", 1, 7)):
        file = f"images/{prompt_id}_{seed}.png"
        picture(folder / file, shade)
        rows.append({"prompt_id": prompt_id, "seed": seed, "file": file})
    rows.append({"prompt_id": "p3", "seed": 1, "file": None, "problem": "nsfw"})
    (folder / "images.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_images_go_by_name_or_by_the_table_and_what_is_lacking_is_named(
    by_name: Path, by_table: Path
) -> None:
    named, tabled = model_images(by_name, PROMPTS), model_images(by_table, PROMPTS)
    assert {name: len(files) for name, files in named.files.items()} == {"p1": 1, "p2": 2}
    assert {name: len(files) for name, files in tabled.files.items()} == {"p1": 2, "p2": 1}
    for model, code in ((named, "prompt_unmatched"), (tabled, "images_withheld")):
        (problem,) = model.problems
        assert (problem.code, problem.count) == (code, 1)
        assert "p3" in problem.sentence


def test_an_image_that_the_table_withholds_is_told_though_others_of_the_prompt_are_there(
    by_table: Path,
) -> None:
    with (by_table / "images.jsonl").open("a") as table:
        for name, seed in (("p2", 2), ("p3", 2), ("zz", 2)):
            table.write(json.dumps({"prompt_id": name, "seed": seed, "file": None}) + "\n")
    model = model_images(by_table, PROMPTS)
    (problem,) = model.problems
    assert (problem.code, problem.examples) == ("images_withheld", ("drawn/p3", "drawn/p2"))
    assert drawn_images(model, model, PROMPTS).withheld == (3, 3)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("p1.png", "p1.webp"), None),
        (("p1.png", "p1.PNG"), None),
        (("p1.png", "p1/a.png", "p1/a.webp"), 3),
    ],
)
def test_two_files_of_one_id_with_different_endings_are_refused(
    tmp_path: Path, names: tuple[str, ...], found: int | None
) -> None:
    for shade, name in enumerate(names):
        picture(tmp_path / name, shade)
    model = model_images(tmp_path, PROMPTS[:1])
    assert len(model.files.get("p1", ())) == (found or 0)
    told = [one for one in model.problems if one.code == "files_alike"]
    assert [one.examples for one in told] == ([] if found else [tuple(sorted(names))])


def test_a_table_of_other_prompts_or_without_its_files_is_told(by_table: Path) -> None:
    table = by_table / "images.jsonl"
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    rows[0]["prompt"] = "a red cat"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (by_table / rows[2]["file"]).unlink()
    codes = {one.code for one in model_images(by_table, PROMPTS).problems}
    assert codes == {"other_prompt", "image_missing", "images_withheld", "prompt_unmatched"}


def test_a_held_out_prompt_is_there_with_as_many_images_as_the_baseline_and_none_unreadable(
    tmp_path: Path,
) -> None:
    prompts = [Prompt(name, name) for name in ("screens", "half", "cut", "part", "refused", "none")]
    rows = []
    for one in prompts:
        for seed in (1, 2):
            picture(tmp_path / "base" / one.prompt_id / f"{seed}.png", seed)
            file = f"images/{one.prompt_id}_{seed}.png"
            gone = one.prompt_id == "refused" or (one.prompt_id, seed) == ("part", 2)
            row = {"prompt_id": one.prompt_id, "seed": seed, "file": None if gone else file}
            if one.prompt_id != "none" and (one.prompt_id, seed) != ("half", 2):
                rows.append(row)
                if not gone:
                    picture(tmp_path / "next" / file, seed)
    (tmp_path / "next" / "images.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "next" / "images" / "cut_2.png").write_bytes(b"no image")
    baseline = model_images(tmp_path / "base", prompts)
    model = growing_model(tmp_path / "next", baseline, prompts[:1], prompts[1:])
    assert {name: len(files) for name, files in model.files.items()} == {"screens": 2, "part": 1}
    assert not model.problems
    assert [(one.code, one.count) for one in model.notes] == [
        ("image_unreadable", 1),
        ("images_withheld", 1),
    ]
    found = drawn_images(baseline, model, prompts, growing=True)
    assert [one.text for one in prompts if found.awaits(one)] == ["half", "cut", "none"]
    assert found.only(prompts).missing == {"refused"}
    halved = growing_model(tmp_path / "next", baseline, prompts[:2], prompts[2:])
    assert [one.code for one in halved.problems] == ["fewer_images"]


def test_equal_contents_are_one_image(by_name: Path, by_table: Path) -> None:
    found = drawn_images(model_images(by_name, PROMPTS), model_images(by_table, PROMPTS), PROMPTS)
    assert [one.prompt_id for one in found.prompts] == ["p1", "p2"]
    assert len(found.places) == 5, "p1 of both has one content"
    assert len(found.pairs()) == 5
    part = found.only(PROMPTS[1:2])
    assert len(part.pairs()) == 3
    asked = part.questions(part.pairs())
    assert set(asked.images) == {digest for digest, _ in part.pairs()}


def test_ids_of_one_text_are_one_prompt_with_all_its_images(tmp_path: Path) -> None:
    prompts = (Prompt("s1", "a cat", ("x",)), Prompt("s2", "a cat", ("y",)), Prompt("t", "a dog"))
    for model in ("a", "b"):
        for shade, one in enumerate(prompts):
            picture(tmp_path / model / f"{one.prompt_id}.png", shade)
    a, b = (model_images(tmp_path / model, prompts) for model in ("a", "b"))
    found = drawn_images(a, b, prompts)
    assert [(one.prompt_id, one.skills) for one in found.prompts] == [("s1", ("x", "y")), ("t", ())]
    assert [len(side) for side in found.digests["s1"]] == [2, 2]
    assert found.same_images(found.prompts)


def test_a_file_that_changes_after_it_was_looked_at_is_not_scored(by_name: Path) -> None:
    model = model_images(by_name, PROMPTS)
    found = drawn_images(model, model, PROMPTS)
    pairs = found.pairs()
    asked = found.questions(pairs)
    picture(by_name / "p1.png", 99)
    with refused("image_changed"):
        asked.images[pairs[0][0]]()
    assert asked.images[pairs[1][0]]()


def test_an_image_that_breaks_off_is_no_image(by_name: Path) -> None:
    whole = (by_name / "p1.png").read_bytes()
    (by_name / "p1.png").write_bytes(whole[:-30])
    codes = {one.code for one in model_images(by_name, PROMPTS).problems}
    assert codes == {"image_unreadable", "prompt_unmatched"}


def test_a_cache_that_cannot_be_kept_is_told_before_anything_is_scored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with refused("cannot_write", kind=PlatformError):
        ScoreCache(tmp_path / "file", "m")


def test_scores_are_kept_by_content_and_prompt_for_one_metric(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path, "metric-1")
    assert cache.get("x", "a cat") is None
    cache.add([("x", "a cat", 0.5), ("x", "a dog", float("nan"))])
    for again in (cache, ScoreCache(tmp_path, "metric-1")):
        assert (again.get("x", "a cat"), again.get("x", "a dog")) == (0.5, None)
    assert ScoreCache(tmp_path, "metric-2").get("x", "a cat") is None


def test_half_a_line_of_a_killed_process_costs_that_line_alone(tmp_path: Path) -> None:
    ScoreCache(tmp_path, "m").add([("x", "a", 0.1 + 0.2), ("y", "a", 2.0)])
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-9])
    cut = ScoreCache(tmp_path, "m")
    assert (cut.get("x", "a"), cut.get("y", "a")) == (0.1 + 0.2, None)
    cut.add([("y", "a", 3.0)])
    again = ScoreCache(tmp_path, "m")
    assert (again.get("x", "a"), again.get("y", "a")) == (0.1 + 0.2, 3.0)
