"""What the tests of boxes share."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from evaluator.isolation.bubblewrap import NamespaceSandbox
from evaluator.isolation.job import MIB, Limits
from evaluator.isolation.session import ScorerSession

SHORT = Limits(start_s=20.0, batch_s=20.0, job_s=60.0, memory_bytes=1024 * MIB)

CONSTANT = "class Scorer:\n    def score(self, images, prompts): return [1.0]"

Submit = Callable[..., Path]
Open = Callable[..., ScorerSession]


def png(colour: str = "red", size: tuple[int, int] = (8, 8)) -> bytes:
    """A small image of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, format="PNG")
    return buffer.getvalue()


def box_of(session: ScorerSession) -> NamespaceSandbox:
    """The box of namespaces that a session asks."""
    box = session._box
    assert isinstance(box, NamespaceSandbox)
    return box
