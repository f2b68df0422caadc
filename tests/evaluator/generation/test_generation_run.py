from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from filelock import FileLock
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.generation.checkpoint import locate
from evaluator.generation.contact_sheet import clipped
from evaluator.generation.folder import RunFolder
from evaluator.generation.manifest import parse_generations
from evaluator.generation.prompts import ChosenPrompts, Prompt
from evaluator.generation.rows import parse_rows
from evaluator.scoring.progress import Progress, Tracker
from evaluator.submission.generations.checking import check_folder
from tests.evaluator.generation import tiny_pipelines

if TYPE_CHECKING:
    from evaluator.generation.pipelines import LoadedPipeline
    from evaluator.generation.request import Request, Summary

PROMPTS = tuple(Prompt(f"p{i}", f"{i} red cats") for i in range(3))
SEEDS = (42, 3407)
CALL = {"num_inference_steps": 2, "guidance_scale": 7.5}


@pytest.fixture(scope="module")
def pipe(saved: dict[str, Path]) -> LoadedPipeline:
    from evaluator.generation.pipelines import load_pipeline

    return load_pipeline(locate(str(saved["sd15"])), device="cpu", dtype="float32")


def request(**changes: Any) -> Request:
    from evaluator.generation.request import Request

    return replace(Request(ChosenPrompts(PROMPTS), SEEDS, CALL), **changes)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "images").iterdir())}


def made(pipe: LoadedPipeline, folder: Path, **changes: Any) -> Summary:
    from evaluator.generation.run import generate_images

    return generate_images(pipe, request(**changes), RunFolder(folder))


@pytest.fixture(scope="module")
def whole(pipe: LoadedPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    made(pipe, folder)
    return folder


def test_a_run_makes_a_png_for_each_prompt_and_seed_and_says_how(
    pipe: LoadedPipeline, whole: Path
) -> None:
    import torch

    rows, broken = parse_rows((whole / "images.jsonl").read_bytes())
    assert broken == []
    assert [row.key for row in rows] == [(p.prompt_id, s) for p in PROMPTS for s in SEEDS]
    for row in rows:
        data = (whole / str(row.file)).read_bytes()
        assert row.sha256 == hashlib.sha256(data).hexdigest()
        with Image.open(whole / str(row.file)) as image:
            assert (image.format, image.mode, image.size, image.info) == (
                "PNG",
                "RGB",
                (16, 16),
                {},
            )
        assert (row.width, row.height, row.steps, row.guidance) == (16, 16, 2, 7.5)
        assert (row.pipeline, row.scheduler) == ("StableDiffusionPipeline", "PNDMScheduler")
        assert row.versions["torch"] == torch.__version__.partition("+")[0]
    manifest = parse_generations((whole / "assay.toml").read_bytes())
    assert (manifest.kind, manifest.name, manifest.seeds) == ("generations", "sd15", SEEDS)
    assert manifest.settings is not None
    assert manifest.settings.call == CALL
    assert manifest.revision == pipe.checkpoint.revision
    assert check_folder(whole, PROMPTS, SEEDS).complete
    with Image.open(whole / "contact_sheet.png") as sheet:
        assert sheet.height > 3 * 192


def test_pixels_on_disk_are_those_of_the_pipeline(pipe: LoadedPipeline, whole: Path) -> None:
    import torch

    [expected] = pipe.pipe(
        "1 red cats", generator=torch.Generator("cpu").manual_seed(3407), **CALL
    ).images
    row = next(
        row
        for row in parse_rows((whole / "images.jsonl").read_bytes())[0]
        if row.key == ("p1", 3407)
    )
    with Image.open(whole / str(row.file)) as image:
        assert np.array_equal(np.asarray(image), np.asarray(expected))


def test_a_run_that_was_stopped_goes_on_with_what_is_missing(
    pipe: LoadedPipeline, whole: Path, tmp_path: Path
) -> None:
    from evaluator.generation.run import generate_images

    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        generate_images(pipe, request(), RunFolder(out), _Stopper(2))
    left = contents(out)
    assert 1 <= len(left) < 6
    assert (out / "contact_sheet.png").exists()
    summary = made(pipe, out)
    assert summary.drawn == 6 - len(left)
    assert contents(out) == contents(whole)
    assert made(pipe, out).drawn == 0


class _Stopper:
    """Ctrl-C once so many images are done."""

    def __init__(self, images: int) -> None:
        self._images = images

    def __call__(self, now: Progress) -> None:
        # The tracker tells the first word, the last, and one now and then.
        self._images -= 1
        if self._images < 0:
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def _told_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator.generation import run

    def tracker(*args: Any, **options: Any) -> Tracker:
        return Tracker(*args, **options, every_s=0.0)

    monkeypatch.setattr(run, "Tracker", tracker)


def test_a_run_that_was_killed_leaves_nothing_that_is_trusted_wrongly(
    pipe: LoadedPipeline, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    made(pipe, out)
    images = sorted((out / "images").iterdir())
    images[0].write_bytes(images[0].read_bytes()[:-5])
    images[1].unlink()
    (out / "images" / (images[1].name + ".part")).write_bytes(b"half")
    table = out / "images.jsonl"
    table.write_bytes(table.read_bytes()[:-40])
    summary = made(pipe, out)
    assert summary.drawn == 3
    assert summary.damaged == 2
    assert contents(out) == contents(whole)
    assert check_folder(out, PROMPTS, SEEDS).complete


def test_a_broken_line_inside_the_table_is_not_passed_over(
    pipe: LoadedPipeline, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    made(pipe, out)
    lines = (out / "images.jsonl").read_bytes().splitlines(keepends=True)
    (out / "images.jsonl").write_bytes(b"".join([lines[0], b"{}\n", *lines[1:]]))
    with pytest.raises(SubmitterError, match="line 2") as error:
        made(pipe, out)
    assert error.value.code == "table_malformed"


def test_prompts_and_seeds_can_be_added(pipe: LoadedPipeline, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert made(pipe, out, prompts=ChosenPrompts(PROMPTS[:1]), seeds=SEEDS[:1]).drawn == 1
    assert made(pipe, out).drawn == 5
    assert contents(out) == contents(whole)
    assert parse_generations((out / "assay.toml").read_bytes()).seeds == SEEDS


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"arguments": {**CALL, "num_inference_steps": 3}}, "num_inference_steps: 2 there, 3 now"),
        ({"arguments": {**CALL, "negative_prompt": ""}}, "negative_prompt: unset there"),
        ({"seed_mode": "stream"}, "seed_mode: per_image there, stream now"),
        ({"variant": "fp16"}, "variant"),
        ({"prompts": ChosenPrompts((Prompt("p0", "another"),))}, "'p0' was another"),
        ({"prompts": ChosenPrompts(PROMPTS, "gecko", "1")}, "of gecko 1 now"),
    ],
)
def test_a_folder_of_other_settings_is_refused_and_left_alone(
    pipe: LoadedPipeline, whole: Path, changes: dict[str, Any], said: str
) -> None:
    before = contents(whole), (whole / "assay.toml").read_bytes()
    with pytest.raises(SubmitterError) as error:
        made(pipe, whole, **changes)
    assert error.value.code == "other_settings"
    assert said in str(error.value)
    assert (contents(whole), (whole / "assay.toml").read_bytes()) == before


