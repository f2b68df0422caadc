"""`generate`: images drawn for prompts, gone on with, and none drawn by a dry run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from evaluator.commands.common import INTERRUPTED
from evaluator.generation.manifest import parse_generations
from evaluator.generation.prompts import Prompt
from evaluator.submission.generations.checking import check_folder
from tests.evaluator.commands import submitting
from tests.evaluator.commands.submitting import code_of, typed
from tests.evaluator.generation import tiny_pipelines


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines") / "tiny-sdxl"
    tiny_pipelines.sdxl().save_pretrained(folder)
    return folder


@pytest.fixture
def asked(model: Path, tmp_path: Path) -> tuple[object, ...]:
    path = tmp_path / "prompts.csv"
    path.write_text("prompt_id,prompt,skills\na,two red cubes,counting\nb,a blue ball,colour\n")
    return ("--model", model, "--out", tmp_path / "out", "--prompts", path)


run = partial(typed, "generate")
record = partial(submitting.record, "generate")


def test_a_second_call_has_nothing_to_do(asked: tuple[object, ...], tmp_path: Path) -> None:
    settings = ("--steps", 2, "--guidance", 3.5, "--set", "guidance_rescale=0.5", "--seeds", "42,7")
    first = run(*asked, *settings, "--batch-size", 3, "--licence", "mit")
    assert first.exit_code == 0 and "4 of 4" in first.output, first.output
    wanted = (Prompt("a", "two red cubes"), Prompt("b", "a blue ball"))
    assert check_folder(tmp_path / "out", wanted, (42, 7)).complete
    manifest = parse_generations((tmp_path / "out" / "assay.toml").read_bytes())
    assert manifest.settings is not None
    assert (manifest.licence, manifest.settings.recipe) == ("mit", "sdxl")
    call = {"num_inference_steps": 2, "guidance_scale": 3.5, "guidance_rescale": 0.5}
    assert call.items() <= manifest.settings.call.items()
    assert (manifest.settings.call["width"], manifest.settings.call["height"]) == (16, 16)
    said = record(*asked, *settings)
    assert (said["wanted"], said["drawn"], said["usable"], said["problems"]) == (4, 0, 4, [])


def test_a_dry_run_says_what_would_be_drawn(asked: tuple[object, ...], tmp_path: Path) -> None:
    said = record(*asked, "--dry-run", "--skill", "counting")
    assert (said["prompts"], said["seeds"], said["images"]) == (1, [42, 3407, 5096], 3)
    assert (said["pipeline"], said["recipe"]) == ("StableDiffusionXLPipeline", "sdxl")
    assert {"num_inference_steps": 50, "guidance_scale": 5.0}.items() <= said["arguments"].items()
    assert said["bytes"] == round(1.5 * 16 * 16 * 3)
    assert "Re-Thinking" in run(*asked, "--dry-run", "--limit", 1).stdout
    of_set = (*asked[:4], "--benchmark", "demo_prompts", "--dry-run")
    facts = record(*of_set, "--limit", 3)
    assert (facts["benchmark"], facts["prompts"], facts["seeds"]) == ("demo_prompts", 3, [1, 2])
    other = record(*of_set, "--seeds", "5")
    assert (other["seeds"], other["images"]) == ([5], 76)
    assert not (tmp_path / "out").exists()


def test_odd_settings_and_sources_of_prompts_are_wrong_usage(asked: tuple[object, ...]) -> None:
    assert run(*asked[:4]).exit_code == run(*asked, "--benchmark", "gecko").exit_code == 2
    assert code_of(run(*asked[:4], "--benchmark", "demo_ts2")) == "no_prompts"
    for setting in ("x", "=1", "a b=1", "sigmas={a=1}"):
        assert run(*asked, "--set", setting).exit_code == 2


@pytest.mark.slow
def test_ctrl_c_can_be_gone_on_from(
    asked: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluator.generation import run as module

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "draw", interrupted)
        stopped = run(*asked, "--steps", 1, "--seeds", 1)
    assert stopped.exit_code == INTERRUPTED and "goes on" in stopped.output
    assert run(*asked, "--steps", 1, "--seeds", 1).exit_code == 0
