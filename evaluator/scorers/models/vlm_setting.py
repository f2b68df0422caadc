"""Settings of every loader of a VLM."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from transformers import AutoImageProcessor, AutoProcessor, PreTrainedModel

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.models.vlm_reading import Reading
from evaluator.scorers.runtime import Dtype, Runtime


@dataclass(frozen=True)
class Setting:
    """A checkpoint, where it runs and how it is spoken to.

    Attributes:
        source: its files.
        kind: its `model_type`.
        runtime: device and what an operator allows.
        dtype: precision of weights and forward pass.
        reading: how image and prompt are put before it.
        beside: other checkpoints that it is put together from, by role.
    """

    source: Source
    kind: str
    runtime: Runtime
    dtype: Dtype
    reading: Reading
    beside: dict[str, Source] = field(default_factory=dict)

    def at(self, role: str, or_own: bool = False) -> Setting:
        """The same for a checkpoint beside this one.

        Raises:
            SubmitterError: `checkpoint_missing`, there is none of that role.
        """
        if role not in self.beside and not or_own:
            raise SubmitterError(
                "checkpoint_missing", f"{self.source} needs another checkpoint as {role!r}."
            )
        return replace(self, source=self.beside.get(role, self.source))

    @property
    def torch_dtype(self) -> torch.dtype:
        """The precision as torch names it."""
        found: torch.dtype = getattr(torch, self.dtype)
        return found

    def pretrained(self, loader: Any, **options: Any) -> PreTrainedModel:
        """A model from the checkpoint's folder, on its device, ready to be asked.

        Raises:
            SubmitterError: `checkpoint_wrong_class`, the weights do not fit that class.
        """
        model, report = self.from_folder(
            loader,
            dtype=self.torch_dtype,
            use_safetensors=None if self.runtime.allow_pickle else True,
            output_loading_info=True,
            **options,
        )
        missing = sorted(report["missing_keys"])
        if missing:
            raise SubmitterError(
                "checkpoint_wrong_class",
                f"{self.source} lacks {len(missing)} weights of {type(model).__name__}, "
                f"among them {missing[0]}.",
            )
        placed: PreTrainedModel = model.to(self.runtime.device).eval()
        return placed

    def from_folder(self, loader: Any, **options: Any) -> Any:
        """Whatever `loader.from_pretrained` makes of the folder; nothing is fetched.

        Raises:
            SubmitterError: `checkpoint_wrong_class`, with what the library says of it.
        """
        try:
            return loader.from_pretrained(
                self.source.place,
                local_files_only=True,
                trust_remote_code=self.runtime.trust_remote_code,
                **options,
            )
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SubmitterError(
                "checkpoint_wrong_class", f"{self.source} cannot be read as {self.kind}: {reason}"
            ) from error

    def processor(self) -> Any:
        """The checkpoint's processor with an image processor of the wanted backend.

        A backend asked of the whole processor would be asked of its video part too.

        Raises:
            SubmitterError: `checkpoint_wrong_class`.
        """
        processor = self.from_folder(AutoProcessor)
        processor.image_processor = self.from_folder(
            AutoImageProcessor, backend=self.reading.backend
        )
        return processor

    def environment(self, **more: str) -> dict[str, str]:
        """What a result's record says, with `more` of the adapter's own."""
        return {
            "device": self.runtime.device,
            "dtype": self.dtype,
            "checkpoint": str(self.source),
            "model_type": self.kind,
            **more,
        }