def test_a_folder_with_other_files_or_another_run_is_refused(
    pipe: LoadedPipeline, tmp_path: Path
) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    with pytest.raises(SubmitterError) as error:
        made(pipe, tmp_path)
    assert error.value.code == "folder_not_empty"
    out = tmp_path / "run"
    out.mkdir()
    with FileLock(out / ".lock"), pytest.raises(SubmitterError) as error:
        made(pipe, out)
    assert error.value.code == "folder_busy"


def test_what_people_wrote_into_the_manifest_stays(pipe: LoadedPipeline, tmp_path: Path) -> None:
    out = tmp_path / "run"
    made(pipe, out, prompts=ChosenPrompts(PROMPTS[:1]), licence="mit")
    path = out / "assay.toml"
    path.write_text(f'description = "ours"\n{path.read_text()}')
    made(pipe, out, name="better")
    found = parse_generations(path.read_bytes())
    assert (found.description, found.licence, found.name) == ("ours", "mit", "better")


@pytest.mark.slow
def test_a_batch_that_does_not_fit_is_drawn_in_smaller_ones(
    pipe: LoadedPipeline, whole: Path, tmp_path: Path
) -> None:
    import torch

    sizes: list[int] = []

    class Pipe:
        def __init__(self, of: Any) -> None:
            self._of = of

        def __getattr__(self, name: str) -> Any:
            return getattr(self._of, name)

        def __call__(self, prompt: list[str], **options: Any) -> Any:
            sizes.append(len(prompt))
            if len(prompt) > 1:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return self._of(prompt=prompt, **options)

    out = tmp_path / "run"
    summary = made(replace(pipe, pipe=Pipe(pipe.pipe)), out, batch_size=5)
    assert sizes == [5, 2, 1, 1, 1, 1, 1, 1]
    assert (summary.batch_size, summary.shrunk) == (1, True)
    assert contents(out) == contents(whole)


