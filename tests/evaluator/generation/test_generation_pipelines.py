from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import numpy as np
import pytest
from huggingface_hub import errors as hub
from numpy.typing import NDArray

from benchmarks.errors import AssayError, SubmitterError, TransientError
from evaluator.generation.checkpoint import locate
from evaluator.generation.pipeline_class import own_size, pipeline_class
from evaluator.generation.plan import all_jobs
from evaluator.generation.prompts import Prompt
from evaluator.generation.recipes import CallArguments, Overrides, call_arguments
from evaluator.generation.truncation import cut_by, readers
from tests.evaluator.generation import tiny_pipelines

if TYPE_CHECKING:
    from evaluator.generation.pipelines import LoadedPipeline

PROMPTS = (Prompt("a", "a red cat"), Prompt("b", "two dogs " * 40))
TINY = ("sd15", "sdxl", "sd3", "pixart")


def loaded(folder: Path, **options: Any) -> LoadedPipeline:
    from evaluator.generation.pipelines import load_pipeline

    return load_pipeline(locate(str(folder)), **{"device": "cpu", "dtype": "float32", **options})


def arguments(pipe: Any, steps: int = 2) -> CallArguments:
    binning = "PixArt" in type(pipe).__name__
    overrides = Overrides(steps=steps, call={"use_resolution_binning": False} if binning else {})
    return call_arguments(type(pipe).__call__, None, overrides, (16, 16))


@pytest.mark.parametrize("name", TINY)
def test_an_image_is_what_the_pipeline_itself_draws(name: str, saved: dict[str, Path]) -> None:
    import torch

    from evaluator.generation.drawing import draw

    found = loaded(saved[name])
    call = arguments(found.pipe)
    jobs = all_jobs(PROMPTS, (42, 3407))
    original = getattr(tiny_pipelines, name)()
    for component in original.components.values():
        if isinstance(component, torch.nn.Module):
            component.eval()
    original.set_progress_bar_config(disable=True)
    left_out = ("negative_prompt", "width", "height")
    given = {key: value for key, value in call.items() if key not in left_out}
    images = []
    for job in jobs:
        [drawn] = draw(found.pipe, [job], call)
        noise = torch.Generator("cpu").manual_seed(job.seed)
        [expected] = original(job.prompt.text, generator=noise, **given).images
        assert drawn.image is not None
        assert drawn.image.tobytes() == expected.tobytes()
        images.append(expected.tobytes())
    assert len(set(images)) == len(jobs)


@pytest.mark.parametrize("name", TINY)
def test_an_image_does_not_depend_on_its_batch(name: str, saved: dict[str, Path]) -> None:
    from evaluator.generation.drawing import draw

    found = loaded(saved[name])
    call = arguments(found.pipe)
    jobs = all_jobs(PROMPTS, (42, 3407, 5096))

    def drawn(size: int) -> NDArray[np.int64]:
        batches = [jobs[at : at + size] for at in range(0, len(jobs), size)]
        images = [d.image for batch in batches for d in draw(found.pipe, batch, call)]
        return np.stack([np.asarray(image, np.int64) for image in images])

    alone = drawn(1)
    for size in (2, 5):
        difference = np.abs(drawn(size) - alone)
        # Another batch adds up in another order: at an edge of 8 bits a value may fall over it.
        assert difference.max() <= 1
        assert (difference > 0).mean() < 0.001


def test_a_pipeline_from_memory_is_taken_out_of_training() -> None:
    import torch

    from evaluator.generation.pipelines import prepare

    pipe = tiny_pipelines.sd3()
    prepare(pipe)
    modules = [c for c in pipe.components.values() if isinstance(c, torch.nn.Module)]
    assert modules
    assert not any(module.training for module in modules)


@pytest.mark.parametrize("name", TINY)
def test_the_image_size_is_known_before_weights_are_read(name: str, saved: dict[str, Path]) -> None:
    checkpoint = locate(str(saved[name]))
    assert own_size(checkpoint) == (tiny_pipelines.SIDE, tiny_pipelines.SIDE)
    assert "Pipeline" in pipeline_class(checkpoint).__name__


