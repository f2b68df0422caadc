"""Dual encoders of open_clip, HPSv2 among them, against the library's own model."""

from __future__ import annotations

from typing import Any

from tests.evaluator.scorers.tiny_dual import (
    pictures,
)

IMAGES = pictures(3)
OTHER_TOWERS: dict[str, dict[str, Any]] = {
    "with_a_class_token": {"text": {"embed_cls": True}, "custom_text": True},
    "apart": {"custom_text": True},
}