def test_an_image_that_does_not_fit_alone_ends_the_run_with_a_remedy(
    pipe: LoadedPipeline, tmp_path: Path
) -> None:
    class Pipe:
        components = pipe.pipe.components
        scheduler = pipe.pipe.scheduler

        def __call__(self, **options: Any) -> Any:
            raise RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate")

    with pytest.raises(SubmitterError, match="--dtype") as error:
        made(replace(pipe, pipe=Pipe()), tmp_path / "run")
    assert error.value.code == "out_of_memory"


def test_withheld_images_have_a_row_and_no_file(saved: dict[str, Path], tmp_path: Path) -> None:
    from evaluator.generation.pipelines import load_pipeline

    found = load_pipeline(locate(str(saved["checked"])), device="cpu", dtype="float32")
    tiny_pipelines.flag_all(found.pipe)
    out = tmp_path / "run"
    summary = made(found, out)
    assert summary.withheld == {"nsfw": 6}
    rows, _ = parse_rows((out / "images.jsonl").read_bytes())
    assert {(row.file, row.sha256, row.problem, row.nsfw) for row in rows} == {
        (None, None, "nsfw", True)
    }
    assert contents(out) == {}
    report = check_folder(out, PROMPTS, SEEDS)
    assert (report.usable, report.withheld, report.problems) == (0, {"nsfw": 6}, ())
    assert made(found, out).drawn == 0


def test_a_stream_of_noise_goes_from_prompt_to_prompt(pipe: LoadedPipeline, tmp_path: Path) -> None:
    import torch

    out = tmp_path / "run"
    made(pipe, out, seed_mode="stream", batch_size=2)
    rows, _ = parse_rows((out / "images.jsonl").read_bytes())
    by_key = {row.key: row for row in rows}
    for seed in SEEDS:
        noise = torch.Generator("cpu").manual_seed(seed)
        for position, prompt in enumerate(PROMPTS):
            [expected] = pipe.pipe(prompt.text, generator=noise, **CALL).images
            row = by_key[prompt.prompt_id, seed]
            assert row.position == position
            with Image.open(out / str(row.file)) as image:
                difference = np.asarray(image, int) - np.asarray(expected, int)
            assert np.abs(difference).max() <= 1  # drawn two at a time


def test_a_stream_goes_on_where_it_stopped_and_after_damage(
    pipe: LoadedPipeline, tmp_path: Path
) -> None:
    from evaluator.generation.run import generate_images

    straight, cut = tmp_path / "straight", tmp_path / "cut"
    made(pipe, straight, seed_mode="stream")
    with pytest.raises(KeyboardInterrupt):
        generate_images(pipe, request(seed_mode="stream"), RunFolder(cut), _Stopper(4))
    left = len(contents(cut))
    assert 0 < left < 6
    assert made(pipe, cut, seed_mode="stream").drawn <= 6 - left + 1
    assert contents(cut) == contents(straight)
    damaged = next((cut / "images").glob("p1-*_s42.png"))
    damaged.write_bytes(b"")
    assert made(pipe, cut, seed_mode="stream").drawn == 3  # that seed, from its beginning
    assert contents(cut) == contents(straight)


def test_a_stream_cannot_be_mixed_with_prompts_at_other_places(
    pipe: LoadedPipeline, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    made(pipe, out, seed_mode="stream", prompts=ChosenPrompts(PROMPTS[:2]))
    made(pipe, out, seed_mode="stream")
    with pytest.raises(SubmitterError, match="another place"):
        made(pipe, out, seed_mode="stream", prompts=ChosenPrompts(PROMPTS[1:]))


def test_a_cut_prompt_is_marked(pipe: LoadedPipeline, tmp_path: Path) -> None:
    prompts = ChosenPrompts((Prompt("long", "x " * 100), Prompt("short", "x")))
    summary = made(pipe, tmp_path / "run", prompts=prompts, seeds=(1,))
    assert summary.truncated == ("long",)
    rows, _ = parse_rows((tmp_path / "run" / "images.jsonl").read_bytes())
    assert [row.truncated for row in rows] == [True, False]
    assert rows[0].cut_by == ("tokenizer (77 tokens)",)


def test_untrusted_text_is_kept_whole_in_the_table_and_clipped_on_the_sheet(
    pipe: LoadedPipeline, tmp_path: Path
) -> None:
    evil = 'a\n"b" \u202e\u0007 [red] ' + "y" * 3000
    prompts = ChosenPrompts((Prompt("../x", evil),))
    made(pipe, tmp_path / "run", prompts=prompts, seeds=(1,))
    [line] = (tmp_path / "run" / "images.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["prompt"] == evil
    with Image.open(tmp_path / "run" / "contact_sheet.png") as sheet:
        assert sheet.size == (230 + 202 + 10, 52 + 202)
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
    from evaluator.generation.request import default_name

    assert default_name(model) == name