def test_a_folder_is_identified_by_its_files(saved: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "other-name"
    shutil.copytree(saved["sd15"], copy)
    (copy / "README.md").write_text("not part of the model")
    first = locate(str(saved["sd15"])).identified()
    assert first.revision.startswith("sha256:")
    assert locate(str(copy)).identified().revision == first.revision
    config = json.loads((copy / "scheduler/scheduler_config.json").read_text())
    (copy / "scheduler/scheduler_config.json").write_text(json.dumps({**config, "steps_offset": 0}))
    assert locate(str(copy)).identified().revision != first.revision


def test_weights_that_can_run_code_are_read_only_if_told(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    from evaluator.generation.pipelines import load_pipeline

    folder = tmp_path / "pickled"
    tiny_pipelines.sd15().save_pretrained(folder, safe_serialization=False)
    for weights in (folder / "text_encoder").glob("*.safetensors"):
        shutil.copy(saved["sd15"] / "text_encoder" / weights.name, weights)
    with pytest.raises(SubmitterError, match="allow-pickle") as error:
        locate(str(folder))
    assert error.value.code == "checkpoint_unsafe"
    found = load_pipeline(
        locate(str(folder), allow_pickle=True), device="cpu", dtype="float32", allow_pickle=True
    )
    assert type(found.pipe).__name__ == "StableDiffusionPipeline"


@pytest.mark.parametrize(
    ("index", "code"),
    [
        ({"_class_name": "StableDiffusionUpscalePipeline"}, "not_text_to_image"),
        ({"_class_name": "StableDiffusionXLImg2ImgPipeline"}, "not_text_to_image"),
        ({"_class_name": "TextToVideoSDPipeline"}, "not_text_to_image"),
        ({"_class_name": "NoSuchPipeline"}, "checkpoint_malformed"),
        ({"_class_name": "UNet2DConditionModel"}, "checkpoint_malformed"),
        ({"_class_name": ["own", "OwnPipeline"]}, "checkpoint_malformed"),
        ({}, "checkpoint_malformed"),
    ],
)
def test_a_model_of_another_kind_is_refused_before_it_is_loaded(
    index: dict[str, Any], code: str, tmp_path: Path
) -> None:
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(SubmitterError) as error:
        loaded(tmp_path)
    assert error.value.code == code


def test_a_folder_without_an_index_or_with_missing_weights_is_refused(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for model, code in (
        (str(tmp_path / "none"), "checkpoint_missing"),
        (str(tmp_path / "empty"), "checkpoint_malformed"),
        ("no-owner", "checkpoint_missing"),
    ):
        with pytest.raises(SubmitterError) as error:
            locate(model)
        assert error.value.code == code
    copy = tmp_path / "cut"
    shutil.copytree(saved["sd15"], copy)
    next((copy / "unet").glob("*.safetensors")).unlink()
    with pytest.raises(SubmitterError) as error:
        loaded(copy)
    assert error.value.code == "checkpoint_malformed"


def _response(status: int) -> httpx2.Response:
    return httpx2.Response(status, request=httpx2.Request("GET", "https://hub.test/x"))


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (hub.GatedRepoError("x", response=_response(403)), SubmitterError, "checkpoint_gated"),
        (
            hub.RepositoryNotFoundError("x", response=_response(404)),
            SubmitterError,
            "checkpoint_missing",
        ),
        (
            hub.RevisionNotFoundError("x", response=_response(404)),
            SubmitterError,
            "checkpoint_missing",
        ),
        (hub.OfflineModeIsEnabled("x"), SubmitterError, "checkpoint_missing"),
        (hub.HfHubHTTPError("x", response=_response(503)), TransientError, "hub_unreachable"),
        (httpx2.ConnectError("x"), TransientError, "hub_unreachable"),
        (ValueError("no safetensors"), SubmitterError, "checkpoint_malformed"),
    ],
)
def test_what_the_hub_says_is_told_apart(
    raised: Exception, kind: type[AssayError], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffusers import DiffusionPipeline

    def download(*_: object, **__: object) -> str:
        # As diffusers does: its own error, raised from the Hub's.
        raise OSError("Cannot load model owner/name") from raised

    monkeypatch.setattr(DiffusionPipeline, "download", download)
    with pytest.raises(kind) as error:
        locate("owner/name", revision="abc")
    assert error.value.code == code


def test_a_commit_of_the_hub_is_the_revision(
    saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffusers import DiffusionPipeline

    snapshot = tmp_path / "models--owner--name" / "snapshots" / "0123abcd"
    shutil.copytree(saved["sd15"], snapshot)
    asked: dict[str, Any] = {}

    def download(model: str, **options: Any) -> str:
        asked.update(options, model=model)
        return str(snapshot)

    monkeypatch.setattr(DiffusionPipeline, "download", download)
    found = locate("owner/name", revision="main", variant="fp16").identified()
    assert (found.name, found.revision) == ("owner/name", "0123abcd")
    assert asked == {
        "model": "owner/name",
        "revision": "main",
        "variant": "fp16",
        "use_safetensors": True,
        "local_files_only": False,
    }


def test_an_image_the_safety_checker_flags_is_withheld(saved: dict[str, Path]) -> None:
    from evaluator.generation.drawing import draw

    jobs = all_jobs(PROMPTS[:1], (42,))
    found = loaded(saved["checked"])
    assert found.safety_checker == "on"
    call = arguments(found.pipe)
    [kept] = draw(found.pipe, jobs, call)
    assert (kept.nsfw, kept.problem) == (False, None)
    tiny_pipelines.flag_all(found.pipe)
    [flagged] = draw(found.pipe, jobs, call)
    assert (flagged.image, flagged.nsfw, flagged.problem) == (None, True, "nsfw")
    off = loaded(saved["checked"], safety_checker=False)
    assert off.safety_checker == "off"
    [drawn] = draw(off.pipe, jobs, call)
    assert drawn.nsfw is None
    assert drawn.image is not None
    assert kept.image is not None
    assert drawn.image.tobytes() == kept.image.tobytes()


def test_an_image_without_any_light_is_withheld(saved: dict[str, Path]) -> None:
    import torch

    from evaluator.generation.drawing import draw

    found = loaded(saved["sd15"])
    with torch.no_grad():
        for weights in found.pipe.vae.decoder.conv_out.parameters():
            weights.fill_(float("nan"))
    [drawn] = draw(found.pipe, all_jobs(PROMPTS[:1], (42,)), arguments(found.pipe))
    assert (drawn.image, drawn.problem, drawn.nsfw) == (None, "black", None)


@pytest.mark.parametrize("name", TINY)
def test_a_decoder_that_overflows_in_half_precision_runs_in_single(
    name: str, saved: dict[str, Path]
) -> None:
    import torch

    from evaluator.generation.drawing import draw

    found = loaded(saved[name], dtype="float16")
    assert found.decoder_dtype == "float32"
    seen = []
    found.pipe.vae.decoder.register_forward_pre_hook(
        lambda module, given: seen.append((given[0].dtype, module.conv_in.weight.dtype))
    )
    [drawn] = draw(found.pipe, all_jobs(PROMPTS[:1], (42,)), arguments(found.pipe))
    assert drawn.image is not None
    assert seen == [(torch.float32, torch.float32)]
    main = found.pipe.components.get("unet") or found.pipe.components["transformer"]
    assert {weights.dtype for weights in main.parameters()} == {torch.float16}
    assert loaded(saved[name]).decoder_dtype == ""


def test_prompts_that_an_encoder_cuts_are_told_for_each_encoder(saved: dict[str, Path]) -> None:
    pipe = loaded(saved["sd3"]).pipe
    found = readers(pipe, {"max_sequence_length": 256})
    clips = ("tokenizer (77 tokens)", "tokenizer_2 (77 tokens)")
    # One token a letter, and a mark at both ends.
    assert cut_by("x" * 75, found) == ()
    assert cut_by("x" * 76, found) == clips
    # T5 marks the beginning of a word and the end of the text.
    assert cut_by("x" * 254, found) == clips
    assert cut_by("x" * 255, found) == (*clips, "tokenizer_3 (256 tokens)")


def test_a_cut_prompt_draws_the_same_as_what_was_read_of_it(saved: dict[str, Path]) -> None:
    from evaluator.generation.drawing import draw

    found = loaded(saved["sd15"])
    lengths = (80, 75, 74)  # a token each; 75 and two marks are read
    texts = [" ".join("x" * length) for length in lengths]
    assert [bool(cut_by(t, readers(found.pipe, {}))) for t in texts] == [True, False, False]
    jobs = all_jobs([Prompt(str(i), text) for i, text in enumerate(texts)], (42,))
    drawn = draw(found.pipe, jobs, arguments(found.pipe))
    cut, whole, shorter = (d.image.tobytes() for d in drawn if d.image)
    assert cut == whole != shorter


def test_settings_that_a_pipeline_cannot_take_are_its_own_words(saved: dict[str, Path]) -> None:
    from evaluator.generation.drawing import draw

    found = loaded(saved["sd15"])
    call = {**arguments(found.pipe), "width": 17}
    with pytest.raises(SubmitterError, match="divisible by 8") as error:
        draw(found.pipe, all_jobs(PROMPTS[:1], (42,)), call)
    assert error.value.code == "pipeline_refused"


def test_a_device_that_is_not_there_is_refused() -> None:
    from evaluator.generation.pipelines import choose_device

    assert choose_device("cpu") == "cpu"
    for name in ("abacus", "cuda:99"):
        with pytest.raises(SubmitterError) as error:
            choose_device(name)
        assert error.value.code == "no_device"
