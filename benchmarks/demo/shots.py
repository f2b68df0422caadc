"""Pictures on demand: a scene and a seed, rendered when somebody asks for the bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.demo.chance import Chance
from benchmarks.demo.layout import arrange
from benchmarks.demo.render import picture_png
from benchmarks.demo.scenes import Scene

REVISION = "demo-1"
"""Part of every seed, and the revision in the cards: a new one makes new pictures throughout."""


def chance(*seed: str | int) -> Chance:
    """A stream of choices that belongs to this revision."""
    return Chance(REVISION, *seed)


def shoot(scene: Scene, image_id: str) -> bytes:
    """The picture of a scene as a PNG file; the id chooses among the many possible pictures."""
    return picture_png(arrange(scene, chance("picture", image_id)))


def later(scene: Scene, image_id: str) -> Callable[[], bytes]:
    """`shoot`, put off until it is called."""
    return partial(shoot, scene, image_id)
