"""Run-time environment of a built-in metric."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Dtype = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Runtime:
    """What an operator decides; picklable, for it travels to actors.

    Attributes:
        device: as torch names it: `cpu`, `cuda`, `cuda:1`.
        dtype: precision of the model's weights and of its forward pass; None: the row's own.
        folders: checkpoint role to a local folder or file, in place of the Hub's.
        revisions: checkpoint role to a commit, in place of the row's.
        offline: whether the Hub is never asked; checkpoints must be in its cache or `folders`.
        allow_pickle: whether weights in other formats than safetensors may be read. They can run
            code when they are read, so only an operator says so.
        trust_remote_code: whether code of a checkpoint's repository may be run.
        questions: file of questions for metrics that ask them; None: the row's own writer.
        batch_texts: rows of one call of a text or joint encoder.
    """

    device: str = "cpu"
    dtype: Dtype | None = None
    folders: dict[str, Path] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    offline: bool = False
    allow_pickle: bool = False
    trust_remote_code: bool = False
    questions: Path | None = None
    batch_texts: int = 64
