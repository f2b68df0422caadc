"""Pipelines: found, refused or loaded, and drawing what they themselves draw."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from huggingface_hub import errors as hub

from benchmarks.errors import AssayError, SubmitterError, TransientError
from evaluator.generation.checkpoint import locate, own_size, pipeline_class
from evaluator.generation.prompts import Prompt, all_jobs
from evaluator.generation.recipes import CallArguments, Overrides, call_arguments
from tests.evaluator.generation import tiny_pipelines
from tests.evaluator.scorers.common import later, refusal, torch

pipelines = later("evaluator.generation.pipelines")

PROMPTS = (Prompt("a", "a red cat"), Prompt("b", "two dogs " * 40))
TINY = ("sd15", "sdxl", "sd3", "pixart")
DOWNLOAD = "diffusers.DiffusionPipeline.download"
Saved = dict[str, Path]


def loaded(folder: Path, **options: Any) -> Any:
    given: dict[str, Any] = {"device": "cpu", "dtype": "float32", **options}
    allow_pickle = given.get("allow_pickle", False)
    return pipelines.load_pipeline(locate(str(folder), allow_pickle=allow_pickle), **given)


def arguments(pipe: Any) -> CallArguments:
    binning: Any = {"use_resolution_binning": False} if "PixArt" in type(pipe).__name__ else {}
    return call_arguments(type(pipe).__call__, None, Overrides(steps=2, call=binning), (16, 16))


def one(found: Any) -> Any:
    """One image."""
    (drawn,) = pipelines.draw(found.pipe, all_jobs(PROMPTS[:1], (42,)), arguments(found.pipe))
    return drawn


@pytest.mark.first_quick
@pytest.mark.parametrize("name", TINY)
def test_an_image_is_what_the_pipeline_itself_draws_alone_and_in_a_batch(
    name: str, saved: Saved
) -> None:
    checkpoint = locate(str(saved[name]))  # its size is known before weights are read
    assert own_size(checkpoint) == (tiny_pipelines.SIDE, tiny_pipelines.SIDE)
    assert "Pipeline" in pipeline_class(checkpoint).__name__
    found = loaded(saved[name])
    call = arguments(found.pipe)
    original = getattr(tiny_pipelines, name)()
    for component in original.components.values():
        if hasattr(component, "eval"):
            component.eval()
    original.set_progress_bar_config(disable=True)
    left_out = ("negative_prompt", "width", "height")
    given = {key: value for key, value in call.items() if key not in left_out}
    jobs, alone = all_jobs(PROMPTS, (42, 3407)), []
    for job in jobs:
        (drawn,) = pipelines.draw(found.pipe, [job], call)
        noise = torch.Generator("cpu").manual_seed(job.seed)
        (expected,) = original(job.prompt.text, generator=noise, **given).images
        assert drawn.image.tobytes() == expected.tobytes()
        alone.append(np.asarray(expected, np.int64))
    assert len({image.tobytes() for image in alone}) == len(jobs)
    for size in (2, 3):
        batches = [jobs[at : at + size] for at in range(0, len(jobs), size)]
        batched = [d.image for batch in batches for d in pipelines.draw(found.pipe, batch, call)]
        difference = np.abs(np.stack([np.asarray(image, np.int64) for image in batched]) - alone)
        # Another batch adds up in another order: at an edge of 8 bits a value may fall over it.
        assert difference.max() <= 1
        assert (difference > 0).mean() < 0.001


def test_a_pipeline_from_memory_is_taken_out_of_training() -> None:
    pipe = tiny_pipelines.sd3()
    pipelines.prepare(pipe)
    modules = [c for c in pipe.components.values() if hasattr(c, "training")]
    assert modules
    assert not any(module.training for module in modules)


def test_a_folder_is_identified_by_its_files(saved: Saved, tmp_path: Path) -> None:
    copy = tmp_path / "other-name"
    shutil.copytree(saved["sd15"], copy)
    (copy / "README.md").write_text("not part of the model")
    first = locate(str(saved["sd15"])).identified()
    assert first.revision.startswith("sha256:")
    assert locate(str(copy)).identified().revision == first.revision
    scheduler = copy / "scheduler/scheduler_config.json"
    scheduler.write_text(json.dumps({**json.loads(scheduler.read_text()), "steps_offset": 0}))
    assert locate(str(copy)).identified().revision != first.revision


def test_weights_that_can_run_code_are_read_only_if_told(saved: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    tiny_pipelines.sd15().save_pretrained(folder, safe_serialization=False)
    for weights in (saved["sd15"] / "text_encoder").glob("*.safetensors"):
        shutil.copy(weights, folder / "text_encoder")
    with refusal("checkpoint_unsafe", "allow-pickle"):
        loaded(folder)
    found = loaded(folder, allow_pickle=True)
    assert type(found.pipe).__name__ == "StableDiffusionPipeline"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("StableDiffusionUpscalePipeline", "not_text_to_image"),
        ("StableDiffusionXLImg2ImgPipeline", "not_text_to_image"),
        ("TextToVideoSDPipeline", "not_text_to_image"), ("NoSuchPipeline", "checkpoint_malformed"),
        ("UNet2DConditionModel", "checkpoint_malformed"),
        (["own", "OwnPipeline"], "checkpoint_malformed"), (None, "checkpoint_malformed"),
    ],
)  # fmt: skip
def test_a_model_of_another_kind_is_refused_before_it_is_loaded(
    name: Any, code: str, tmp_path: Path
) -> None:
    index = {"_class_name": name} if name else {}
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    with refusal(code):
        loaded(tmp_path)


def test_a_folder_without_an_index_or_with_missing_weights_is_refused(
    saved: Saved, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copytree(saved["sd15"], tmp_path / "cut")
    next((tmp_path / "cut" / "unet").glob("*.safetensors")).unlink()
    for model, code in (
        (tmp_path / "none", "checkpoint_missing"),
        (Path("no-owner"), "checkpoint_missing"),
        (tmp_path / "empty", "checkpoint_malformed"),
        (tmp_path / "cut", "checkpoint_malformed"),
    ):
        with refusal(code):
            loaded(model)


def _answer(kind: Any, status: int) -> Exception:
    request = httpx2.Request("GET", "https://hub.test/x")
    error: Exception = kind("x", response=httpx2.Response(status, request=request))
    return error


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (_answer(hub.GatedRepoError, 403), SubmitterError, "checkpoint_gated"),
        (_answer(hub.RepositoryNotFoundError, 404), SubmitterError, "checkpoint_missing"),
        (_answer(hub.RevisionNotFoundError, 404), SubmitterError, "checkpoint_missing"),
        (hub.OfflineModeIsEnabled("x"), SubmitterError, "checkpoint_missing"),
        (_answer(hub.HfHubHTTPError, 503), TransientError, "hub_unreachable"),
        (httpx2.ConnectError("x"), TransientError, "hub_unreachable"),
        (ValueError("no safetensors"), SubmitterError, "checkpoint_malformed"),
    ],
)
def test_what_the_hub_says_is_told_apart(
    raised: Exception, kind: type[AssayError], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*_: object, **__: object) -> str:
        # As diffusers does: its own error, raised from the Hub's.
        raise OSError("Cannot load model owner/name") from raised

    monkeypatch.setattr(DOWNLOAD, download)
    with refusal(code, kind=kind):
        locate("owner/name", revision="abc")


def test_a_commit_of_the_hub_is_the_revision(
    saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--owner--name" / "snapshots" / "0123abcd"
    shutil.copytree(saved["sd15"], snapshot)
    asked: dict[str, Any] = {}

    def download(model: str, **options: Any) -> str:
        asked.update(options, model=model)
        return str(snapshot)

    monkeypatch.setattr(DOWNLOAD, download)
    found = locate("owner/name", revision="main", variant="fp16").identified()
    assert (found.name, found.revision) == ("owner/name", "0123abcd")
    assert asked == {
        "model": "owner/name", "revision": "main", "variant": "fp16", "use_safetensors": True,
        "local_files_only": False,
    }  # fmt: skip


def test_an_image_the_safety_checker_flags_is_withheld(saved: Saved) -> None:
    found, off = loaded(saved["checked"]), loaded(saved["checked"], safety_checker=False)
    assert (found.safety_checker, off.safety_checker) == ("on", "off")
    kept, unchecked = one(found), one(off)
    assert (kept.nsfw, kept.problem, unchecked.nsfw) == (False, None, None)
    assert unchecked.image.tobytes() == kept.image.tobytes()
    tiny_pipelines.flag_all(found.pipe)
    flagged = one(found)
    assert (flagged.image, flagged.nsfw, flagged.problem) == (None, True, "nsfw")


def test_an_image_without_any_light_is_withheld(saved: Saved) -> None:
    found = loaded(saved["sd15"])
    with torch.no_grad():
        for weights in found.pipe.vae.decoder.conv_out.parameters():
            weights.fill_(float("nan"))
    drawn = one(found)
    assert (drawn.image, drawn.problem, drawn.nsfw) == (None, "black", None)


@pytest.mark.first_quick
@pytest.mark.parametrize("name", TINY)
def test_a_decoder_that_overflows_in_half_precision_runs_in_single(name: str, saved: Saved) -> None:
    found = loaded(saved[name], dtype="float16")
    seen = []
    found.pipe.vae.decoder.register_forward_pre_hook(
        lambda module, given: seen.append((given[0].dtype, module.conv_in.weight.dtype))
    )
    assert one(found).image is not None
    assert seen == [(torch.float32, torch.float32)]
    main = found.pipe.components.get("unet") or found.pipe.components["transformer"]
    assert {weights.dtype for weights in main.parameters()} == {torch.float16}
    assert (found.decoder_dtype, loaded(saved[name]).decoder_dtype) == ("float32", "")


def test_prompts_that_an_encoder_cuts_are_told_for_each_encoder(saved: Saved) -> None:
    found = tuple(pipelines.readers(loaded(saved["sd3"]).pipe, {"max_sequence_length": 256}))
    clips = ("tokenizer (77 tokens)", "tokenizer_2 (77 tokens)")
    # One token a letter, and a mark at both ends; T5 marks the beginning of a word and the end.
    for length, cut in (
        (75, ()), (76, clips), (254, clips), (255, (*clips, "tokenizer_3 (256 tokens)"))
    ):  # fmt: skip
        assert tuple(str(one) for one in found if one.cuts("x" * length)) == cut


def test_a_cut_prompt_draws_the_same_as_what_was_read_of_it(saved: Saved) -> None:
    found = loaded(saved["sd15"])
    texts = [" ".join("x" * length) for length in (80, 75, 74)]  # 75 and two marks are read
    (reader,) = pipelines.readers(found.pipe, {})
    assert [reader.cuts(text) for text in texts] == [True, False, False]
    jobs = all_jobs([Prompt(str(i), text) for i, text in enumerate(texts)], (42,))
    drawn = pipelines.draw(found.pipe, jobs, arguments(found.pipe))
    cut, whole, shorter = (d.image.tobytes() for d in drawn)
    assert cut == whole != shorter


def test_settings_that_a_pipeline_or_machine_cannot_take_are_refused(saved: Saved) -> None:
    found = loaded(saved["sd15"])
    call = {**arguments(found.pipe), "width": 17}
    with refusal("pipeline_refused", "divisible by 8"):
        pipelines.draw(found.pipe, all_jobs(PROMPTS[:1], (42,)), call)
    assert pipelines.choose_device("cpu") == "cpu"
    for name in ("abacus", "cuda:99"):
        with refusal("no_device"):
            pipelines.choose_device(name)
