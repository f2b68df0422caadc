"""A run of generations: whole, stopped, killed, damaged, changed, and what does not fit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from PIL import Image

from evaluator.generation.checkpoint import locate
from evaluator.generation.folder import RunFolder, clipped, default_name
from evaluator.generation.manifest import parse_generations
from evaluator.generation.prompts import ChosenPrompts, Prompt
from evaluator.scoring.progress import Tracker
from evaluator.submission.generations.checking import check_folder
from tests.evaluator.generation import tiny_pipelines
from tests.evaluator.generation.runs import contents, damage, rows_of, stop_after
from tests.evaluator.scorers.common import later, refusal, torch

pipelines = later("evaluator.generation.pipelines")
running = later("evaluator.generation.run")

PROMPTS = tuple(Prompt(f"p{i}", f"{i} red cats") for i in range(3))
SEEDS = (42, 3407)
CALL = {"num_inference_steps": 2, "guidance_scale": 7.5}


@pytest.fixture(scope="module")
def pipe(saved: dict[str, Path]) -> Any:
    return pipelines.load_pipeline(locate(str(saved["sd15"])), device="cpu", dtype="float32")


def pixels(path: Path) -> Any:
    with Image.open(path) as image:
        return np.asarray(image, int)


def made(pipe: Any, folder: Path, stopper: Any = None, **changes: Any) -> Any:
    request = replace(running.Request(ChosenPrompts(PROMPTS), SEEDS, CALL), **changes)
    more = () if stopper is None else (stopper,)
    return running.generate_images(pipe, request, RunFolder(folder), *more)


@pytest.fixture(scope="module")
def whole(pipe: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    made(pipe, folder)
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def _told_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.generation.run.Tracker", partial(Tracker, every_s=0.0))


def test_a_run_makes_a_png_for_each_prompt_and_seed_and_says_how(pipe: Any, whole: Path) -> None:
    rows = rows_of(whole)
    assert [row.key for row in rows] == [(p.prompt_id, s) for p in PROMPTS for s in SEEDS]
    for row in rows:
        path = whole / str(row.file)
        assert row.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        with Image.open(path) as image:
            assert (image.format, image.mode, image.info) == ("PNG", "RGB", {})
            assert image.size == (row.width, row.height) == (16, 16)
        assert (row.steps, row.guidance) == (2, 7.5)
        assert (row.pipeline, row.scheduler) == ("StableDiffusionPipeline", "PNDMScheduler")
        assert row.versions["torch"] == torch.version.__version__.partition("+")[0]
    manifest = parse_generations((whole / "assay.toml").read_bytes())
    assert (manifest.kind, manifest.name, manifest.seeds) == ("generations", "sd15", SEEDS)
    assert manifest.settings is not None
    assert (manifest.settings.call, manifest.revision) == (CALL, pipe.checkpoint.revision)
    assert check_folder(whole, PROMPTS, SEEDS).complete
    with Image.open(whole / "contact_sheet.png") as sheet:
        assert sheet.height > 3 * 192
    noise = torch.Generator("cpu").manual_seed(3407)
    (expected,) = pipe.pipe(PROMPTS[1].text, generator=noise, **CALL).images
    (row,) = (row for row in rows if row.key == ("p1", 3407))
    assert np.array_equal(pixels(whole / str(row.file)), np.asarray(expected))


def test_a_run_that_was_stopped_goes_on_with_what_is_missing(
    pipe: Any, whole: Path, out: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        made(pipe, out, stop_after(2))
    left = contents(out)
    assert 1 <= len(left) < 6
    assert (out / "contact_sheet.png").exists()
    assert made(pipe, out).drawn == 6 - len(left)
    assert contents(out) == contents(whole)
    assert made(pipe, out).drawn == 0


def test_a_run_that_was_killed_leaves_nothing_that_is_trusted_wrongly(
    pipe: Any, whole: Path, out: Path
) -> None:
    made(pipe, out)
    damage(out)
    summary = made(pipe, out)
    assert (summary.drawn, summary.damaged) == (3, 2)
    assert contents(out) == contents(whole)
    assert check_folder(out, PROMPTS, SEEDS).complete
    table = out / "images.jsonl"
    lines = table.read_bytes().splitlines(keepends=True)
    table.write_bytes(b"".join([lines[0], b"{}\n", *lines[1:]]))
    with refusal("table_malformed", "line 2"):
        made(pipe, out)


def test_prompts_and_seeds_can_be_added_and_what_people_wrote_stays(
    pipe: Any, whole: Path, out: Path
) -> None:
    first = made(pipe, out, prompts=ChosenPrompts(PROMPTS[:1]), seeds=SEEDS[:1], licence="mit")
    path = out / "assay.toml"
    path.write_text(f'description = "ours"\n{path.read_text()}')
    assert (first.drawn, made(pipe, out, name="better").drawn) == (1, 5)
    assert contents(out) == contents(whole)
    found = parse_generations(path.read_bytes())
    assert (found.description, found.licence, found.name) == ("ours", "mit", "better")
    assert found.seeds == SEEDS


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"arguments": {**CALL, "num_inference_steps": 3}}, "num_inference_steps: 2"),
        ({"arguments": {**CALL, "negative_prompt": ""}}, "negative_prompt: unset"),
        ({"seed_mode": "stream"}, "seed_mode: per_image"),
        ({"variant": "fp16"}, "variant"),
        ({"prompts": ChosenPrompts((Prompt("p0", "another"),))}, "'p0'"),
        ({"prompts": ChosenPrompts(PROMPTS, "gecko", "1")}, "gecko 1"),
    ],
)
def test_a_folder_of_other_settings_is_refused_and_left_alone(
    pipe: Any, whole: Path, changes: dict[str, Any], named: str
) -> None:
    before = contents(whole), (whole / "assay.toml").read_bytes()
    with refusal("other_settings", named):
        made(pipe, whole, **changes)
    assert (contents(whole), (whole / "assay.toml").read_bytes()) == before


def test_a_folder_with_other_files_or_another_run_is_refused(
    pipe: Any, tmp_path: Path, out: Path
) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    with refusal("folder_not_empty"):
        made(pipe, tmp_path)
    out.mkdir()
    with FileLock(out / ".lock"), refusal("folder_busy"):
        made(pipe, out)


class Narrow:
    """A pipeline on a machine with memory for so many images at once."""

    def __init__(self, of: Any, fits: int, error: type[Exception], message: str) -> None:
        self._of, self._fits, self._error = of, fits, error(message)
        self.sizes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def __call__(self, prompt: list[str], **options: Any) -> Any:
        self.sizes.append(len(prompt))
        if len(prompt) > self._fits:
            raise self._error
        return self._of(prompt=prompt, **options)


@pytest.mark.slow
def test_a_batch_that_does_not_fit_is_drawn_in_smaller_ones(
    pipe: Any, whole: Path, out: Path
) -> None:
    narrow = Narrow(pipe.pipe, 1, torch.OutOfMemoryError, "CUDA out of memory")
    summary = made(replace(pipe, pipe=narrow), out, batch_size=5)
    assert narrow.sizes == [5, 2, 1, 1, 1, 1, 1, 1]
    assert (summary.batch_size, summary.shrunk) == (1, True)
    assert contents(out) == contents(whole)


def test_an_image_that_does_not_fit_alone_ends_the_run_with_a_remedy(pipe: Any, out: Path) -> None:
    narrow = Narrow(pipe.pipe, 0, RuntimeError, "DefaultCPUAllocator: not enough memory: you tried")
    with refusal("out_of_memory", "--dtype"):
        made(replace(pipe, pipe=narrow), out)


def test_withheld_images_have_a_row_and_no_file(saved: dict[str, Path], out: Path) -> None:
    found = pipelines.load_pipeline(locate(str(saved["checked"])), device="cpu", dtype="float32")
    tiny_pipelines.flag_all(found.pipe)
    assert made(found, out).withheld == {"nsfw": 6}
    told = {(row.file, row.sha256, row.problem, row.nsfw) for row in rows_of(out)}
    assert (told, contents(out)) == ({(None, None, "nsfw", True)}, {})
    report = check_folder(out, PROMPTS, SEEDS)
    assert (report.usable, report.withheld, report.problems) == (0, {"nsfw": 6}, ())
    assert made(found, out).drawn == 0


def test_a_stream_of_noise_goes_from_prompt_to_prompt_and_keeps_their_places(
    pipe: Any, out: Path
) -> None:
    first_two = ChosenPrompts(PROMPTS[:2])
    made(pipe, out, seed_mode="stream", batch_size=2, prompts=first_two)
    made(pipe, out, seed_mode="stream", batch_size=2)
    by_key = {row.key: row for row in rows_of(out)}
    for seed in SEEDS:
        noise = torch.Generator("cpu").manual_seed(seed)
        for position, prompt in enumerate(PROMPTS):
            (expected,) = pipe.pipe(prompt.text, generator=noise, **CALL).images
            row = by_key[prompt.prompt_id, seed]
            assert row.position == position
            difference = pixels(out / str(row.file)) - np.asarray(expected, int)
            assert np.abs(difference).max() <= 1  # drawn two at a time
    with refusal("other_settings", "place"):
        made(pipe, out, seed_mode="stream", prompts=ChosenPrompts(PROMPTS[1:]))


@pytest.mark.slow
def test_a_stream_goes_on_where_it_stopped_and_after_damage(pipe: Any, tmp_path: Path) -> None:
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    made(pipe, straight, seed_mode="stream")
    with pytest.raises(KeyboardInterrupt):
        made(pipe, cut, stop_after(4), seed_mode="stream")
    left = len(contents(cut))
    assert 0 < left < 6
    assert made(pipe, cut, seed_mode="stream").drawn <= 6 - left + 1
    assert contents(cut) == contents(straight)
    next((cut / "images").glob("p1-*_s42.png")).write_bytes(b"")
    assert made(pipe, cut, seed_mode="stream").drawn == 3  # that seed, from its beginning
    assert contents(cut) == contents(straight)


def test_untrusted_text_is_whole_in_the_table_marked_as_cut_and_clipped_on_the_sheet(
    pipe: Any, out: Path
) -> None:
    evil = 'a\n"b" \u202e\u0007 [red] ' + "y" * 3000
    prompts = ChosenPrompts((Prompt("../x", evil), Prompt("short", "x")))
    assert made(pipe, out, prompts=prompts, seeds=(1,)).truncated == ("../x",)
    first, second = map(json.loads, (out / "images.jsonl").read_text("utf-8").splitlines())
    assert first["prompt"] == evil
    cut = (first["truncated"], first["cut_by"]), (second["truncated"], second["cut_by"])
    assert cut == ((True, ["tokenizer (77 tokens)"]), (False, []))
    with Image.open(out / "contact_sheet.png") as sheet:
        assert sheet.size == (230 + 202 + 10, 52 + 2 * 202)
    shown = clipped(evil, 40)
    assert shown.startswith('a "b" [red] y')
    assert len(shown) == 40


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("stabilityai/stable-diffusion-xl-base-1.0", "stable-diffusion-xl-base-1.0"),
        ("ours/été 2", "t-2"),
        ("..", "model"),
    ],
)
def test_a_model_gets_a_name_that_boards_accept(model: str, name: str) -> None:
    assert default_name(model) == name
