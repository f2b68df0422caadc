"""Evaluator: intake, isolation, scoring, judging and publication of submissions.

`from evaluator import load_metric` uses one metric on images of one's own; see `evaluator.metric`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluator.metric import Metric, load_metric

__all__ = ["Metric", "load_metric"]


def __getattr__(name: str) -> object:
    # Only when they are asked for: whoever imports a part of this package needs nothing of it.
    if name in __all__:
        return getattr(import_module("evaluator.metric"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
