from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from benchmarks.errors import SubmitterError
from evaluator.commands.common import INTERRUPTED
from evaluator.commands.generate import generate
from evaluator.generation.manifest import parse_generations
from evaluator.generation.prompts import Prompt
from evaluator.submission.generations.checking import check_folder
from tests.evaluator.generation import tiny_pipelines


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines") / "tiny-sdxl"
    tiny_pipelines.sdxl().save_pretrained(folder)
    return folder


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.csv"
    path.write_text("prompt_id,prompt,skills\na,two red cubes,counting\nb,a blue ball,colour\n")
    return path


def run(*arguments: object) -> Result:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(generate)
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_folder_is_made_and_a_second_call_has_nothing_to_do(
    model: Path, prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = ("--model", model, "--prompts", prompts, "--out", out, "--seeds", "42,7")
    settings = ("--steps", 2, "--guidance", 3.5, "--set", "guidance_rescale=0.5")
    first = run(*asked, *settings, "--batch-size", 3, "--licence", "mit")
    assert first.exit_code == 0, first.output
    assert "4 of 4 images are right" in first.output
    wanted = (Prompt("a", "two red cubes"), Prompt("b", "a blue ball"))
    assert check_folder(out, wanted, (42, 7)).complete
    manifest = parse_generations((out / "assay.toml").read_bytes())
    assert manifest.licence == "mit"
    assert manifest.settings is not None
    assert manifest.settings.recipe == "sdxl"
    call = manifest.settings.call
    assert (call["num_inference_steps"], call["guidance_scale"]) == (2, 3.5)
    assert call["guidance_rescale"] == 0.5
    assert (call["width"], call["height"]) == (16, 16)
    again = run(*asked, *settings, "--json")
    assert again.exit_code == 0
    said = json.loads(again.stdout)
    assert (said["wanted"], said["drawn"], said["usable"], said["problems"]) == (4, 0, 4, [])


def test_a_dry_run_says_what_would_be_drawn_and_makes_nothing(
    model: Path, prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = ("--model", model, "--prompts", prompts, "--out", out, "--dry-run")
    said = json.loads(run(*asked, "--json", "--skill", "counting").stdout)
    assert (said["prompts"], said["seeds"], said["images"]) == (1, [42, 3407, 5096], 3)
    assert (said["pipeline"], said["recipe"]) == ("StableDiffusionXLPipeline", "sdxl")
    assert said["arguments"]["num_inference_steps"] == 50
    assert said["arguments"]["guidance_scale"] == 5.0
    assert said["bytes"] == round(1.5 * 16 * 16 * 3)
    shown = run(*asked, "--limit", 1)
    assert "Re-Thinking" in shown.stdout
    assert not out.exists()


def test_the_prompts_come_from_a_benchmark_or_a_file(
    model: Path, prompts: Path, tmp_path: Path
) -> None:
    asked = ("--model", model, "--out", tmp_path / "out")
    assert run(*asked).exit_code == 2
    assert run(*asked, "--prompts", prompts, "--benchmark", "gecko").exit_code == 2
    refused = run(*asked, "--benchmark", "demo_ts2")
    assert isinstance(refused.exception, SubmitterError)
    assert refused.exception.code == "no_prompts"


@pytest.mark.parametrize("setting", ["x", "=1", "a b=1", "sigmas={a=1}"])
def test_a_setting_that_is_none_is_wrong_usage(
    setting: str, model: Path, prompts: Path, tmp_path: Path
) -> None:
    asked = ("--model", model, "--prompts", prompts, "--out", tmp_path / "out")
    assert run(*asked, "--set", setting).exit_code == 2


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(
    model: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluator.generation import run as module

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    asked = ("--model", model, "--prompts", prompts, "--out", out, "--steps", 1, "--seeds", 1)
    with monkeypatch.context() as patch:
        patch.setattr(module, "draw", interrupted)
        stopped = run(*asked)
    assert stopped.exit_code == INTERRUPTED
    assert "the same command goes on" in stopped.output
    assert run(*asked).exit_code == 0


def test_a_prompt_set_is_drawn_with_the_seeds_it_proposes(model: Path, tmp_path: Path) -> None:
    asked = ("--model", model, "--benchmark", "demo_prompts", "--out", tmp_path / "out")
    done = run(*asked, "--limit", 3, "--dry-run", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["benchmark"], facts["prompts"], facts["seeds"]) == ("demo_prompts", 3, [1, 2])
    other = json.loads(run(*asked, "--seeds", "5", "--dry-run", "--json").stdout)
    assert (other["seeds"], other["images"]) == ([5], 76)
