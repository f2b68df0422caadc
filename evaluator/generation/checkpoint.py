"""Files of a pipeline: a local folder, or a commit on the Hub."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import AssayError, SubmitterError, TransientError

INDEX = "model_index.json"
_SAFE = ".safetensors"
_UNSAFE = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl"})
_CONFIGS = (INDEX, "*/config.json", "scheduler/*.json")


@dataclass(frozen=True)
class Checkpoint:
    """The files of a pipeline on this machine."""

    folder: Path  # holds `model_index.json` and a folder for each component
    name: str  # Hub id, or the folder's own name
    revision: str  # commit on the Hub; empty until `identified` for a folder of one's own

    def index(self) -> dict[str, Any]:
        """The list of components."""
        return _json_object(self.folder / INDEX)

    def config(self, component: str) -> dict[str, Any]:
        """How a component is configured; empty where it has no such file."""
        path = self.folder / component / "config.json"
        return _json_object(path) if path.is_file() else {}

    def component_folders(self) -> Iterator[Path]:
        """The folders of the components that the index names."""
        for name in self.index():
            folder = self.folder / name
            if not name.startswith("_") and "/" not in name and folder.is_dir():
                yield folder

    def identified(self) -> Checkpoint:
        """The same with a revision: of a folder of one's own, the SHA-256 over its files."""
        if self.revision:
            return self
        files = [self.folder / INDEX]
        for folder in self.component_folders():
            files += [path for path in folder.rglob("*") if path.is_file()]
        listing = [(path.relative_to(self.folder).as_posix(), _sha256(path)) for path in files]
        digest = hashlib.sha256(json.dumps(sorted(listing)).encode()).hexdigest()
        return Checkpoint(self.folder, self.name, f"sha256:{digest}")


def locate(
    model: str,
    *,
    revision: str = "",
    variant: str = "",
    allow_pickle: bool = False,
    offline: bool = False,
    configs_only: bool = False,
) -> Checkpoint:
    """Find a pipeline's files, and fetch them from the Hub where they are not here."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        found = Checkpoint(folder, folder.resolve().name, "")
    elif folder.is_absolute() or model.startswith((".", "~")) or model.count("/") != 1:
        raise SubmitterError(
            "checkpoint_missing",
            f"There is no folder {model}, and it is not the id of a repository.",
            "Name a folder that holds a model_index.json, or a Hub id such as owner/name.",
        )
    else:
        asked = {"revision": revision or None, "local_files_only": offline}
        if not configs_only:
            asked |= {"variant": variant or None, "use_safetensors": None if allow_pickle else True}
        found = _from_hub(model, asked, configs_only=configs_only)
    if not (found.folder / INDEX).is_file():
        raise SubmitterError(
            "checkpoint_malformed",
            f"{model} holds no {INDEX}, so it is no pipeline of diffusers.",
            "Weights in one file are turned into such a folder by from_single_file and "
            "save_pretrained.",
        )
    if not allow_pickle and not configs_only:
        _check_safe(found)
    return found


def _from_hub(model: str, asked: dict[str, Any], *, configs_only: bool) -> Checkpoint:
    from diffusers import DiffusionPipeline  # noqa: PLC0415 (it takes seconds to import)
    from huggingface_hub import snapshot_download  # noqa: PLC0415

    try:
        if configs_only:
            place = snapshot_download(model, **asked, allow_patterns=list(_CONFIGS))
        else:
            place = DiffusionPipeline.download(model, **asked)
    except (OSError, ValueError, KeyError) as error:
        raise _explained(error, model, asked) from error
    # The cache of the Hub's client keeps each commit in a folder of its name.
    return Checkpoint(Path(place), model, Path(place).name)


def _explained(error: Exception, model: str, asked: dict[str, Any]) -> AssayError:
    """What the Hub's client says, found beneath whatever diffusers made of it."""
    from huggingface_hub import errors as hub  # noqa: PLC0415

    causes, revision = list(_causes(error)), asked["revision"]
    at = f"{model} at {revision}" if revision else model
    if any(isinstance(cause, hub.GatedRepoError) for cause in causes):
        return SubmitterError(
            "checkpoint_gated",
            f"{model} is given only to those who accepted its licence.",
            f"Accept it on https://huggingface.co/{model}, and set HF_TOKEN to your token.",
        )
    if any(isinstance(cause, hub.RevisionNotFoundError) for cause in causes):
        return SubmitterError("checkpoint_missing", f"{model} has no revision {revision}.")
    if any(isinstance(c, hub.RepositoryNotFoundError | hub.HFValidationError) for c in causes):
        return SubmitterError(
            "checkpoint_missing",
            f"There is no {model} on the Hub, or it is private.",
            "Check the id; a private one needs HF_TOKEN.",
        )
    if (
        any(isinstance(cause, hub.OfflineModeIsEnabled) for cause in causes)
        or asked["local_files_only"]
    ):
        return SubmitterError(
            "checkpoint_missing",
            f"{at} is not on this machine (or not whole), and the Hub may not be asked.",
            "Run once without --offline and HF_HUB_OFFLINE, or name a folder that holds it.",
        )
    if any(isinstance(cause, hub.HfHubHTTPError | ConnectionError) for cause in causes) or any(
        type(cause).__module__.startswith(("httpx", "requests")) for cause in causes
    ):
        return TransientError("hub_unreachable", f"{at} could not be fetched: {error}.")
    return SubmitterError(
        "checkpoint_malformed",
        f"{at} cannot be used as a pipeline of diffusers: {error}",
        "Weights must be safetensors unless --allow-pickle is given.",
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _check_safe(checkpoint: Checkpoint) -> None:
    for folder in checkpoint.component_folders():
        endings = {path.suffix for path in folder.iterdir()}
        if endings & _UNSAFE and _SAFE not in endings:
            raise SubmitterError(
                "checkpoint_unsafe",
                f"The weights of {checkpoint.name}/{folder.name} are not safetensors; to read "
                "them can run any code.",
                "If you trust them, say --allow-pickle.",
            )


def _json_object(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SubmitterError(
            "checkpoint_malformed", f"{path} cannot be read: {error}.", "Fetch it again."
        ) from error
    if not isinstance(values, dict):
        raise SubmitterError("checkpoint_malformed", f"{path} holds no JSON object.")
    return values


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pipeline_class(checkpoint: Checkpoint) -> type[Any]:
    """The class a checkpoint names, if it draws images from prompts alone."""
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
    """Width and height, in pixels, that a checkpoint draws where none is given."""
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
