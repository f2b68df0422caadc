"""Base class of CROC's metrics: the same name and methods, written for Assay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class BaseMetric(ABC):
    """A metric that is called with one prompt and one path, or with a list of each."""

    @abstractmethod
    def __call__(self, gt: Any, hyp: Any) -> Any:
        """The score of a prompt and an image, or the scores of lists of them."""

    @abstractmethod
    def get_state(self) -> str:
        """The metric's configuration in words."""
