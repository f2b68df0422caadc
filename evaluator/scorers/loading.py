"""Models and processors from a checkpoint, whole or not at all.

A weight that a checkpoint lacks would be random, and its scores would look like scores: whatever
does not fill the model is refused. Every family loads through these functions:

    place = resolve(row, runtime)                                   # checkpoints.py
    model = load_transformers(CLIPModel, place, row, runtime, accepted=("clip",))
    processor = load_processor(CLIPProcessor, place, runtime)       # pixels by Pillow
    state = read_weights(place, runtime); fill(module, state, place)  # single files
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers.utils import logging

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import SAFE, Source, check_class, unsafe
from evaluator.scorers.family_code import code_digest
from evaluator.scorers.registry import Runtime, ScorerRow

State = dict[str, Tensor]
_SHOWN = 3
_DAMAGES = (SafetensorError, OSError, ValueError, RuntimeError, KeyError, EOFError, TypeError)
M = TypeVar("M", bound=nn.Module)


def dtype_of(row: ScorerRow, runtime: Runtime) -> torch.dtype:
    """The precision of the weights: what the operator says, else the row's."""
    found: torch.dtype = getattr(torch, runtime.dtype or row.dtype)
    return found


def load_transformers(
    kind: Any,
    source: Source,
    row: ScorerRow,
    runtime: Runtime,
    *,
    accepted: tuple[str, ...] = (),
    may_lack: Sequence[str] = (),
    **more: Any,
) -> Any:
    """A model in evaluation mode on its device, with every weight from the checkpoint."""
    if accepted:
        check_class(source, accepted)
    with reading(source, "weights"):
        model, told = kind.from_pretrained(
            str(source.place),
            dtype=dtype_of(row, runtime),
            local_files_only=True,
            use_safetensors=None if runtime.allow_pickle else True,
            trust_remote_code=runtime.trust_remote_code,
            output_loading_info=True,
            **more,
        )
    refuse_missing(source, told["missing_keys"], may_lack)
    return model.to(runtime.device).eval()


def load_processor(
    kind: Any, source: Source, runtime: Runtime, *, pil: bool = True, **more: Any
) -> Any:
    """A processor, image processor or tokenizer."""
    if pil:
        more["backend"] = "pil"
    with reading(source, "processor"):
        return kind.from_pretrained(
            str(source.place),
            local_files_only=True,
            trust_remote_code=runtime.trust_remote_code,
            **more,
        )


def read_weights(source: Source, runtime: Runtime) -> State:
    """The weights of a single file, by name, in main memory."""
    if source.place.suffix == SAFE:
        with reading(source, "weights"):
            state: State = load_file(source.place)
            return state
    if not runtime.allow_pickle:
        raise unsafe(str(source), [source.place.name])
    with reading(source, "weights"):
        found = torch.load(source.place, map_location="cpu", weights_only=True)
    while isinstance(found, Mapping) and not _is_state(found):
        inner = next((found[key] for key in ("state_dict", "model") if key in found), None)
        if inner is None:
            break
        found = inner
    if not isinstance(found, Mapping) or not _is_state(found):
        raise _damaged(source, "weights", "it holds no table of tensors")
    return dict(found)


def fill(
    module: M, state: Mapping[str, Tensor], source: Source, *, may_lack: Sequence[str] = ()
) -> M:
    """Put weights into a module that was built from a configuration."""
    with reading(source, "weights"):
        told = module.load_state_dict(dict(state), strict=False)
    refuse_missing(source, told.missing_keys, may_lack)
    if told.unexpected_keys:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} holds weights the model has no place for: {_some(told.unexpected_keys)}.",
        )
    return module


def refuse_missing(source: Source, missing: Iterable[str], may_lack: Sequence[str] = ()) -> None:
    """Refuse a checkpoint that leaves weights of the model as they were drawn."""
    lacking = sorted(
        name for name in missing if not any(re.search(each, name) for each in may_lack)
    )
    if lacking:
        raise SubmitterError(
            "checkpoint_incomplete",
            f"{source} lacks weights of the model: {_some(lacking)}.",
            "With random weights in their place the scores would mean nothing.",
        )


def environment(
    row: ScorerRow, runtime: Runtime, sources: Mapping[str, Source], **more: str
) -> dict[str, str]:
    """What a result records of how a metric was run."""
    return {
        "row": f"{row.name}@{row.digest}",
        "code": code_digest(row.family),
        "device": runtime.device,
        "dtype": runtime.dtype or row.dtype,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        **{f"checkpoint_{role}": str(source) for role, source in sources.items()},
        **more,
    }


@contextmanager
def reading(source: Source, what: str) -> Iterator[None]:
    """Say in one sentence what a library could not read; its own reports are kept quiet."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (*_DAMAGES, pickle.UnpicklingError) as error:
        first = " ".join(line.strip() for line in str(error).strip().split("\n")[:2])
        raise _damaged(source, what, first) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _damaged(source: Source, what: str, why: str) -> SubmitterError:
    place = source.place if source.place.is_dir() else source.place.parent
    return SubmitterError(
        "checkpoint_damaged",
        f"The {what} of {source} cannot be read ({why}).",
        f"If the files in {place} are cut short, delete them; they are then fetched again.",
    )


def _is_state(found: Mapping[Any, Any]) -> bool:
    return bool(found) and all(isinstance(value, Tensor) for value in found.values())


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
