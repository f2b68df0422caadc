"""Class and image size of a pipeline, known before its weights are read."""

from __future__ import annotations

import inspect
from typing import Any

from benchmarks.errors import SubmitterError
from evaluator.generation.checkpoint import INDEX, Checkpoint


def pipeline_class(checkpoint: Checkpoint) -> type[Any]:
    """The class a checkpoint names, if it draws images from prompts alone.

    Raises:
        SubmitterError: `checkpoint_malformed` (no class of the installed diffusers),
            `not_text_to_image`.
    """
    import diffusers  # noqa: PLC0415 (it takes seconds to import)

    name = checkpoint.index().get("_class_name")
    if not isinstance(name, str):
        raise SubmitterError(
            "checkpoint_malformed",
            f"{checkpoint.name} names a pipeline of its own code in {INDEX}, which is not run.",
            "Use a checkpoint of one of diffusers' own pipelines.",
        )
    found = getattr(diffusers, name, None) if name.endswith("Pipeline") else None
    if not inspect.isclass(found):
        raise SubmitterError(
            "checkpoint_malformed",
            f"{checkpoint.name} is a {name[:80]}, which diffusers {diffusers.__version__} has not.",
            "Install the version it was saved with, or use another checkpoint.",
        )
    if not _draws_from_prompts(found):
        raise SubmitterError(
            "not_text_to_image",
            f"{checkpoint.name} is a {name}, which does not draw images from prompts alone.",
            "Name a text-to-image model.",
        )
    return found


def _draws_from_prompts(pipeline: type[Any]) -> bool:
    from diffusers.pipelines import auto_pipeline as auto  # noqa: PLC0415

    if pipeline in auto.AUTO_TEXT2IMAGE_PIPELINES_MAPPING.values():
        return True
    others = (auto.AUTO_IMAGE2IMAGE_PIPELINES_MAPPING, auto.AUTO_INPAINT_PIPELINES_MAPPING)
    if any(pipeline in mapping.values() for mapping in others):
        return False
    parameters = inspect.signature(pipeline.__call__).parameters
    required = {
        name
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    takes = set(parameters)
    inputs = {"image", "mask_image", "control_image", "video", "num_frames", "audio_length_in_s"}
    return (
        {"prompt", "generator"} <= takes and required <= {"self", "prompt"} and not inputs & takes
    )


def own_size(checkpoint: Checkpoint, pipe: Any = None) -> tuple[int, int] | None:
    """Width and height, in pixels, that a checkpoint draws where none is given.

    Args:
        checkpoint: its configuration files tell it for most.
        pipe: the loaded pipeline, which is asked where they do not.
    """
    blocks = checkpoint.config("vae").get("block_out_channels")
    for component in ("unet", "transformer"):
        side = checkpoint.config(component).get("sample_size")
        if isinstance(side, int) and isinstance(blocks, list) and blocks:
            return (side * 2 ** (len(blocks) - 1),) * 2
    side, scale = (
        getattr(pipe, "default_sample_size", None),
        getattr(pipe, "vae_scale_factor", None),
    )
    return (side * scale,) * 2 if isinstance(side, int) and isinstance(scale, int) else None
