"""Heavy libraries by name, imported where a test first uses them: collecting tests stays light."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def later(name: str) -> Any:
    """Stands for a module."""
    return _Later(name)


torch, hf = later("torch"), later("transformers")
safetensors = later("safetensors.torch")
